"""Frames on a serial line, as a profile describes them: building, finding among noise, and checking. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from functools import cache
from typing import Annotated, Self

from pydantic import Field, PlainValidator, model_validator

from drivers.profile_file import Part
from drivers.serial_line.splitter import Splitter

_HEX = re.compile(r"[0-9A-Fa-f]{2}")
_PLACE = re.compile(r"\{([a-z]+)\}")


class Slot(Enum):
    """A byte that a template leaves open."""

    ANY = auto()
    UNIT = auto()
    UNIT_HIGH_DIGIT = auto()
    UNIT_LOW_DIGIT = auto()
    SIZE = auto()
    CHECK = auto()


_WORDS = {"..": Slot.ANY, "unit": Slot.UNIT, "size": Slot.SIZE, "check": Slot.CHECK}
_PLACES = {
    "unit": (Slot.UNIT_HIGH_DIGIT, Slot.UNIT_LOW_DIGIT),
    "check": (Slot.CHECK, Slot.CHECK),
    "any": (Slot.ANY,),
}


@dataclass(frozen=True, slots=True)
class Template:
    """A sequence of bytes, some of which are left open."""

    parts: tuple[int | Slot, ...]

    def __len__(self) -> int:
        return len(self.parts)

    @property
    def names_unit(self) -> bool:
        """True when it contains the device's address."""
        return any(part in {Slot.UNIT, Slot.UNIT_HIGH_DIGIT, Slot.UNIT_LOW_DIGIT} for part in self.parts)

    @property
    def has_any(self) -> bool:
        """True when one of its bytes may have any value."""
        return Slot.ANY in self.parts

    def filled(self, *, unit: int) -> bytes:
        """Fill in the unit's address. All other open bytes become zero; `Sealing` sets sizes and checks later."""
        return bytes(_byte(part, unit) or 0 for part in self.parts)

    def matches(self, frame: bytes, *, unit: int) -> bool:
        """Return whether the frame begins like this template. Sizes and checks match any value; see `Framing`."""
        if len(frame) < len(self.parts):
            return False
        wanted = (_byte(part, unit) for part in self.parts)
        return all(want is None or want == byte for want, byte in zip(wanted, frame, strict=False))


def template_of(written: object) -> Template:
    """Parse a template as a profile file writes it.

    - A string holds bytes in hexadecimal and words, as in `"EB unit 40 00 check"`. The words are `unit` (the address),
      `..` (any byte), `size` and `check` (filled in later; a check of two bytes is written twice).
    - A table `{ text = "…" }` holds characters, with the places `{unit}` (two hexadecimal digits), `{check}` (two
      characters) and `{any}` (one).

    Raises ValueError for anything else.
    """
    if isinstance(written, Template):
        return written
    if isinstance(written, str):
        return Template(tuple(_part(word) for word in written.split()))
    if isinstance(written, dict) and written.keys() == {"text"} and isinstance(written["text"], str):
        return Template(tuple(_text_parts(written["text"])))
    raise ValueError('bytes are written as "7E 00 unit check" or { text = "…" }')


def plain_bytes(written: object) -> bytes:
    """Parse bytes without open places. Raises ValueError for anything else."""
    if isinstance(written, bytes):
        return written
    template = template_of(written)
    if any(isinstance(part, Slot) for part in template.parts):
        raise ValueError("only fixed bytes can stand here")
    return template.filled(unit=0)


def _part(word: str) -> int | Slot:
    if _HEX.fullmatch(word):
        return int(word, 16)
    if word not in _WORDS:
        raise ValueError(f"{word!r} is neither two hexadecimal digits nor one of {', '.join(_WORDS)}")
    return _WORDS[word]


def _text_parts(text: str) -> list[int | Slot]:
    parts: list[int | Slot] = []
    for place, piece in enumerate(_PLACE.split(text)):
        if place % 2 == 0:
            parts += piece.encode("latin-1")
        elif piece in _PLACES:
            parts += _PLACES[piece]
        else:
            raise ValueError(f"{{{piece}}} is none of {', '.join(f'{{{name}}}' for name in _PLACES)}")
    return parts


def _byte(part: int | Slot, unit: int) -> int | None:
    match part:
        case int():
            return part
        case Slot.UNIT:
            return unit
        case Slot.UNIT_HIGH_DIGIT:
            return ord(f"{unit:02X}"[0])
        case Slot.UNIT_LOW_DIGIT:
            return ord(f"{unit:02X}"[1])
        case _:
            return None


