"""Numbers printed on cards, and the bits that they can mean. Pure.

One card has many numbers: 26 bits of facility 1 and number 11572 are also printed as 77108, facility 213 and number
2000 also as 0013961168. Only a number that cannot mean another card becomes an alias; `explain` shows the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from gateway.domain.credentials import raw_alias
from gateway.domain.wiegand import FORMATS, H10301, Format

_LONG_DIGITS: Final = 10
_UID_BYTES: Final = frozenset({4, 5, 7, 8, 10})
_SEPARATORS: Final = re.compile(r"[\s:.-]")
_HEX: Final = re.compile(r"[0-9A-Fa-f]+")


def layout_named(name: str) -> Format | None:
    """Return the format that a record names (`H10301`, `37-bit H10302`, `Corporate 1000`); None for an unknown one."""
    plain = _SEPARATORS.sub("", name).casefold().replace("corporate1000", "c1000")
    return next((layout for layout in FORMATS if layout.name in plain), None)


def number_aliases(text: str, layout: Format | None) -> Iterator[str]:
    """Yield the aliases of a number that is printed without its facility.

    Ten digits are all of 24 or 32 bits, as on tags. Any other number has a meaning only in a known format: facility and
    number in one, or the number of a format without facility.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        return
    whole = int(text)
    if len(text) == _LONG_DIGITS and whole < 1 << 32:
        yield raw_alias(32, whole)
        if whole < 1 << 24:
            yield H10301.alias(*_split(H10301, whole))
    elif layout is not None and whole < 1 << layout.facility_bits + layout.number_bits:
        facility, number = _split(layout, whole)
        if facility or not layout.facility_bits:
            yield layout.alias(facility, number)


def uid_alias(text: str) -> str | None:
    """Return the alias of a tag's UID in hexadecimal (4, 5, 7, 8 or 10 bytes); None for another text."""
    plain = _SEPARATORS.sub("", text)
    if not _HEX.fullmatch(plain) or len(plain) % 2 or len(plain) // 2 not in _UID_BYTES:
        return None
    return raw_alias(4 * len(plain), int(plain, 16))


def _split(layout: Format, whole: int) -> tuple[int, int]:
    return whole >> layout.number_bits, whole & (1 << layout.number_bits) - 1
