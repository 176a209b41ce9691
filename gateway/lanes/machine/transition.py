"""One transition of the lane machine: the state under construction, and the commands so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gateway.domain.commands import LANE, Command, CommandState, GateAction, command_text
from gateway.domain.credentials import Credential
from gateway.domain.events import Event, EventKind, Scalar
from gateway.domain.passages import Moment, Passage, PassageOutcome
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules, Side
from gateway.lanes.machine.state.lane import LaneState, Part
from gateway.lanes.machine.state.visits import Visit
from gateway.lanes.snapshots import Phase
from gateway.store import Entry
from gateway.texts import Text, Words, text

_LONGEST_FOOTAGE = 110.0


class LaneView:
    """The rules and the state of a lane, without the present moment: what becomes due, and when, follows from these."""

    def __init__(self, rules: LaneRules, state: LaneState) -> None:
        self.rules = rules
        self.state = state


class Transition(LaneView):
    """The state under construction. Each module of the machine puts its new parts of the state into it."""

    def __init__(self, rules: LaneRules, state: LaneState, now: m.Now) -> None:
        super().__init__(rules, state)
        self.now = now
        self.commands: list[m.LaneCommand] = []

    def put(self, part: Part) -> None:
        """Replace the part of the state that has this part's type."""
        self.state = self.state.with_part(part)

    def note(self, text: Words) -> None:
        """Set the lane's note: one line with the reason of its state, "" when all is as usual."""
        self.state = self.state.with_note(text)

    def drop_closing(self) -> None:
        """End the closing."""
        self.state = self.state.without_closing()

    def finish(self) -> LaneState:
        """Return the state after all deadlines were checked."""
        return self.state.looked(self.now.at)

    def enter(self, phase: Phase, visit: Visit | None) -> None:
        """Go to a phase with this visit."""
        self.put(self.state.visits.entered(phase, visit, self.now))

    def rest(self, *, passed: bool = False) -> None:
        """End the visit: wait for the next vehicle, which may already stand on an arming loop."""
        rules = self.rules
        inputs, readings = self.state.inputs, self.state.readings
        waiting = [side for side in self.sides() if inputs.loop(side).is_on() and not self.is_leaving(side)]
        votes, behind = readings.votes.ended(self.now.at, passed=passed), readings.votes_behind
        if waiting or passed:
            votes = votes.followed_by(behind, settle=rules.lane.plate_settle_seconds, sure=rules.lane.plate_sure)
        self.put(readings.visit_over(votes))
        self.put(self.state.visits.with_queued(None))
        if waiting:
            side = min(waiting, key=lambda one: inputs.loop(one).since)
            self.enter(Phase.ARMED, Visit(arrived=self.now.stamp, vehicle_seen=True, side=side))
        else:
            self.enter(Phase.IDLE, None)

    def sides(self) -> tuple[Side, ...]:
        """Return the sides from which vehicles come."""
        return (Side.NEAR, Side.FAR) if self.rules.two_way else (Side.NEAR,)

    def is_leaving(self, side: Side) -> bool:
        """Return whether the vehicle on this side's loop is the one that has just passed."""
        leaving = self.state.visits.leaving
        return leaving is not None and leaving.side is side

    def direction(self, side: Side) -> str:
        """Return which way a vehicle from this side goes: "entry" or "exit"."""
        return self.rules.direction_of(side)

    def passage(
        self,
        visit: Visit,
        outcome: PassageOutcome,
        *,
        reason: str = "",
        direction: str = "",
        before: m.GrantRemembered | None = None,
    ) -> Passage:
        """Return this visit's end as a passage.

        Args:
            visit: what is known of the vehicle.
            outcome: how it ended.
            reason: why it passed, if no decision says so.
            direction: "entry" or "exit", if it differs from that of vehicles from its side.
            before: the grant of a vehicle that was let in before the restart.
        """
        decision = visit.decision
        card = decision.card if decision else None
        return Passage(
            lane_id=self.rules.lane.id,
            direction=direction or self.direction(visit.side),
            outcome=outcome,
            started_at=min(visit.arrived.micros, self.now.stamp.micros),
            ended_at=self.now.stamp.micros,
            clock_trusted=visit.arrived.trusted and self.now.stamp.trusted,
            card_id=before.card_id if before else card.card_id if card else None,
            credential=before.credential if before else visit.shown,
            reason=reason or (decision.reason if decision else visit.opened_by),
            plate=visit.credential.plate if visit.credential else "",
            holder=before.holder if before else decision.holder if decision else "",
            opens=before.opens if before else decision.opens if decision else False,
        )

    def observe(self, event: m.LaneEvent) -> None:
        """Take what the event says of inputs, gate and orders into the state."""
        self.state = self.state.observed(self.rules, event)

    def command(self, action: GateAction) -> Command:
        """Make a new command of the lane's own."""
        self.put(self.state.commands.numbered())
        number = self.state.commands.made
        now = self.now.stamp.micros
        return Command(
            command_id=f"{self.rules.boot}-{self.rules.lane.id}-{number}",
            device_id=self.rules.lane.gate,
            lane_id=self.rules.lane.id,
            action=action,
            source=LANE,
            requested_at=now,
            deadline_at=now + int(self.rules.policy.command_seconds * 1_000_000),
        )

    def write(self, command: Command, state: CommandState, detail: Words = "") -> None:
        """Record a command's new state, with an event for each state of a person's command and a lane's failures."""
        reached = replace(command, state=state, detail=detail)
        kind = _COMMAND_EVENTS[state]
        failed = state in {CommandState.REFUSED, CommandState.UNKNOWN}
        events: tuple[Event, ...] = ()
        if failed or command.source != LANE:
            said = command_text(command.action, command.source, detail)
            events = (self.event(kind, said, command_id=command.command_id, action=command.action.value),)
        self.commands.append(m.Record(Entry(events=events, commands=(reached,))))

    def refuse(self, command: Command, reason: Words) -> None:
        """Record that a command will not be sent."""
        self.write(command, CommandState.REFUSED, reason)

    def event(self, kind: EventKind, text: Words, *, device_id: int | None = None, **data: Scalar) -> Event:
        """Make an event of this lane at this moment."""
        return Event(
            kind=kind,
            date_at=self.now.stamp.micros,
            clock_trusted=self.now.stamp.trusted,
            text=text,
            device_id=self.rules.lane.gate if device_id is None else device_id,
            lane_id=self.rules.lane.id,
            data=data,
        )

    def tell(
        self,
        kind: EventKind,
        text: Words,
        *,
        device_id: int | None = None,
        passage: Passage | None = None,
        filmed_from: int | None = None,
        **data: Scalar,
    ) -> None:
        """Record an event, with the passage it ends and, when `filmed_from` (wall micros) is given, its footage."""
        event = self.event(kind, text, device_id=device_id, **data)
        moments = self._moments(event, filmed_from) if filmed_from is not None else ()
        self.commands.append(m.Record(Entry(events=(event,), passage=passage, moments=moments)))

    def _moments(self, event: Event, filmed_from: int) -> tuple[Moment, ...]:
        before, after = (
            int(self.rules.events.clip_before_seconds * 1_000_000),
            int(self.rules.events.clip_after_seconds * 1_000_000),
        )
        earliest = event.date_at - int(_LONGEST_FOOTAGE * 1_000_000)
        return tuple(
            Moment(
                camera_id=camera_id,
                name=event.name,
                description=event.description,
                pinned_from=max(filmed_from, earliest) - before,
                pinned_until=event.date_at + after,
                clock_trusted=event.clock_trusted,
            )
            for camera_id in self.rules.lane.cameras
        )


Due = tuple[float, Callable[[Transition], None]]
"""An action of the machine, and the instant (monotonic seconds) from which each step performs it."""
AT_EACH_STEP = float("-inf")


def look_again(_: Transition) -> None:
    """Do nothing: a step at this instant is enough, since an action of each step then finds something else."""


def named(credential: Credential | None) -> Text:
    """Name a reading for people: "card 0007", "plate ABC123"."""
    if credential is None:
        return text("credential.some")
    if credential.plate:
        return text("credential.plate", number=credential.shown())
    return text("credential.card", number=credential.shown())


def form_of(credential: Credential | None) -> str:
    """Return what was read, as events record it: "plate" or "card"."""
    return "plate" if credential is not None and credential.plate else "card"


_COMMAND_EVENTS = {
    CommandState.RECORDED: EventKind.COMMAND_RECORDED,
    CommandState.SENT: EventKind.COMMAND_SENT,
    CommandState.ACKNOWLEDGED: EventKind.COMMAND_ACKNOWLEDGED,
    CommandState.DONE: EventKind.COMMAND_DONE,
    CommandState.REFUSED: EventKind.COMMAND_REFUSED,
    CommandState.UNKNOWN: EventKind.COMMAND_UNKNOWN,
}
