"""libosdp's control panel for one open line, and the choice of the readers to poll.

libosdp 3.2.9 asks a silent reader eight times, once a second, and then leaves it alone for five minutes. That is too
slow. Here a reader counts as lost once it is silent for 3 s and 0.25 s for each reader on the line. Absent readers are
asked again in turn, one every 2 s, which takes at most a fifth of the line's time.

Events are taken out of a queue after each refresh, because a command inside libosdp's callbacks would deadlock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from osdp import (
    Capability,
    CardFormat,
    Command,
    CommandLEDColor,
    ControlPanel,
    Event,
    EventNotification,
    LibFlag,
    LogLevel,
    PDInfo,
    StatusReportType,
)

from drivers.contract import Feedback
from drivers.osdp.channel import Absence, LineChannel, why_absent
from drivers.osdp.messages import (
    LONGEST_CARD_BITS,
    CardRead,
    Connected,
    Happening,
    KeysTyped,
    Lost,
    Refused,
    Setup,
    TamperSeen,
)

_SILENT_SECONDS = 3.0
_SLOWER_PER_READER = 0.25
"""Added to the silence for each reader: until it counts as lost, a silent reader takes 200 ms of each second."""

_ASK_EVERY = 2.0
_ASK_SECONDS = 1.0
_HANDSHAKE_SECONDS = 3.0
_REST_SECONDS = 0.2

_LONGEST_TEXT = 128
_STALE_SECONDS = 0.5
"""Seconds after a reader came back in which its readings are dropped.

