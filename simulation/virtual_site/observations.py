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
class Polled(Observation):
    """A gate's controller was polled. `idle`: nobody and nothing was at its lane, moved or was wrong for a while."""

    lane: str
    idle: bool


@dataclass(frozen=True, slots=True)
class Started(Observation):
    """A gateway has started: the boot that marks its ids, and the unfinished commands that it found."""

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
        good: whether it may pass; None while its right is being changed, or depends on a clock that is not trusted.
        calm: whether nothing was wrong at this lane for a while, so that a good card must be let in at once.
    """

    lane: str
    card: str
    good: bool | None
    calm: bool


@dataclass(frozen=True, slots=True)
class Asked(Observation):
    """A person gave a command. `calm`: nothing was wrong at this lane for a while, and the gate was closed."""

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
        deadline: the deadline that the driver was given.
        in_the_way: the safety points that were really occupied, and that the driver must have known of.
        hidden: the safety points that were really occupied, but that could not be known.
    """

    lane: str
    action: GateAction
    deadline: float
    in_the_way: tuple[str, ...]
    hidden: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answered(Observation):
    """The driver returned from a command: the device acknowledged it, the answer was lost, or it was never sent.

    `kept_by_line`: it was never sent because the line was down, or busy until its deadline.
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
    """A gate's driver reported a position that changed, or is read for the first time."""

    lane: str
    position: GatePosition


@dataclass(frozen=True, slots=True)
class Refreshed(Observation):
    """A driver read these points again (`position` counts as one). Reports of those that changed follow."""

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
    """A device with these points did not answer this number of polls in a row."""

    lane: str
    points: tuple[str, ...]
    in_a_row: int


@dataclass(frozen=True, slots=True)
class Arrived(Observation):
    """A command reached the gate's controller, over a line that may deliver late."""

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
    """The outbox's counts. `settled`: nothing was being sent."""

    books: Books
    settled: bool


@dataclass(frozen=True, slots=True)
class CentralTook(Observation):
    """Central stored a record of the site, or a change (with a negative id), that was sent under this key.

    `again`: central had it already.
    """

    key: str
    site_id: int
    again: bool


@dataclass(frozen=True, slots=True)
class ClockJudged(Observation):
    """The wall clock became wrong, or right again."""

    trusted: bool
    true_micros: int


@dataclass(frozen=True, slots=True)
class CardJudged(Observation):
    """A card's right changed in the card list, and the change is on disk; None while it is being changed."""

    card_id: int
    good: bool | None


@dataclass(frozen=True, slots=True)
class TaskFailed(Observation):
    """A task of the gateway ended with an unexpected error."""

    task: str
    error: str


@dataclass(frozen=True, slots=True)
class Drove(Observation):
    """A vehicle has left.

    Attributes:
        began: when it came.
        calm: whether nothing was wrong at its lane or with the gateway, so that its passage must be recorded.
        card: the card that it presented, "" for none.
    """

    lane: str
    outcome: str
    began: float
    calm: bool = False
    card: str = ""
