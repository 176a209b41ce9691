"""Source ids: they tell central the records of this box from those of the site's other boxes. Pure.

The site's own id is in its lower 32 bits and the number of the box above them. A replaced box begins with the same ids
as the one before it, but with another number. A box number has 20 bits, so that every JSON reader takes the whole.
"""

from __future__ import annotations

_ID_BITS = 32


def source_id(box: int, site_id: int) -> int:
    """Return the `source_id` of a record of a box."""
    return box << _ID_BITS | site_id


def site_id_in(source: int) -> int:
    """Return the site's own id from a `source_id`."""
    return source & ((1 << _ID_BITS) - 1)
