"""The contract of every driver, and the values that it reports.

A driver owns its connection: `run()` connects, reconnects with backoff and reports through `Reports` until it is
cancelled, and it stops within a second of that. All instants are seconds on the monotonic clock of the process.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, runtime_checkable

MonotonicSeconds = float


class Cause(StrEnum):
    """A cause of a line's or a unit's fault that is known for sure, so that advice can follow from it."""

    REFUSED = "refused"
    NO_ROUTE = "no_route"
    SILENT_HOST = "silent_host"
    NO_PORT = "no_port"
    OTHER_UNIT = "other_unit"
    OTHER_NUMBER = "other_number"
    OTHER_LENGTH = "other_length"
    OTHER_SERVICE = "other_service"


class DriverError(Exception):
    """The base of drivers' errors; callers react to the subclass. `cause` is the cause where it is known for sure."""

    def __init__(self, *text: object, cause: Cause | None = None) -> None:
        super().__init__(*text)
        self.cause = cause


class LinkError(DriverError):
    """The way to the device is broken (unplugged, refused, timed out). Transient: the driver itself tries again."""


class TooLate(LinkError):
    """The device answers so late that its answers cannot be matched to their requests."""


class LineDown(LinkError):
    """The line itself is not open, or its queue is full. Nothing was sent."""


class DeviceFault(DriverError):
    """The device answered, and refused or reported a fault of its own. Trying the same again will not help.

    `said`: its answer in a few words, without what was asked; the whole text where that is no different.
    """

    def __init__(self, *text: object, cause: Cause | None = None, said: str = "") -> None:
        super().__init__(*text, cause=cause)
        self.said = said or str(self)


class ProtocolViolation(DriverError):
    """Bytes arrived that no conforming device sends. They are dropped and counted, and the line is drained."""


class DeadlinePassed(DriverError):
    """The command's deadline passed before its first byte was written. Nothing was sent."""


class NotPermitted(DriverError):
    """The command became forbidden before its first byte was written. Nothing was sent."""


class GatePosition(StrEnum):
    """The position of the leaf or arm, as far as the device itself reports it. `UNKNOWN` is never a reason to move."""

    UNKNOWN = "unknown"
    CLOSED = "closed"
    OPENING = "opening"
    OPEN = "open"
    CLOSING = "closing"
    STOPPED = "stopped"


class PointState(StrEnum):
    """A digital input after inversion. `UNKNOWN` covers never read, offline and stale."""

    OFF = "off"
    ON = "on"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CardPresented:
    """One reading of one credential.

    Attributes:
        device_id: the reader's id.
        bit_length: how many bits were read; 0 when the reader gives text alone.
        bits: the bits as an integer, most significant first; 0 when the reader gives text alone.
        text: the characters as sent when the reader speaks text, else "".
        at: when the last byte of the reading arrived.
        held: whether the card has stayed at the reader since it was reported before.
    """

    device_id: int
    bit_length: int
    bits: int
    text: str
    at: MonotonicSeconds
    held: bool = False


@dataclass(frozen=True, slots=True)
class GateMoved:
    """The gate's position. `at` is the instant at which the device was asked, so the position is no older than that.

    Sent at each change, and again as a refresh at least every 2 s.
    """

    device_id: int
    position: GatePosition
    at: MonotonicSeconds


@dataclass(frozen=True, slots=True)
class PointChanged:
    """An input's state. `at` is the instant at which the device was asked, so the state is no older than that.

    Sent at each change, and again as a refresh at least every 2 s.
    """

    device_id: int
    point: str
    state: PointState
    at: MonotonicSeconds


@dataclass(frozen=True, slots=True)
class PollMissed:
    """A poll was not answered. Earlier reports still count, but no gate may be closed on their strength.

    The next answer reports every point again.

    Attributes:
        device_id: the device's id.
        in_a_row: how many polls in a row were missed, this one included.
        at: when the poll was given up.
    """

    device_id: int
    in_a_row: int
    at: MonotonicSeconds


@dataclass(frozen=True, slots=True)
class PlateSeen:
    """One reading of a vehicle's plate. A camera may read one vehicle several times, and differently.

    Attributes:
        device_id: the plate camera's id.
        plate: as the camera gave it, upper case, without blanks and dashes.
        confidence: 0.0 to 1.0; 1.0 when the camera gives none.
        vehicle: the camera's own id of this vehicle, the same in all readings of it; "" for none.
        direction: "approaching", "leaving" or "" when not known.
        at: when the reading was complete here.
    """

    device_id: int
    plate: str
    confidence: float
    vehicle: str
    direction: str
    at: MonotonicSeconds


