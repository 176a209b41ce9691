"""The card in a line of a reader. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from drivers.contract import ProtocolViolation
from drivers.serial_line.frames import Algorithm
from drivers.serial_line.splitter import SWITCHED_ON, plain_bytes

Form = Literal["text", "hex", "decimal", "wiegand26"]
CheckDigits = Literal["frame", "none", "xor", "sum"]

LONGEST_BITS = 256
_START: Final = "\x02"
_NOISE: Final = "".join(chr(code) for code in (*range(0x20), 0x20, 0x7F))
_HEX: Final = re.compile(r"(?:0[xX])?([0-9A-Fa-f]+)[hH]?")
_SEPARATORS: Final = re.compile(r"[\s:.-]")
_WIEGAND: Final = re.compile(r"(\d{3})\s*+[,:;/-]?\s*+(\d{5})", re.ASCII)
_FRAME_DIGITS: Final = 12
_BLANKS: Final = b"\x02\x03\t\r\n \x00"
_ALPHABETS: Final[dict[Form, bytes]] = {
    "text": b"",
    "hex": b"0123456789abcdefABCDEFxXhH:.-" + _BLANKS,
    "decimal": b"0123456789" + _BLANKS,
    "wiegand26": b"0123456789,:;/-" + _BLANKS,
}


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of one line: bits (most significant first), text, or both. `bit_length` is 0 for text alone.

    `is_tag_frame` is true for a frame with STX whose check digits are right, as readers of 125 kHz tags send them.
    """

    bit_length: int
    bits: int
    text: str
    is_tag_frame: bool = False


def alphabet(form: Form, *, prefix: str = "") -> bytes:
    """Return the bytes that lines of this form may have; empty for any."""
    characters = _ALPHABETS[form]
    return characters + prefix.encode("ascii", "ignore") if characters else b""


def read_line(
    line: bytes,
    *,
    form: Form,
    prefix: str = "",
    check_digits: CheckDigits = "frame",
    sends_tag_frames: bool = False,
) -> Reading:
    """Parse the reading in a line of this form.

    Control characters and blanks around it are ignored, and so is `prefix` at its begin. So are the bytes that a line
    shows when it is switched on, parity bits of a sender with seven data bits, and the second bytes of UTF-16.

    - `text`: printable ASCII characters, kept as they are.
    - `hex`: hexadecimal digits, 4 bits each, 256 bits at most. Colons, dashes, dots and blanks between them, `0x`
      before and `h` behind them are left out. `check_digits` says how the last two digits are verified: `xor` and
      `sum` of the bytes before them, `none` for no check digits. `frame` is the exclusive or, for lines of 12
      digits, as readers of 125 kHz tags send them, even if STX was lost; other lines have none. From a reader that
      `sends_tag_frames`, other lines are refused, since digits of theirs were lost.
    - `decimal`: a decimal number. It gives 32 bits, or 64 when it needs more, and its digits as text.
    - `wiegand26`: `FFF,CCCCC` or `FFFCCCCC`, with facility 0-255 and card 0-65535. It gives the 26 bits of H10301 with
      their parity. All 3 and 5 digits are required, so that a torn line never passes for another card.

    Raises ProtocolViolation when the line is not of that form.
    """
    data = _from_start(line)
    try:
        characters = data.decode("ascii")
    except UnicodeDecodeError as error:
        raise ProtocolViolation(f"a line with bytes that are no characters ({len(line)} bytes)") from error
    text = characters.strip(_NOISE).removeprefix(prefix).strip(_NOISE)
    if not text or not text.isprintable():
        raise ProtocolViolation(f"a line without readable characters ({len(line)} bytes)")
    match form:
        case "text":
            return Reading(0, 0, text)
        case "hex":
            digits = _hex_digits(text)
            algorithm = _algorithm(check_digits, digits, only_frames=sends_tag_frames)
            if algorithm is not None:
                _verify(digits, algorithm)
            is_frame = check_digits == "frame" and algorithm is not None and characters.startswith(_START)
            return Reading(4 * len(digits), int(digits, 16), "", is_frame)
        case "decimal":
            return _decimal(text)
        case "wiegand26":
            return _wiegand26(text)


def has_its_begin(line: bytes, *, form: Form, prefix: str) -> bool:
    """Return whether a line cannot be the rest of one whose begin was lost.

    STX and `prefix` stand only at the begin of a line. A line of `wiegand26` that lacks a digit is refused anyway.
    """
    data = _from_start(line)
    marked = data.startswith((_START.encode(), prefix.encode())) if prefix else data.startswith(_START.encode())
    return marked or form == "wiegand26"


def _from_start(line: bytes) -> bytes:
    """Return a line without noise before it and without its end."""
    return plain_bytes(line.rstrip(b"\r\n")).lstrip(SWITCHED_ON + _NOISE.encode().replace(_START.encode(), b""))


def _algorithm(check_digits: CheckDigits, digits: str, *, only_frames: bool) -> Algorithm | None:
    match check_digits:
        case "frame":
            if len(digits) == _FRAME_DIGITS:
                return Algorithm.XOR
            if only_frames:
                raise ProtocolViolation(f"a line of {len(digits)} digits from a reader that sends frames of 12")
            return None
        case "none":
            return None
        case _:
            return Algorithm(check_digits)


def _hex_digits(text: str) -> str:
    found = _HEX.fullmatch(_SEPARATORS.sub("", text))
    if found is None or len(found[1]) * 4 > LONGEST_BITS:
        raise ProtocolViolation("a line that is no hexadecimal number")
    return found[1]


def _verify(digits: str, algorithm: Algorithm) -> None:
    if len(digits) < 4 or len(digits) % 2:
        raise ProtocolViolation(f"a line of {len(digits)} digits, which cannot end in check digits")
    *data, given = bytes.fromhex(digits)
    if (right := algorithm.of(bytes(data))) != given:
        raise ProtocolViolation(f"its check digits are {given:02X} instead of {right:02X}: a digit was misread")


def _decimal(text: str) -> Reading:
    if not (text.isdecimal() and len(text) <= 20 and int(text) < 1 << 64):
        raise ProtocolViolation("a line that is no decimal number")
    number = int(text)
    return Reading(32 if number < 1 << 32 else 64, number, text)


def _wiegand26(text: str) -> Reading:
    found = _WIEGAND.fullmatch(text)
    if found is None:  # a torn one is shorter
        raise ProtocolViolation("a line that is no facility (3 digits) and card number (5 digits)")
    facility, number = int(found[1]), int(found[2])
    if facility > 0xFF or number > 0xFFFF:
        raise ProtocolViolation("a facility above 255 or a card number above 65535")
    return Reading(26, _h10301(facility, number), "")


def _h10301(facility: int, number: int) -> int:
    """Return the 26 bits: even parity over the first 12 data bits, the 24 data bits, odd parity over the last 12."""
    body = facility << 16 | number
    return (body >> 12).bit_count() % 2 << 25 | body << 1 | 1 - (body & 0xFFF).bit_count() % 2
