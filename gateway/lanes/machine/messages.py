"""Messages of a lane's machine: events go in, named in the past tense; commands come out, imperative.

Instants called `at` are seconds on the monotonic clock; stamps are wall time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from drivers.contract import Feedback, GatePosition, PointState
from gateway.domain.access import Decision
from gateway.domain.commands import Command
from gateway.domain.credentials import Credential
from gateway.lanes.machine.state.orders import Order
from gateway.runtime.clock import Stamp
from gateway.store import Entry


@dataclass(frozen=True, slots=True)
class Now:
    """This moment on both clocks."""

    at: float
    stamp: Stamp


class Role(StrEnum):
    """The role of an input in a lane. `FAR` is the arming loop on the other side of a two-way lane."""

    ARMING = "arming"
    FAR = "far"
    CLOSING = "closing"
    SAFETY = "safety"
    FIRE = "fire"
    LOCAL = "local"


# Events


@dataclass(frozen=True, slots=True)
class CardRead:
    """A reader of this lane read a credential."""

    reader_id: int
    credential: Credential
    at: float


@dataclass(frozen=True, slots=True)
class PlateRead:
    """A plate camera of this lane read a plate; see `drivers.contract.PlateSeen`.

    `cards` are those that are listed under exactly this plate, whatever their status.
    """

    camera_id: int
    plate: str
    confidence: float
    vehicle: str
    direction: str
    at: float
    cards: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class KeysTyped:
    """Keys of a reader's keypad. They are a secret: shown nowhere."""

    reader_id: int
    keys: str = field(repr=False)
    at: float


@dataclass(frozen=True, slots=True)
class InputReported:
    """An input of this lane, changed or refreshed. `index` tells safety points apart."""

    role: Role
    state: PointState
    at: float
    index: int = 0


@dataclass(frozen=True, slots=True)
class InputMissed:
    """An input's device did not answer a poll; `in_a_row` polls by now."""

    role: Role
    in_a_row: int
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
class GateLossExplained:
    """The gate's controller is still lost, for another reason than was reported."""

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
class OrderGiven:
    """A person's standing order, or None: the schedule counts again."""

    order: Order | None
    by: str


@dataclass(frozen=True, slots=True)
class GrantRemembered:
    """A vehicle that was let in before the restart and was not seen to pass; that counts until `until`.

    `holder` and `opens` are those of the decision: what its passage does to presence.
    """

    card_id: int | None
    credential: str
    until: float
    holder: str = ""
    opens: bool = False


@dataclass(frozen=True, slots=True)
class StopRemembered:
    """Before the restart this person stopped the gate, and nothing has ended that since."""

    by: str
    during_fire: bool


@dataclass(frozen=True, slots=True)
class OrderScheduled:
    """The schedule's order from now on, None for none. `doubt`: what an untrusted clock means for that, or ""."""

    order: Order | None
    doubt: str = ""


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
    """A deadline may be due; see `machine.wake_at`."""


LaneEvent = (
    CardRead
    | PlateRead
    | KeysTyped
    | InputReported
    | InputMissed
    | GateReported
    | GateLost
    | GateLossExplained
    | GateRegained
    | Decided
    | CommandRequested
    | OrderGiven
    | OrderScheduled
    | GrantRemembered
    | StopRemembered
    | CommandAcknowledged
    | CommandFailed
    | Ticked
)


# Commands


@dataclass(frozen=True, slots=True)
class Decide:
    """Look the credential up and decide; `Decided` with the same number must follow, whatever happens.

    `direction` is "entry" or "exit", `arrived` when the vehicle was first noticed. `pin` is what was typed after the
    card where the lane requires it, else "". `plates` are those that were read of this vehicle for sure.
    """

    number: int
    credential: Credential
    direction: str
    arrived: Stamp
    pin: str = field(default="", repr=False)
    plates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SendCommand:
    """Hand a command to the gate's driver; acknowledged or failed must follow."""

    command: Command
    deadline: float


@dataclass(frozen=True, slots=True)
class Record:
    """Record this durably, in order, beside the lane's work."""

    entry: Entry


@dataclass(frozen=True, slots=True)
class Show:
    """Show feedback at a reader; one without lamps ignores it."""

    reader_id: int
    feedback: Feedback


LaneCommand = Decide | SendCommand | Record | Show
