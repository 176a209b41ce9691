"""Source ids: by them central tells the records of this box from those of the site's other boxes. Pure.

A source id has the site's own id in its lower 32 bits and the number of the box above them. A box that replaces another
begins with the same ids, but with another box number. That number has 20 bits at most, so that a source id fits the
53 bits that every JSON reader takes exactly.
"""

from __future__ import annotations

_ID_BITS = 32


def source_id(box: int, site_id: int) -> int:
    """Return the `source_id` of the record with this site id, made by this box."""
    return box << _ID_BITS | site_id


def site_id_in(source: int) -> int:
    """Return the site's own id from a `source_id`."""
    return source & ((1 << _ID_BITS) - 1)
