"""The last frames of a line, in words. They are decoded when somebody asks; until then the line keeps only bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from drivers.bus.bus import Bus
from drivers.bus.line_quality import Failure
from drivers.bus.recent import Turn
from drivers.modbus.frames import Framing
from drivers.modbus.profile import UnitProfile
from drivers.modbus.words import reply_words, request_words, stray_words
from gateway.domain.errors import NotFoundError
from gateway.runtime.clock import Clock
from gateway.texts import text

MOST_FRAMES = 200
_LONGEST_TEXT = 80
_PRINTABLE_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Frame:
    """A request with its answer, or stray bytes that nobody asked for.

    Attributes:
        number: its number, which counts up; with the last one a caller asks for newer frames.
        at: when it was, in wall micros.
        unit: the address of the unit that was asked, None for stray bytes.
        devices: the names of the site's devices at that address.
        purpose: poll, command, probe (of a silent unit), scan, or stray.
        asked: the request in words.
        told: the answer, or the fault of it, in words.
        good: whether the answer is valid.
        milliseconds: how long it took until the answer, or until the request was given up.
        sent: the request in hexadecimal, "" if it must not be shown.
        received: the received bytes in hexadecimal, "" if they must not be shown.
    """

    number: int
    at: int
    unit: int | None
    devices: tuple[str, ...]
    purpose: str
    asked: str
    told: str
    good: bool
    milliseconds: float
    sent: str
    received: str


@dataclass(frozen=True, slots=True)
class ModbusUnit:
    """A Modbus device of the site: its address, the framing of its line, and its profile."""

    unit: int
    framing: Framing
    profile: UnitProfile


@dataclass(frozen=True, slots=True)
class PolledLine:
    """A line with polled units.

    Attributes:
        bus: the bus that owns the line.
        framing: the framing of its Modbus devices; None when it has none.
        names: the names of the site's devices, by unit address.
        card_units: the addresses of units whose answers hold numbers of cards or tags, which nobody may see.
        is_moving: returns whether a gate on the line moves now; its polls are fast then, and nothing may delay them.
        devices: its Modbus devices, by device id.
    """

    bus: Bus
    framing: Framing | None
    names: Mapping[int, tuple[str, ...]]
    card_units: frozenset[int]
    is_moving: Callable[[], bool]
    devices: Mapping[int, ModbusUnit] = field(default_factory=dict)


class LineFrames:
    """The last frames of each of the site's lines."""

    def __init__(self, *, lines: Mapping[str, PolledLine], clock: Clock) -> None:
        self._lines = lines
        self._clock = clock

    def since(self, name: str, number: int) -> tuple[Frame, ...]:
        """Return a line's last frames after this number, oldest first, at most `MOST_FRAMES`.

        Raises NotFoundError for an unknown line.
        """
        line = self._lines.get(name)
        if line is None:
            raise NotFoundError(text("refused.line_unpolled", line=repr(name)))
        turns = line.bus.turns_since(number)[-MOST_FRAMES:]
        offset = self._clock.wall().micros - round(self._clock.monotonic() * 1_000_000)
        return tuple(_frame(line, turn, at=offset + round(turn.at * 1_000_000)) for turn in turns)


def _frame(line: PolledLine, turn: Turn, *, at: int) -> Frame:
    asked, told = _words(line, turn)
    is_shown = not _may_hold_card(line, turn)
    return Frame(
        number=turn.number,
        at=at,
        unit=turn.unit,
        devices=() if turn.unit is None else line.names.get(turn.unit, ()),
        purpose="stray" if turn.priority is None else turn.priority.name.lower(),
        asked=asked,
        told=told,
        good=turn.failure is None and turn.unit is not None,
        milliseconds=round(turn.took * 1000, 1),
        sent=turn.request.hex(" ") if is_shown else "",
        received=turn.received.hex(" ") if is_shown else "",
    )


def _may_hold_card(line: PolledLine, turn: Turn) -> bool:
    """Return whether the bytes may hold a card's number: a reader's own, or late ones that another request meets."""
    is_answer = turn.unit is not None and turn.failure in {None, Failure.SILENT}
    return bool(line.card_units) and (turn.unit in line.card_units or not is_answer)


def _words(line: PolledLine, turn: Turn) -> tuple[str, str]:
    if line.framing is None or (turn.unit is not None and _may_hold_card(line, turn)):
        return _other_words(line, turn)
    if turn.unit is None:
        return "", stray_words(line.framing, turn.received, turn.failure)
    told = reply_words(line.framing, turn.request, turn.received, turn.failure, took=turn.took)
    return request_words(line.framing, turn.request), told


def _other_words(line: PolledLine, turn: Turn) -> tuple[str, str]:
    """Describe a frame that is not Modbus: by its text if it is text, but never what may hold a card's number."""
    if turn.failure is Failure.SILENT:
        told = f"no answer within {turn.took * 1000:.0f} ms"
    elif line.card_units:
        told = f"{len(turn.received)} bytes, not shown: they may hold the number of a card"
    else:
        told = _text(turn.received)
    if turn.failure in {Failure.GARBLED, Failure.LATE, Failure.ECHOED}:
        told = f"{told} ({turn.failure.value})"
    return ("" if turn.unit is None else "a question" if line.card_units else _text(turn.request)), told


def _text(data: bytes) -> str:
    shown = "".join(chr(byte) if 0x20 <= byte < 0x7F else "·" for byte in data)
    if not data:
        return "nothing"
    is_text = sum(character != "·" for character in shown) >= _PRINTABLE_SHARE * len(shown)
    return shown[:_LONGEST_TEXT] if is_text else f"{len(data)} bytes"
