"""A lane's state: frozen values that only the machine makes anew."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.domain.commands import Command
from gateway.domain.credentials import Credential
from gateway.domain.events import EventKind
from gateway.lanes.machine.inputs import NEVER, SeenGate, SeenPoint
from gateway.lanes.machine.order_values import Order, OrderKind
from gateway.lanes.machine.plates import Votes
from gateway.lanes.machine.rules import LaneRules, Side
from gateway.lanes.machine.vehicles import Intruder, Leaving, MovedOn, Visit
from gateway.lanes.snapshots import Phase
from gateway.runtime.clock import Stamp

_STARTS_WITHIN = 2.0
_UNSTAMPED = Stamp(micros=0, trusted=False)


@dataclass(frozen=True, slots=True)
class InFlight:
    """The command under way.

    Attributes:
        command: what was sent.
        deadline: until when it may go out.
        give_up_at: when its outcome counts as unknown.
        acknowledged_at: when the device acknowledged it, None before.
        doubt: why nobody knows whether the device heard it, "" while there is no doubt.
        doubted_at: since when; a movement seen after that settles the doubt.
    """

    command: Command
    deadline: float
    give_up_at: float
    acknowledged_at: float | None = None
    doubt: str = ""
    doubted_at: float | None = None


@dataclass(frozen=True, slots=True)
class StopAsked:
    """A person's stop that is not known to have been taken.

    Attributes:
        command_id: its command.
        by: who wants it.
        given_up: nothing more will be heard of it; where the gate is seen next tells.
    """

    command_id: str
    by: str
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class Superseded:
    """A command whose place a later one took before its driver told what became of it.

    Attributes:
        command: what was handed to the driver.
        reason: what took its place.
        deadline: until when it may go out.
        give_up_at: when its outcome counts as unknown.
    """

    command: Command
    reason: str
    deadline: float
    give_up_at: float


@dataclass(frozen=True, slots=True)
class Closing:
    """The gate is to be closed, beside whatever the next vehicle does meanwhile.

    Attributes:
        since: when this was decided, or when the last close was sent.
        sent: whether a close is on its way, or the device closes by itself.
        tries: closes sent so far.
        not_before: the gate is left alone until then.
        told: whether technicians were told that a safety point holds it.
        seen_moving: whether the gate was seen closing since the close was sent.
        ours: the gate moves, or stopped half-way, on a close of ours; what comes into its way has it opened again.
        lost: the controller was away meanwhile, and where the gate is has not been read since.
        reopened: how many times in a row it was opened again while it closed.
        reopening: opens sent for that which have not moved it yet.
        reopen_at: when the next one is due.
        reopens_for: why it was asked to open again, until its controller acknowledges that; "" when it did.
        reopens_since: when it was asked to, in wall micros.
    """

    since: float
    sent: bool = False
    tries: int = 0
    not_before: float = NEVER
    told: bool = False
    seen_moving: bool = False
    ours: bool = False
    lost: bool = False
    reopened: int = 0
    reopening: int = 0
    reopen_at: float = NEVER
    reopens_for: str = ""
    reopens_since: int = 0


@dataclass(frozen=True, slots=True)
class Kept:
    """Why the gate was kept open last ("fire" or "hold_open", and a sentence), and until when."""

    reason: str = ""
    sentence: str = ""
    until: float = NEVER


@dataclass(frozen=True, slots=True)
class Keeping:
    """Opens sent to keep the gate open, and until when it is left alone."""

    tries: int = 0
    not_before: float = NEVER
    told: bool = False


@dataclass(frozen=True, slots=True)
class EarlyCard:
    """A card whose vehicle is not seen on the arming loop yet, and until when it may come."""

    reader_id: int
    credential: Credential
    until: float


@dataclass(frozen=True, slots=True)
class RememberedGrant:
    """A vehicle that was let in before the restart and has not been seen to pass, and until when that counts."""

    card_id: int | None
    credential: str
    until: float
    holder: str = ""
    opens: bool = False


@dataclass(frozen=True, slots=True)
class AwaitedPin:
    """A card that waits for its PIN."""

    credential: Credential
    until: float
    keys: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong that lasts: which kind (an event kind's name), of what, and since when for people."""

    kind: EventKind
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class LaneState:
    """Everything a lane knows.

    `phase` is the vehicle's: IDLE, ARMED, DECIDING, OPENING, OPEN or PASSING. Behind a vehicle that has gone the gate
    is still to be closed, which `closing_gate` tells; `shown_phase` is both in one word.

    Attributes:
        owed: in a counted lane, granted visits that are still to pass after the present one.
        queued: in a counted lane, the vehicle behind the present one, waiting for the decision of that number.
        votes_behind: plates of the vehicle that came onto the arming loop while this one passes.
        ignored: plates that were told as ignored last, and when.
        off_closed_at: since when the gate is off its closed limit, or since the last passage.
        second_until: until when the second credential of this visit is waited for, None for no waiting.
        forced_at: since when it is off without a reason.
        unanswered_open_at: when an open was given up without movement.
        fire_over_at: when the last fire ended; infinite while a fire from before the start may go on.
        stop_asked: a stop under way, or of unknown outcome.
        stopped_by: who stopped the gate, which stays so; see `stopping`. And since when.
        overtaken_open: the deadline of an open that never went out, since a stop took its place.
        schedule_doubt: what a clock that is not trusted means for the lane's schedules, "" for nothing; and since when.
        kept: the last time that the gate was kept open; points must have been clear since its end.
        moved_on: who left the arming loop without a decision and may come onto the closing loop.
        passed_at: when a vehicle that was let in passed last.
        left_at: when the closing loop was left last, by whatever it was.
        start_judged: what was to be done about a gate that stood open at the start has been settled.
    """

    phase: Phase = Phase.IDLE
    since: float = NEVER
    since_stamp: Stamp = _UNSTAMPED
    gate: SeenGate = field(default_factory=SeenGate)
    gate_lost: str = ""
    arming: SeenPoint = field(default_factory=SeenPoint)
    far: SeenPoint = field(default_factory=SeenPoint)
    closing: SeenPoint = field(default_factory=SeenPoint)
    safety: tuple[SeenPoint, ...] = ()
    fire: SeenPoint = field(default_factory=SeenPoint)
    local: SeenPoint = field(default_factory=SeenPoint)
    on_fire: bool = False
    fire_over_at: float = NEVER
    stop_asked: StopAsked | None = None
    stopped_by: str = ""
    stopped_at: float = NEVER
    overtaken_open: float | None = None
    operator_order: Order | None = None
    scheduled_order: Order | None = None
    schedule_doubt: str = ""
    doubted_since: float = NEVER
    keeping: Keeping = field(default_factory=Keeping)
    kept: Kept = field(default_factory=Kept)
    start_judged: bool = False
    visit: Visit | None = None
    owed: tuple[Visit, ...] = ()
    queued: tuple[int, Visit] | None = None
    decisions: int = 0
    commands: int = 0
    flight: InFlight | None = None
    superseded: tuple[Superseded, ...] = ()
    closing_gate: Closing | None = None
    leaving: Leaving | None = None
    intruder: Intruder | None = None
    moved_on: MovedOn | None = None
    passed_at: float = NEVER
    left_at: float = NEVER
    early: EarlyCard | None = None
    granted_before: tuple[RememberedGrant, ...] = ()
    awaited_pin: AwaitedPin | None = None
    second_until: float | None = None
    votes: Votes = field(default_factory=Votes)
    votes_behind: Votes = field(default_factory=Votes)
    ignored: tuple[tuple[str, float], ...] = ()
    off_closed_at: float | None = None
    forced_at: float | None = None
    unanswered_open_at: float = NEVER
    troubles: tuple[Trouble, ...] = ()
    note: str = ""
    looked_at: float = NEVER

    @property
    def shown_phase(self) -> Phase:
        """The phase for people."""
        if self.gate_lost:
            return Phase.FAULT
        if self.phase is Phase.IDLE and self.closing_gate is not None:
            return Phase.CLOSING if self.closing_gate.sent else Phase.CLEARED
        return self.phase

    @property
    def order(self) -> Order | None:
        """The standing order that counts: a person's before the schedule's; None when the lane works as usual."""
        order = self.operator_order or self.scheduled_order
        return None if order is None or order.kind is OrderKind.NORMAL else order

    @property
    def kept_open(self) -> str:
        """Why the gate is to stay open, in one sentence; "" when it is not."""
        if self.on_fire:
            return "the fire input is active"
        order = self.order
        return order.sentence() if order is not None and order.kind is OrderKind.HOLD_OPEN else ""

    @property
    def is_stopped(self) -> bool:
        """Whether a person's stop holds the gate, or is under way."""
        return bool(self.stopped_by) or (self.stop_asked is not None and not self.stop_asked.given_up)

    @property
    def stop_sentence(self) -> str:
        """That a person stopped the gate, and what ends that, in one sentence; "" when nobody did."""
        if not self.stopped_by:
            return ""
        though = f", though {self.kept_open}" if self.kept_open else ""
        until = "until somebody opens or closes it or gives the lane an order, or a vehicle is let in"
        return f"the gate stands stopped by {self.stopped_by}{though}: {until}"

    def kept_at(self, since: float, now: float) -> Kept | None:
        """Why whoever came at `since` was welcome: the gate is kept open, or was until then. None when neither."""
        if self.kept_open:
            return Kept("fire" if self.on_fire else "hold_open", self.kept_open, until=now)
        return self.kept if since <= self.kept.until else None

    def moved_at(self, came: float, now: float) -> float:
        """When who came at `came` and moves on now counts as having moved: a start takes a moment after the end."""
        stood_there = came <= self.kept.until < now <= self.kept.until + _STARTS_WITHIN
        return self.kept.until if stood_there else now

    @property
    def locked_down(self) -> str:
        """Why nobody is let through, in one sentence; "" when they are. A fire counts for more."""
        order = self.order
        if self.on_fire or order is None or order.kind is not OrderKind.LOCK_DOWN:
            return ""
        return order.sentence()

    def let_in_before(self, now: float) -> RememberedGrant | None:
        """The first vehicle that was let in before the restart and may still be on its way."""
        return next((grant for grant in self.granted_before if now < grant.until), None)

    def loop(self, side: Side) -> SeenPoint:
        """The arming loop of this side."""
        return self.arming if side is Side.NEAR else self.far

    def free_since(self, rules: LaneRules) -> float | None:
        """Since when the closing loop and the visit's arming loop are free, or None; before it was seen, either's."""
        points = [self.closing, self.loop(self.visit.side if self.visit else Side.NEAR)]
        if rules.two_way and (self.visit is None or not self.visit.vehicle_seen):
            points = [self.closing, self.arming, self.far]
        return max(point.since for point in points) if all(point.is_off() for point in points) else None
