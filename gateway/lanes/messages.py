"""What goes into a lane's machine and what comes out of it: events in the past tense, commands imperative.

Instants called `at` are seconds on the monotonic clock; stamps are wall time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from drivers.contract import GatePosition, PointState
from gateway.clock import Stamp
from gateway.domain.access import Decision
from gateway.domain.commands import Command
from gateway.domain.credentials import Credential
from gateway.store import Entry


@dataclass(frozen=True, slots=True)
class Now:
    """This moment on both clocks."""

    at: float
    stamp: Stamp


class Role(StrEnum):
    """What an input means to a lane."""

    ARMING = "arming"
    CLOSING = "closing"
    SAFETY = "safety"


# Events


@dataclass(frozen=True, slots=True)
class CardRead:
    """A reader of this lane read a credential."""

    reader_id: int
    credential: Credential
    at: float


@dataclass(frozen=True, slots=True)
class InputReported:
    """An input of this lane, changed or refreshed. `index` tells safety points apart."""

    role: Role
    state: PointState
    at: float
    index: int = 0


@dataclass(frozen=True, slots=True)
class GateReported:
    """The gate's position, changed or refreshed."""

    position: GatePosition
    at: float


@dataclass(frozen=True, slots=True)
class GateLost:
    """The gate's controller stopped answering."""

    reason: str


@dataclass(frozen=True, slots=True)
class GateRegained:
    """The gate's controller answers again."""


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision that `Decide` asked for."""

    number: int
    decision: Decision


@dataclass(frozen=True, slots=True)
class CommandRequested:
    """Somebody's command, already on disk."""

    command: Command
    deadline: float


@dataclass(frozen=True, slots=True)
class CommandAcknowledged:
    """The device acknowledged the command; whether it moves is another question."""

    command_id: str
    at: float


@dataclass(frozen=True, slots=True)
class CommandFailed:
    """The command did not take effect. `sent` tells whether its bytes may have reached the device."""

    command_id: str
    reason: str
    sent: bool


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has come to look at deadlines; see `machine.wake_at`."""


LaneEvent = (
    CardRead
    | InputReported
    | GateReported
    | GateLost
    | GateRegained
    | Decided
    | CommandRequested
    | CommandAcknowledged
    | CommandFailed
    | Ticked
)


# Commands


@dataclass(frozen=True, slots=True)
class Decide:
    """Look the credential up and decide; `Decided` with the same number must follow, whatever happens."""

    number: int
    credential: Credential


@dataclass(frozen=True, slots=True)
class SendCommand:
    """Hand a command to the gate's driver; acknowledged or failed must follow."""

    command: Command
    deadline: float


@dataclass(frozen=True, slots=True)
class Record:
    """Write this down durably, in order, beside the lane's work."""

    entry: Entry


LaneCommand = Decide | SendCommand | Record