LONGEST_FRAME = 512
FixedBytes = Annotated[bytes, PlainValidator(plain_bytes)]


class Algorithm(StrEnum):
    """An algorithm of check values. The CRCs are named as in the catalogue of parametrised CRC algorithms."""

    SUM = "sum"
    SUM_COMPLEMENT = "sum-complement"
    SUM_NEGATED = "sum-negated"
    XOR = "xor"
    CRC16_ARC = "crc16-arc"
    CRC16_MODBUS = "crc16-modbus"
    CRC16_MCRF4XX = "crc16-mcrf4xx"
    CRC16_X25 = "crc16-x25"
    CRC16_KERMIT = "crc16-kermit"
    CRC16_CCITT_FALSE = "crc16-ccitt-false"
    CRC16_XMODEM = "crc16-xmodem"

    @property
    def width(self) -> int:
        """The length of the value in bytes."""
        return 2 if self in _CRCS else 1

    def of(self, data: bytes) -> int:
        """Compute the check value of `data`.

        - `sum`: the low byte of the sum; `sum-complement`: its ones' complement; `sum-negated`: its two's complement.
        - `xor`: all bytes combined by exclusive or.
        - `crc16-…`: the CRC of that name.
        """
        match self:
            case Algorithm.SUM:
                return sum(data) & 0xFF
            case Algorithm.SUM_COMPLEMENT:
                return ~sum(data) & 0xFF
            case Algorithm.SUM_NEGATED:
                return -sum(data) & 0xFF
            case Algorithm.XOR:
                return _xor(data)
            case _:
                return _crc16(_CRCS[self], data)


@dataclass(frozen=True, slots=True)
class _Crc16:
    """A CRC: the polynomial (highest power first), start value, bit order, and the value XORed with the result."""

    polynomial: int
    start: int
    reflected: bool
    final: int = 0


_CRCS = {
    Algorithm.CRC16_ARC: _Crc16(0x8005, 0x0000, reflected=True),
    Algorithm.CRC16_MODBUS: _Crc16(0x8005, 0xFFFF, reflected=True),
    Algorithm.CRC16_MCRF4XX: _Crc16(0x1021, 0xFFFF, reflected=True),
    Algorithm.CRC16_X25: _Crc16(0x1021, 0xFFFF, reflected=True, final=0xFFFF),
    Algorithm.CRC16_KERMIT: _Crc16(0x1021, 0x0000, reflected=True),
    Algorithm.CRC16_CCITT_FALSE: _Crc16(0x1021, 0xFFFF, reflected=False),
    Algorithm.CRC16_XMODEM: _Crc16(0x1021, 0x0000, reflected=False),
}


def _xor(data: bytes) -> int:
    value = 0
    for byte in data:
        value ^= byte
    return value


def _crc16(crc: _Crc16, data: bytes) -> int:
    table = _table(crc.polynomial, reflected=crc.reflected)
    value = crc.start
    for byte in data:
        if crc.reflected:
            value = value >> 8 ^ table[(value ^ byte) & 0xFF]
        else:
            value = (value << 8) & 0xFFFF ^ table[value >> 8 ^ byte]
    return value ^ crc.final


@cache
def _table(polynomial: int, *, reflected: bool) -> tuple[int, ...]:
    return tuple(_entry(byte, polynomial, reflected=reflected) for byte in range(256))


def _entry(byte: int, polynomial: int, *, reflected: bool) -> int:
    if reflected:
        mirrored = int(f"{polynomial:016b}"[::-1], 2)
        value = byte
        for _ in range(8):
            value = value >> 1 ^ (mirrored if value & 1 else 0)
        return value
    value = byte << 8
    for _ in range(8):
        value = (value << 1) & 0xFFFF ^ (polynomial if value & 0x8000 else 0)
    return value


