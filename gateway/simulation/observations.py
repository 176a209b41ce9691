"""Observations from outside while a simulation runs: the only input of checks. Instants are loop seconds."""

from __future__ import annotations

from dataclasses import dataclass

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.store import Books, Entry, Recorded


@dataclass(frozen=True, slots=True)
class Observation:
    """Anything seen, and when."""

    at: float


@dataclass(frozen=True, slots=True)
class Injected(Observation):
    """A fault begins."""

    kind: str
    where: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Started(Observation):
    """A gateway has come up: the boot that marks its ids, and the commands that it found unfinished."""

    boot: str
    unfinished: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended(Observation):
    """The gateway is gone: by a power cut, or stopped."""

    boot: str
    clean: bool


@dataclass(frozen=True, slots=True)
class ToldToStop(Observation):
    """The gateway was told to stop in order. It takes no new command from now on."""


@dataclass(frozen=True, slots=True)
class Presented(Observation):
    """A card was held to a reader.

    Attributes:
        good: whether it may pass; None while that changes, or where it hangs on a clock that is not trusted.
        calm: nothing was wrong at this lane for a while, so that it must be let in at once if it is good.
    """

    lane: str
    card: str
    good: bool | None
    calm: bool


@dataclass(frozen=True, slots=True)
class Asked(Observation):
    """A person asked for a command; `calm`: nothing was wrong at this lane for a while, and the gate was closed."""

    lane: str
    action: GateAction
    calm: bool = False


@dataclass(frozen=True, slots=True)
class Called(Observation):
    """A gate's driver was asked to act; nothing is on the wire yet."""

    lane: str
    action: GateAction


@dataclass(frozen=True, slots=True)
class Wrote(Observation):
    """The first byte of a command went out.

    Attributes:
        deadline: what the driver was given.
        in_the_way: what really was under the gate, had honest inputs, and was there when the driver looked last.
        hidden: what was there, but could not be known.
    """

    lane: str
    action: GateAction
    deadline: float
    in_the_way: tuple[str, ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answered(Observation):
    """The driver came back from a command: the device acknowledged it, the answer was lost, or it never went out.

    `kept_by_line`: it never went out since the line was down, or busy until its deadline.
    """

    lane: str
    action: GateAction
    acknowledged: bool = True
    kept_by_line: bool = False


@dataclass(frozen=True, slots=True)
class PointReported(Observation):
    """A gate's driver reported an input that changed, or is read for the first time."""

    lane: str
    point: str
    state: PointState


@dataclass(frozen=True, slots=True)
class PositionReported(Observation):
    """A gate's driver reported its position; as with inputs."""

    lane: str
    position: GatePosition


@dataclass(frozen=True, slots=True)
class Refreshed(Observation):
    """A driver read these points anew (`position` is one); what it then reports as changed follows."""

    lane: str
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GateAway(Observation):
    """A gate's driver reported that it lost or found its device, which has these points."""

    lane: str
    away: bool
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ModuleAway(Observation):
    """An input module's driver reported that it lost or found its device, which has these points."""

    lane: str
    away: bool
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PollMissed(Observation):
    """A device with these points did not answer so many polls in a row."""

    lane: str
    points: tuple[str, ...]
    in_a_row: int


@dataclass(frozen=True, slots=True)
class Arrived(Observation):
    """A command reached the gate's controller, over a line that keeps what was not delivered."""

    lane: str
    action: GateAction


@dataclass(frozen=True, slots=True)
class Acknowledged(Observation):
    """An entry was reported as being on disk."""

    entry: Entry
    recorded: Recorded
    true_micros: int


@dataclass(frozen=True, slots=True)
class Found(Observation):
    """The contents of a store: the events with these ids, and their texts."""

    events: dict[int, tuple[int, int, str]]
    passages: frozenset[int]
    whole: bool


@dataclass(frozen=True, slots=True)
class BooksSeen(Observation):
    """The outbox's books. `settled`: nothing was under way."""

    books: Books
    settled: bool


@dataclass(frozen=True, slots=True)
class CentralTook(Observation):
    """Central took a record of the site, or a change (a negative id), sent under this key.

    `again`: it had that already.
    """

    key: str
    site_id: int
    again: bool


@dataclass(frozen=True, slots=True)
class ClockJudged(Observation):
    """The wall clock went wrong, or right again."""

    trusted: bool
    true_micros: int


@dataclass(frozen=True, slots=True)
class CardJudged(Observation):
    """The card list says something new of a card, and that is on disk; None while it changes."""

    card_id: int
    good: bool | None


@dataclass(frozen=True, slots=True)
class TaskFailed(Observation):
    """A task of the gateway ended with an unexpected error."""

    task: str
    error: str


@dataclass(frozen=True, slots=True)
class Drove(Observation):
    """A vehicle is gone again.

    Attributes:
        began: when it came.
        calm: nothing was wrong at its lane or with the gateway, so that its passage must be recorded.
        card: what it showed, "" for nothing.
    """

    lane: str
    outcome: str
    began: float
    calm: bool = False
    card: str = ""