@dataclass(frozen=True, slots=True)
class KeysPressed:
    """Keys of a reader's keypad, as typed."""

    device_id: int
    keys: str
    at: MonotonicSeconds


@dataclass(frozen=True, slots=True)
class TamperChanged:
    """A device's housing was opened, or closed again."""

    device_id: int
    tampered: bool
    at: MonotonicSeconds


@dataclass(frozen=True, slots=True)
class MessageRefused:
    """A message of a device that answers was dropped: it cannot be read, or it may not be accepted.

    The next `CardPresented`, `KeysPressed` or `PlateSeen` shows that the device's messages are accepted.

    Attributes:
        device_id: the device's id.
        reason: why, in one sentence that continues "a message was refused: ".
        raw: the message's first bytes; empty when it had none.
        at: when it was complete here.
    """

    device_id: int
    reason: str
    raw: bytes
    at: MonotonicSeconds


@dataclass(frozen=True, slots=True)
class DeviceConnected:
    """The device answers. Sent once per recovery."""

    device_id: int
    at: MonotonicSeconds


@dataclass(frozen=True, slots=True)
class DeviceLost:
    """The device stopped answering. Sent once per loss; all its points are `UNKNOWN` until it is back.

    `answers` is True when the device still answers but cannot be used (wrong key, every request refused).
    """

    device_id: int
    reason: str
    at: MonotonicSeconds
    answers: bool = False


@dataclass(frozen=True, slots=True)
class LossExplained:
    """A lost device is still lost, now for another reason. The fields mean the same as those of `DeviceLost`."""

    device_id: int
    reason: str
    at: MonotonicSeconds
    answers: bool = False


Report = (
    CardPresented
    | PlateSeen
    | KeysPressed
    | TamperChanged
    | MessageRefused
    | GateMoved
    | PointChanged
    | PollMissed
    | DeviceConnected
    | DeviceLost
    | LossExplained
)
Reports = Callable[[Report], None]
"""The receiver of a driver's reports. Called on the loop's thread; never blocks, never raises."""


Forbidden = Callable[[], str]
"""Returns in one sentence what forbids a command at this instant, or "" for nothing. Never blocks, never raises."""


class Driver(Protocol):
    """Anything with a device behind it."""

    @property
    def device_id(self) -> int:
        """The device's id in the site file, the same as at central."""
        ...

    async def run(self, reports: Reports) -> None:
        """Keep the device connected and report until cancelled. Never returns otherwise."""
        ...


@runtime_checkable
class PolledDriver(Driver, Protocol):
    """A driver that polls its device."""

    def watch_closely(self, *, until: MonotonicSeconds) -> None:
        """Poll as fast as the line allows until `until`. Returns at once."""
        ...


class Gate(Driver, Protocol):
    """A barrier, door or turnstile that can be commanded.

    A command returns once the device acknowledged it. That is *not* yet movement, which only `GateMoved` reports.
    It raises `LinkError` when the device does not answer, `DeviceFault` when it refuses and `DeadlinePassed` when
    the line was not free before `deadline`. It is never queued for a device that is away, and never tried again.

    `forbidden` is called once, right before the first byte is written, when all reports up to then were delivered. If
    it returns a reason, the command stops with `NotPermitted`. So nothing that changed while the line was busy is
    missed: no input, and no later command that replaced this one.
    """

    async def open(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to open."""
        ...

    async def close(self, *, deadline: MonotonicSeconds, forbidden: Forbidden) -> None:
        """Command the gate to close. `forbidden` says what makes closing unsafe, so it is required."""
        ...

    async def stop(self, *, deadline: MonotonicSeconds, forbidden: Forbidden | None = None) -> None:
        """Command the gate to stop where it is."""
        ...


@runtime_checkable
class StoppingGate(Gate, Protocol):
    """A gate that says whether it has a command to stop. Any other gate counts as one without."""

    @property
    def stops(self) -> bool:
        """True when the gate has a command to stop."""
        ...


class Feedback(StrEnum):
    """Feedback of a reader to the person before it. `AWAITING`: it waits for a PIN or a second card."""

    GRANTED = "granted"
    DENIED = "denied"
    AWAITING = "awaiting"
    READY = "ready"


class Reader(Driver, Protocol):
    """A card, tag, code or plate reader. Reports `CardPresented`, `KeysPressed` or `PlateSeen`."""


@runtime_checkable
class ShowingReader(Reader, Protocol):
    """A reader with lamps or a buzzer. Any driver with `show` is one."""

    def show(self, feedback: Feedback) -> None:
        """Show feedback. Returns at once; a reader that is away never shows it."""
        ...