class Check(Part):
    """A check value of a frame. Places count from 0; negative ones count from the frame's end, -1 being the last byte.

    Attributes:
        algorithm: the algorithm that computes it.
        at: the place of its first byte.
        first: the place of the first byte that it covers.
        end: the place after the last byte that it covers; if left out, `at`.
        high_first: whether the high byte of a two-byte value comes first.
        digits: whether it is sent as two (or four) hexadecimal digits, in capitals.
    """

    algorithm: Algorithm
    at: int
    first: int = 0
    end: int | None = None
    high_first: bool = False
    digits: bool = False

    @property
    def width(self) -> int:
        """The number of bytes that it takes in the frame."""
        return self.algorithm.width * (2 if self.digits else 1)

    def of(self, frame: bytes) -> bytes:
        """Compute the bytes that the check must have in this frame."""
        end = self.at if self.end is None else self.end
        value = self.algorithm.of(frame[_place(self.first, frame) : _place(end, frame)])
        raw = value.to_bytes(self.algorithm.width, "big" if self.high_first or self.digits else "little")
        return raw.hex().upper().encode("ascii") if self.digits else raw

    def span(self, frame: bytes) -> slice:
        """Return the places of the check's bytes in this frame."""
        begin = _place(self.at, frame)
        return slice(begin, begin + self.width)

    def fits(self, length: int) -> bool:
        """Return whether a frame of that length has room for the check and for the bytes that it covers."""
        frame = bytes(length)
        places = (_place(self.first, frame), _place(self.at if self.end is None else self.end, frame))
        begin = _place(self.at, frame)
        return 0 <= places[0] < places[1] <= length and 0 <= begin <= length - self.width


class Size(Part):
    """The length field of a frame.

    Attributes:
        at: the place of the field, counted from the frame's begin.
        adds: how many bytes longer the frame is than the field says.
        again_at: the place where the field is repeated, counted as in `Check`; None for no repetition.
    """

    at: int = Field(ge=0, le=15)
    adds: int = Field(ge=-15, le=15)
    again_at: int | None = None


class Sealing(Part):
    """The parts that complete a frame: its size and its checks."""

    size: Size | None = None
    checks: tuple[Check, ...] = ()

    def sealed(self, frame: bytes) -> bytes:
        """Fill in the frame's size, and then its checks in the order of the profile.

        Raises ValueError when the frame is too short or too long for them.
        """
        sealed = bytearray(frame)
        if self.size is not None:
            number = len(frame) - self.size.adds
            if not 0 <= number <= 0xFF or self.size.at >= len(frame):
                raise ValueError(f"a frame of {len(frame)} bytes cannot say its size")
            sealed[self.size.at] = number
            if self.size.again_at is not None:
                sealed[_place(self.size.again_at, frame)] = number
        for check in self.checks:
            if not check.fits(len(frame)):
                raise ValueError(f"a frame of {len(frame)} bytes has no room for its check")
            sealed[check.span(frame)] = check.of(bytes(sealed))
        return bytes(sealed)

    def is_sealed(self, frame: bytes) -> bool:
        """Return whether size and checks of a frame are right."""
        if self.size is not None and self.size.again_at is not None:
            place = _place(self.size.again_at, frame)
            if not 0 <= place < len(frame) or frame[place] != frame[self.size.at]:
                return False
        return all(check.fits(len(frame)) and frame[check.span(frame)] == check.of(frame) for check in self.checks)


class Framing(Sealing):
    """The form of frames in a stream. Exactly one of `length`, `terminator` and `size` says where each frame ends.

    Attributes:
        start: the bytes that each frame begins with; may be empty.
        length: the length of every frame.
        terminator: the bytes that each frame ends with, which are part of the frame.
        longest: the greatest length of a frame.
    """

    start: FixedBytes = b""
    length: int | None = Field(default=None, ge=1, le=LONGEST_FRAME)
    terminator: FixedBytes | None = None
    longest: int = Field(default=256, ge=1, le=LONGEST_FRAME)

    @model_validator(mode="after")
    def _one_end(self) -> Self:
        if sum(end is not None for end in (self.length, self.terminator, self.size)) != 1:
            raise ValueError("exactly one of 'length', 'terminator' and 'size' must say where a frame ends")
        if self.terminator == b"":
            raise ValueError("an empty terminator ends nothing")
        if self.terminator is None and not self.start and not self.checks:
            raise ValueError("without a terminator, frames need a start or a check to be found by")
        if self.length is not None and not all(check.fits(self.length) for check in self.checks):
            raise ValueError(f"a frame of {self.length} bytes has no room for its check")
        return self

    @property
    def bears_only_ends(self) -> bool:
        """True when only terminators separate frames, so that the tail of a torn frame looks like a whole one."""
        return self.terminator is not None and not self.start and not self.checks


