"""What a line of a card reader says, pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from drivers.contract import ProtocolViolation

Form = Literal["text", "hex", "decimal", "wiegand26"]

LONGEST_BITS = 256
_NOISE = "".join(chr(code) for code in (*range(0x20), 0x20, 0x7F))


@dataclass(frozen=True, slots=True)
class Reading:
    """Bits (most significant first), text, or both."""

    bit_length: int
    bits: int
    text: str


def read_line(line: bytes, *, form: Form, prefix: str = "") -> Reading:
    """The reading that a line carries.

    Control characters and blanks around it are noise, as is `prefix` where it stands.

    - `text`: the characters, printable ASCII.
    - `hex`: 4 bits for each digit.
    - `decimal`: a number of 32 bits, or 64 when it needs more, and its digits as text.
    - `wiegand26`: `FFF,CCCCC` or `FFFCCCCC`, facility 0-255 and card 0-65535, always 3 and 5
      digits, so that no torn line passes for another card: the 26 bits of H10301 with their parity.

    Raises ProtocolViolation when the line is not of that form.
    """
    try:
        text = line.decode("ascii").strip(_NOISE).removeprefix(prefix).strip(_NOISE)
    except UnicodeDecodeError as error:
        raise ProtocolViolation(f"a line with bytes that are no characters ({len(line)} bytes)") from error
    if not text or not text.isprintable():
        raise ProtocolViolation(f"a line without readable characters ({len(line)} bytes)")
    match form:
        case "text":
            return Reading(0, 0, text)
        case "hex":
            return _hex(text)
        case "decimal":
            return _decimal(text)
        case "wiegand26":
            return _wiegand26(text)


def _hex(text: str) -> Reading:
    if not all(character in "0123456789abcdefABCDEF" for character in text) or len(text) * 4 > LONGEST_BITS:
        raise ProtocolViolation("a line that is no hexadecimal number")
    return Reading(4 * len(text), int(text, 16), "")


def _decimal(text: str) -> Reading:
    if not (text.isdecimal() and len(text) <= 20 and int(text) < 1 << 64):
        raise ProtocolViolation("a line that is no decimal number")
    number = int(text)
    return Reading(32 if number < 1 << 32 else 64, number, text)


def _wiegand26(text: str) -> Reading:
    facility, _, number = text.partition(",") if "," in text else (text[:-5], "", text[-5:])
    facility, number = facility.strip(), number.strip()
    if not (
        facility.isdecimal() and number.isdecimal() and len(facility) == 3 and len(number) == 5
    ):  # a torn one is shorter
        raise ProtocolViolation("a line that is no facility (3 digits) and card number (5 digits)")
    if int(facility) > 0xFF or int(number) > 0xFFFF:
        raise ProtocolViolation("a facility above 255 or a card number above 65535")
    return Reading(26, _h10301(int(facility), int(number)), "")


def _h10301(facility: int, number: int) -> int:
    """26 bits: even parity over the first 12 in front, odd parity over the last 12 behind."""
    body = facility << 16 | number
    return (body >> 12).bit_count() % 2 << 25 | body << 1 | 1 - (body & 0xFFF).bit_count() % 2