They may be old ones, while another vehicle stands there now.
"""

_KEYS = {0x0D: "#", 0x7F: "*"}
_LOCAL_STATUS = {"command": Command.Status, "type": StatusReportType.Local, "report": b""}
Order = Mapping[str, int | bool]

_SHOWN_FOR = 30  # in units of 100 ms; libosdp cuts it to 8 bits
_SET_TEMPORARY = 2
_CANCEL_TEMPORARY = 1
_TONE = 2


def _ignored(*_: object) -> int:
    return 0


class _Stage(Enum):
    ASKED = auto()
    CONNECTED = auto()
    RESTING = auto()


@dataclass(slots=True)
class _ReaderState:
    """The state of one reader. `offset` is the number by which libosdp knows it."""

    offset: int
    address: int
    stage: _Stage
    since: float
    until: float
    lost_reported: Absence | None = None
    last_in: float = float("-inf")
    fresh_from: float = float("inf")


class Panel:
    """The panel of an open line. Each reader must prove its own key; only `setup.install` allows the default key.

    Args:
        setup: the line's settings and its readers.
        channel: the channel of the line's bytes.
        monotonic: the clock.
    """

    def __init__(self, *, setup: Setup, channel: LineChannel, monotonic: Callable[[], float] = time.monotonic) -> None:
        flags = [] if setup.install else [LibFlag.EnforceSecure]
        infos = [
            PDInfo(reader.address, channel, scbk=bytes.fromhex(reader.key), flags=[LibFlag.EnableNotification, *flags])
            for reader in setup.readers
        ]
        self._panel = ControlPanel(infos, log_level=LogLevel.Emergency)
        self._channel = channel
        self._monotonic = monotonic
        now = monotonic()
        self._silent = _SILENT_SECONDS + _SLOWER_PER_READER * len(infos)
        self._next_ask = now
        self._with_default_key: set[int] = set()
        self._readers = tuple(
            _ReaderState(offset, reader.address, _Stage.ASKED, now, now + self._silent)
            for offset, reader in enumerate(setup.readers)
        )

    def turn(self) -> tuple[Happening, ...]:
        """Refresh the panel once, without waiting, and return the messages due. Call it every 10 ms."""
        return tuple(self._turn())

    def _turn(self) -> Iterator[Happening]:
        self._panel.ctx.refresh()
        now = self._monotonic()
        for reader in self._readers:
            while (event := self._panel.get_event(reader.address, timeout=-1)) is not None:
                for happening in self._happenings_of(reader, event):
                    is_fresh = reader.stage is _Stage.CONNECTED and now >= reader.fresh_from
                    if is_fresh or isinstance(happening, TamperSeen):
                        yield happening
        online = self._panel.ctx.status() & self._panel.ctx.sc_status()
        for reader in self._readers:
            is_in = bool(online >> reader.offset & 1) and reader.offset not in self._with_default_key
            yield from self._judged(reader, is_in=is_in, now=now)
        self._ask_next(now, online)

    def show(self, address: int, feedback: Feedback) -> None:
        """Show feedback at a connected reader, as far as it has a lamp and a buzzer."""
        for reader in self._readers:
            if reader.address == address and reader.stage is _Stage.CONNECTED:
                for capability, order in orders(feedback):
                    level, _ = self._panel.ctx.check_capability(reader.offset, capability)
                    if level:
                        self._panel.ctx.submit_command(reader.offset, dict(order))

    def close(self) -> None:
        """Break the reference cycle between panel and libosdp's context, which Python's collector cannot free."""
        self._panel.ctx.set_event_callback(_ignored)
        self._panel.ctx.set_command_completion_callback(_ignored)

    def _judged(self, reader: _ReaderState, *, is_in: bool, now: float) -> Iterator[Happening]:
        last = self._channel.last_replies.get(reader.address)
        match reader.stage:
            case _Stage.ASKED if is_in:
                was_away = now - reader.last_in > _SILENT_SECONDS
                reader.fresh_from = now + _STALE_SECONDS if was_away else now
                reader.stage, reader.lost_reported = _Stage.CONNECTED, None
                self._panel.ctx.submit_command(reader.offset, dict(_LOCAL_STATUS))
                yield Connected(address=reader.address)
            case _Stage.ASKED:
                has_answered = last is not None and last.at >= reader.since
                until = reader.until if not has_answered else max(reader.until, reader.since + _HANDSHAKE_SECONDS)
                if now >= until:
                    self._rest(reader, now)
                    code = last.code if last and has_answered else None
                    reason = why_absent(code)
                    if reason is not reader.lost_reported:
                        reader.lost_reported = reason
                        yield Lost(address=reader.address, reason=reason, answers=code is not None)
            case _Stage.CONNECTED:
                if last is None or now - last.at > self._silent:
                    self._rest(reader, now)
                    reader.lost_reported = Absence.SILENT
                    yield Lost(address=reader.address, reason="stopped answering")
                elif not is_in:
                    # One wrong bit ends a secure channel: ask again at once; only without an answer is it lost.
                    self._rest(reader, now)
                    self._next_ask = now
                else:
                    reader.last_in = now
            case _Stage.RESTING:
                pass

    def _rest(self, reader: _ReaderState, now: float) -> None:
        self._panel.ctx.disable_pd(reader.offset)
        reader.stage, reader.since = _Stage.RESTING, now

    def _ask_next(self, now: float, online: int) -> None:
        """Ask the reader that has rested longest, unless another is being asked, or was asked within the last 2 s.

        A reader that libosdp still counts as online is left out: libosdp disables it only when its exchange has ended,
        so it would seem to be connected again at once.
        """
        if now < self._next_ask or any(reader.stage is _Stage.ASKED for reader in self._readers):
            return
        resting = [
            reader for reader in self._readers if reader.stage is _Stage.RESTING and not online >> reader.offset & 1
        ]
        reader = min(resting, key=lambda reader: reader.since, default=None)
        if reader is None or now - reader.since < _REST_SECONDS:
            return
        self._panel.ctx.enable_pd(reader.offset)
        self._next_ask = now + _ASK_EVERY
        reader.stage, reader.since, reader.until = _Stage.ASKED, now, now + _ASK_SECONDS

    def _happenings_of(self, reader: _ReaderState, event: Mapping[str, object]) -> Iterator[Happening]:
        match event:
            case {"event": Event.CardRead, "format": CardFormat.ASCII, "data": bytes(data)}:
                yield from text_card(reader.address, data)
            case {"event": Event.CardRead, "length": int(length), "data": bytes(data)}:
                yield bit_card(reader.address, length, data)
            case {"event": Event.KeyPress, "data": bytes(data)}:
                yield typed_keys(reader.address, data)
            case {"event": Event.Status, "type": StatusReportType.Local, "report": bytes(report)} if report:
                yield TamperSeen(address=reader.address, tampered=bool(report[0]))
            case {
                "event": Event.Notification,
                "type": EventNotification.SecureChannelStatus,
                "arg0": is_active,
                "arg1": is_default,
            }:
                if is_active and is_default:
                    self._with_default_key.add(reader.offset)
                else:
                    self._with_default_key.discard(reader.offset)


def text_card(address: int, data: bytes) -> Iterator[CardRead | Refused]:
    """Yield a card that the reader sends as text; none for an empty text."""
    text = data.decode("latin-1").strip("\0\r\n ")
    if not text:
        return
    if len(text) <= _LONGEST_TEXT and text.isascii() and text.isprintable():
        yield CardRead(address=address, bit_length=0, bits=0, text=text)
    else:
        yield _refused(address, "a card's text with bytes that are no characters, or too many", data)


def bit_card(address: int, length: int, data: bytes) -> CardRead | Refused:
    """Return a card of so many bits, which are left-aligned in their bytes."""
    if not 0 < length <= min(LONGEST_CARD_BITS, 8 * len(data)):
        return _refused(address, f"a card of {length} bits in {len(data)} bytes", data)
    bits = int.from_bytes(data, "big") >> (8 * len(data) - length)
    return CardRead(address=address, bit_length=length, bits=bits, text="")


def typed_keys(address: int, data: bytes) -> KeysTyped | Refused:
    """Return the keys; those that are no characters are left out."""
    keys = "".join(_KEYS.get(code, chr(code)) for code in data if code in _KEYS or 0x21 <= code < 0x7F)
    if not keys:
        return _refused(address, "keys that are no characters", data)
    return KeysTyped(address=address, keys=keys[:128])


def _refused(address: int, reason: str, raw: bytes) -> Refused:
    return Refused(address=address, reason=reason, raw=raw[:128].hex())


def orders(feedback: Feedback) -> tuple[tuple[int, Order], ...]:
    """Return the commands for this feedback in order, each with the capability that a reader needs for it.

    - Granted: green for 3 s and one tone.
    - Denied: blinking red for 3 s and three short tones.
    - Awaiting: slowly blinking amber for 3 s and two short tones.
    - Ready: ends the lamp's feedback early, so that the reader shows its own idle state again.
    """
    match feedback:
        case Feedback.GRANTED:
            return (_lamp(CommandLEDColor.Green, on=10, off=0), _tones(1, on=3))
        case Feedback.DENIED:
            return (_lamp(CommandLEDColor.Red, on=2, off=2), _tones(3, on=1))
        case Feedback.AWAITING:
            return (_lamp(CommandLEDColor.Amber, on=5, off=5), _tones(2, on=1))
        case Feedback.READY:
            return (_lamp(CommandLEDColor.Black, on=0, off=0, control=_CANCEL_TEMPORARY),)


def _lamp(colour: int, *, on: int, off: int, control: int = _SET_TEMPORARY) -> tuple[int, Order]:
    return Capability.LEDControl, {
        "command": Command.LED,
        "reader": 0,
        "led_number": 0,
        "temporary": True,
        "control_code": control,
        "on_count": on,
        "off_count": off,
        "on_color": colour,
        "off_color": CommandLEDColor.Black,
        "timer_count": _SHOWN_FOR,
    }


def _tones(count: int, *, on: int) -> tuple[int, Order]:
    return Capability.AudibleControl, {
        "command": Command.Buzzer,
        "reader": 0,
        "control_code": _TONE,
        "on_count": on,
        "off_count": 1,
        "rep_count": count,
    }