class FrameSplitter(Splitter):
    """The finder of frames in bytes that come in any pieces, with noise between them.

    When bytes begin like a frame but are none, the search goes on one byte further. So a frame right behind noise is
    found, and one whose begin looks like the end of another. `dropped` counts the bytes that were part of no frame.

    Args:
        framing: the form of a frame.
        torn: whether the first bytes may be the end of a frame whose begin was missed. Where only terminators separate
            frames, everything up to the first terminator is dropped then; so it is behind the begin of a frame that was
            given up, however late it comes.
    """

    def __init__(self, framing: Framing, *, torn: bool = False) -> None:
        super().__init__(torn=torn and framing.bears_only_ends)
        self._framing = framing
        self._pending = b""

    @property
    def is_pending(self) -> bool:
        """True when bytes that may begin a frame wait for its end."""
        return bool(self._pending) or self._overlong

    def feed(self, data: bytes) -> tuple[bytes, ...]:
        """Return the frames that these bytes complete."""
        self.last_dropped = b""
        return self._found(data)

    def _found(self, data: bytes) -> tuple[bytes, ...]:
        self._pending += data
        frames: list[bytes] = []
        if (self._torn or self._given_up) and self._framing.terminator is not None:
            found = self._pending.find(self._framing.terminator)
            if found < 0:
                self._drop(max(0, len(self._pending) - (len(self._framing.terminator) - 1)))
                return ()
            self._drop(found + len(self._framing.terminator))
            self._torn = self._given_up = False
        while self._pending:
            length = self._length()
            if length is None:
                break
            frame, rest = self._pending[:length], self._pending[length:]
            if length and not self._overlong and self._framing.is_sealed(frame):
                frames.append(frame)
                self._pending = rest
            else:
                self._give_up(length)
        return tuple(frames)

    def pause(self) -> tuple[bytes, ...]:
        """Give up the pending frame, unless only terminators separate frames: its rest would look like a whole one."""
        return () if self._framing.bears_only_ends else self.end_of_silence()

    def end_of_silence(self) -> tuple[bytes, ...]:
        """Give up the pending frame after a silence; return the frames hidden in it.

        What comes next is the begin of a frame if the frame was torn. Where only terminators separate frames, it may be
        the rest of one that was seen to begin.
        """
        frames: list[bytes] = []
        self.last_dropped = b""
        given_up = self._framing.bears_only_ends and not self._torn and self.is_pending
        self._torn = False
        while self._pending:
            self._drop(1)
            frames += self._found(b"")
        self._overlong = False
        self._given_up |= given_up
        return tuple(frames)

    def _length(self) -> int | None:
        """Return the length of the frame that the pending bytes may begin with.

        0 when they begin no frame, None while more bytes are needed.
        """
        framing = self._framing
        start = self._pending[: len(framing.start)]
        if not framing.start.startswith(start):
            return 0
        if framing.terminator is not None:
            return self._length_by_terminator(framing.terminator)
        if framing.size is not None:
            if len(self._pending) <= framing.size.at:
                return None
            length = self._pending[framing.size.at] + framing.size.adds
            if length <= max(framing.size.at, len(framing.start)):
                return 0
        else:
            length = framing.length or 0
        if length > framing.longest:
            return 0
        return length if len(self._pending) >= length else None

    def _length_by_terminator(self, terminator: bytes) -> int | None:
        framing = self._framing
        found = self._pending.find(terminator, len(framing.start))
        if found >= 0 and framing.start and not framing.checks:
            # Nothing but the start tells noise from a frame: the last start before the end begins it.
            noise = max(0, self._pending.rfind(framing.start, 0, found))
            self._drop(noise)
            found -= noise
        if found >= 0:
            length = found + len(terminator)
            if length <= framing.longest:
                return length
            self._overlong = self._overlong or not framing.start
            return length if not framing.start else 0
        if len(self._pending) <= framing.longest:
            return None
        if framing.start:
            return 0
        # Keep only as many bytes as may be the begin of a terminator.
        self._overlong = True
        self._drop(len(self._pending) - (len(terminator) - 1))
        return None

    def _give_up(self, length: int) -> None:
        """Drop pending bytes that begin no frame: up to the next possible start, or a whole line without starts."""
        whole = self._framing.terminator is not None and not self._framing.start
        self._overlong = False
        if whole:
            self._drop(length)
            return
        behind = self._pending.find(self._framing.start[:1], 1) if self._framing.start else 1
        self._drop(len(self._pending) if behind < 0 else behind)

    def _drop(self, count: int) -> None:
        self.dropped += count
        self.last_dropped = (self.last_dropped + self._pending[:count])[:LONGEST_FRAME]
        self._pending = self._pending[count:]


def _place(place: int, frame: bytes) -> int:
    return place + len(frame) if place < 0 else place
