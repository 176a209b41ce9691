"""Messages of a lane's machine: events go in, named in the past tense; commands come out, imperative.

Instants called `at` are seconds on the monotonic clock; stamps are wall time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from drivers.contract import Feedback, GatePosition, PointState
from gateway.domain.access import Decision
from gateway.domain.commands import Command
from gateway.domain.credentials import Credential
from gateway.lanes.machine.state.orders import Order
from gateway.runtime.clock import Stamp
from gateway.site.roles import Role
from gateway.store import Entry


@dataclass(frozen=True, slots=True)
class Now:
    """This moment on both clocks."""

    at: float
    stamp: Stamp


# Events


@dataclass(frozen=True, slots=True)
class CardRead:
    """A reader of this lane read a credential; `held` if it has stayed there since it was reported before."""

    reader_id: int
    credential: Credential
    at: float
    held: bool = False


@dataclass(frozen=True, slots=True)
class PlateRead:
    """A plate camera of this lane read a plate; see `drivers.contract.PlateSeen`.

    `cards` are the ids of the cards listed under exactly this plate, whatever their status.
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
    """Keys typed at a reader's keypad. They are secret, and shown nowhere."""

    reader_id: int
    keys: str = field(repr=False)
    at: float


@dataclass(frozen=True, slots=True)
class InputReported:
    """A reading of one of the lane's inputs, changed or not. `index`: its place among those of its role, from 0."""

    role: Role
    state: PointState
    at: float
    index: int = 0


@dataclass(frozen=True, slots=True)
class InputMissed:
    """An input's device has not answered a poll, by now the last `in_a_row` of them."""

    role: Role
    in_a_row: int
    index: int = 0


@dataclass(frozen=True, slots=True)
class GateReported:
    """A reading of the gate's position, changed or not."""

    position: GatePosition
    at: float


@dataclass(frozen=True, slots=True)
class GateLost:
    """The gate's controller stopped answering."""

    reason: str


@dataclass(frozen=True, slots=True)
class GateLossExplained:
    """The gate's controller is still lost, but for another reason than was reported before."""

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
    """A command from outside the lane. A stop may not be on disk yet; other commands are, unless the disk fails."""

    command: Command
    deadline: float


@dataclass(frozen=True, slots=True)
class OrderGiven:
    """A person gave a standing order, or lifted it (None), so that the schedule counts again."""

    order: Order | None
    by: str


@dataclass(frozen=True, slots=True)
class GrantRemembered:
    """A vehicle was let in before the restart and not seen to pass. It may still pass until `until`.

    `holder` and `opens` come from the decision: they say what the passage changes in the presence.
    """

    card_id: int | None
    credential: str
    until: float
    holder: str = ""
    opens: bool = False


@dataclass(frozen=True, slots=True)
class StopRemembered:
    """A person stopped the gate before the restart, and nothing has ended the stop since."""

    by: str
    during_fire: bool


@dataclass(frozen=True, slots=True)
class OrderScheduled:
    """The schedule's order changed; None for none. `doubt`: what an untrusted clock means for the lane, or ""."""

    order: Order | None
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class CommandAcknowledged:
    """The device acknowledged the command. That does not show that the gate moves."""

    command_id: str
    at: float


@dataclass(frozen=True, slots=True)
class CommandFailed:
    """The driver reported a failure. `sent`: bytes may have reached the device, so that the command may take effect."""

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
    card where the lane requires it, else "". `plates` are those read of this vehicle with enough confidence.
    """

    number: int
    credential: Credential
    direction: str
    arrived: Stamp
    pin: str = field(default="", repr=False)
    plates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SendCommand:
    """Hand a command to the gate's driver; `CommandAcknowledged` or `CommandFailed` must follow."""

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
