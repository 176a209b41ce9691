"""A lane's whole state: one frozen part for each concern."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules, Side
from gateway.lanes.machine.state.closing import Closing
from gateway.lanes.machine.state.commands import Commands
from gateway.lanes.machine.state.inputs import NEVER, Inputs
from gateway.lanes.machine.state.intruders import Intruders
from gateway.lanes.machine.state.orders import OrderKind, Orders, ReasonToStayOpen
from gateway.lanes.machine.state.readings import Readings
from gateway.lanes.machine.state.stop import Stop
from gateway.lanes.machine.state.troubles import Troubles
from gateway.lanes.machine.state.visits import Visits
from gateway.lanes.snapshots import Phase
from gateway.texts import Words, text

_STARTS_WITHIN = 2.0

Part = Inputs | Orders | Stop | Visits | Readings | Intruders | Commands | Closing | Troubles


@dataclass(frozen=True, slots=True)
class LaneState:
    """Everything a lane knows.

    Attributes:
        closing: the closing of the gate, None when the gate need not be closed.
        note: the reason of the lane's state, in one line; "" when all is as usual.
        looked_at: when the machine last checked its deadlines.
    """

    inputs: Inputs = field(default_factory=Inputs)
    orders: Orders = field(default_factory=Orders)
    stop: Stop = field(default_factory=Stop)
    visits: Visits = field(default_factory=Visits)
    readings: Readings = field(default_factory=Readings)
    intruders: Intruders = field(default_factory=Intruders)
    commands: Commands = field(default_factory=Commands)
    closing: Closing | None = None
    troubles: Troubles = field(default_factory=Troubles)
    note: Words = ""
    looked_at: float = NEVER

    @classmethod
    def at_start(cls, now: m.Now) -> LaneState:
        """Return the state of a lane that knows nothing yet."""
        return cls(visits=Visits().entered(Phase.IDLE, None, now))

    def afresh(self, now: m.Now, *, gate_lost: str) -> LaneState:
        """Return the state after a change of the lane's settings: its points and its gate are to be read again.

        People's orders and stops stay, and so do vehicles that were let in before a restart. `gate_lost`: why the
        gate's controller is away, "" while it may answer.
        """
        visits = replace(Visits().entered(Phase.IDLE, None, now), granted_before=self.visits.granted_before)
        return LaneState(
            inputs=Inputs().gate_away(gate_lost) if gate_lost else Inputs(),
            orders=self.orders.afresh(),
            stop=self.stop,
            visits=visits,
            commands=Commands(made=self.commands.made),
        )

    def with_part(self, part: Part) -> LaneState:
        """Return the state with this part in the place of the one of its type."""
        name = _FIELDS[type(part)]
        return self if part is getattr(self, name) else replace(self, **{name: part})  # type: ignore[arg-type]

    def with_note(self, note: Words) -> LaneState:
        """Return the state with another note."""
        return self if note == self.note else replace(self, note=note)

    def looked(self, at: float) -> LaneState:
        """Return the state after all deadlines were checked."""
        return replace(self, looked_at=at)

    def without_closing(self) -> LaneState:
        """Return the state with nothing to be closed."""
        return self if self.closing is None else replace(self, closing=None)

    def observed(self, rules: LaneRules, event: m.LaneEvent) -> LaneState:  # noqa: PLR0911 (one per event)
        """Return the state with the event's reading of an input or the gate, or its order. Other events change nothing.

        The machine calls this in its transition. The runner calls it ahead of the inbox, so that the check right before
        a close knows the newest readings.
        """
        inputs, orders = self.inputs, self.orders
        match event:
            case m.InputReported():
                return self.with_part(inputs.reported(event, stale=rules.policy.stale_seconds))
            case m.InputMissed():
                return self.with_part(inputs.missed(event))
            case m.GateReported():
                return self.with_part(inputs.gate_reported(event.position, event.at))
            case m.GateLost():
                return self.with_part(inputs.gate_away(event.reason))
            case m.GateLossExplained():
                return self.with_part(inputs.gate_away_for(event.reason))
            case m.GateRegained():
                return self.with_part(inputs.gate_back())
            case m.OrderGiven():
                return self.with_part(orders.given(event.order))
            case m.OrderScheduled():
                return self.with_part(orders.by_schedule(event.order, event.doubt))
            case _:
                return self

    @property
    def shown_phase(self) -> Phase:
        """The phase for people: the vehicle's, or behind the last vehicle that of the gate."""
        if self.inputs.gate_lost:
            return Phase.FAULT
        if self.visits.phase is Phase.IDLE and self.closing is not None:
            return Phase.CLOSING if self.closing.sent else Phase.CLEARED
        return self.visits.phase

    @property
    def reason_kept_open(self) -> Words:
        """The reason to keep the gate open, in one sentence; "" for none."""
        if self.inputs.on_fire:
            return text("lane.fire")
        order = self.orders.in_force
        return order.words() if order is not None and order.kind is OrderKind.HOLD_OPEN else ""

    @property
    def locked_down(self) -> Words:
        """The reason of a lock-down, in one sentence; "" for none. A fire overrides it."""
        order = self.orders.in_force
        if self.inputs.on_fire or order is None or order.kind is not OrderKind.LOCK_DOWN:
            return ""
        return order.words()

    @property
    def stop_words(self) -> Words:
        """A sentence that a person stopped the gate, and what ends the stop; "" while none is in force."""
        if not self.stop.by:
            return ""
        if self.reason_kept_open:
            return text("gate.stopped_though", who=self.stop.by, why=self.reason_kept_open)
        return text("gate.stopped", who=self.stop.by)

    def why_open_at(self, since: float, now: float) -> ReasonToStayOpen | None:
        """Return why a vehicle that came at `since` needed no grant: the gate is, or was then, kept open; else None."""
        if self.reason_kept_open:
            return ReasonToStayOpen("fire" if self.inputs.on_fire else "hold_open", self.reason_kept_open, until=now)
        return self.orders.last_reason if since <= self.orders.last_reason.until else None

    def moved_at(self, came: float, now: float) -> float:
        """Return when a vehicle that came at `came` and moves on now counts as having moved.

        A vehicle that stood there while the gate was kept open needs a moment to start. If it starts within that moment
        after the end, it counts as having moved while the gate was kept open.
        """
        until = self.orders.last_reason.until
        return until if came <= until < now <= until + _STARTS_WITHIN else now

    def free_since(self, rules: LaneRules) -> float | None:
        """Return since when the closing loop and the visit's arming loop are free, None while one is not.

        In a two-way lane both arming loops count until a vehicle was seen on one.
        """
        visit, inputs = self.visits.present, self.inputs
        points = [inputs.closing, inputs.loop(visit.side if visit else Side.NEAR)]
        if rules.two_way and (visit is None or not visit.vehicle_seen):
            points = [inputs.closing, inputs.arming, inputs.far]
        return max(point.since for point in points) if all(point.is_off() for point in points) else None


_FIELDS = {
    Inputs: "inputs",
    Orders: "orders",
    Stop: "stop",
    Visits: "visits",
    Readings: "readings",
    Intruders: "intruders",
    Commands: "commands",
    Closing: "closing",
    Troubles: "troubles",
}
