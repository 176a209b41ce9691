"""From a reading to the fields of a card that it would match, and from typed text to readings. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from gateway.domain.credentials import MAX_TEXT, Credential, h10301_bits
from gateway.domain.plates import plain_plate
from gateway.domain.printed import uid_alias
from gateway.domain.wiegand import H10301, formats_of

_READ_AS: Final = re.compile(r"0x([0-9A-F]+) of ([0-9]{1,3}) bits")
_PAIR: Final = re.compile(r"\s*(\d{1,3})\s*[,:/-]\s*(\d{1,5})\s*")


def readings_of(text: str) -> Iterator[Credential]:
    """Yield the readings that a typed card number or plate may stand for, the likelier first."""
    pair = _PAIR.fullmatch(text)
    if pair and H10301.holds(int(pair[1]), int(pair[2])):
        yield Credential(26, h10301_bits(int(pair[1]), int(pair[2])))
    yield Credential(text=text.strip()[:MAX_TEXT])
    if plate := plain_plate(text)[:MAX_TEXT]:
        yield Credential(plate=plate)


def enrolment(shown: str, *, read_as: str = "", plate: str = "") -> Mapping[str, str]:
    """Return the fields of a new card that this reading would match; none if no field can hold it.

    Args:
        shown: the reading as `Credential.shown` writes it.
        read_as: its bits as `Credential.read_as` writes them, "" for none.
        plate: the plate that was read, "" for a card.
    """
    if plate:
        return {"plate": plate}
    bits = _READ_AS.fullmatch(read_as)
    if bits is None:
        return {"number": shown} if shown and not read_as else {}
    value, length = int(bits[1], 16), int(bits[2])
    layout = next(iter(formats_of(length, value)), None)
    if layout is H10301:
        return {"number": shown}
    if layout is None:
        uid = f"{value:0{length // 4}X}"
        return {"uid": uid} if length % 4 == 0 and uid_alias(uid) else {}
    facility, number = layout.numbers(value)
    if not layout.facility_bits:
        return {"number": str(number), "card_format": layout.name}
    return {"facility_code": str(facility), "card_number": str(number), "card_format": layout.name}
