"""A vehicle's time in the lane, from the arming loop to its passage. Part of the machine."""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition, PointState
from gateway.clock import Stamp
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.domain.passages import Passage, PassageOutcome
from gateway.lanes import closing, flights
from gateway.lanes import messages as m
from gateway.lanes.board import Phase
from gateway.lanes.state import LaneRules, LaneState, Visit
from gateway.lanes.turn import Turn

_HAS_RIGHT_OF_WAY = frozenset({Phase.OPENING, Phase.OPEN, Phase.PASSING})


def arrived(turn: Turn) -> None:
    """The arming loop came on."""
    visit = turn.state.visit
    if visit is not None:
        turn.set(visit=replace(visit, vehicle_seen=True))
    if turn.state.phase is Phase.IDLE:
        turn.enter(Phase.ARMED, Visit(arrived=turn.now.stamp, vehicle_seen=True))
        turn.set(note="")
        turn.tell(EventKind.VEHICLE_ARRIVED, "a vehicle is on the arming loop")


def arming_released(turn: Turn) -> None:
    """The arming loop went off: before a grant the vehicle has left, after it the vehicle moves on."""
    visit, phase = turn.state.visit, turn.state.phase
    if visit is None:
        return
    if phase in {Phase.ARMED, Phase.DECIDING}:
        tried = visit.credential is not None
        turn.enter(Phase.IDLE, None)
        if tried:
            text = "the vehicle left before it was let in"
            turn.tell(EventKind.VEHICLE_BACKED_OUT, text, passage=_passage(turn, visit, PassageOutcome.BACKED_OUT))
    elif phase in _HAS_RIGHT_OF_WAY:
        turn.set(visit=replace(visit, arming_released=True))


def card_read(turn: Turn, event: m.CardRead) -> None:
    """A reader of the lane read something."""
    shown, phase, visit = event.credential.shown(), turn.state.phase, turn.state.visit
    if phase is Phase.DECIDING:
        return
    if phase in _HAS_RIGHT_OF_WAY:
        reason = "while a vehicle already has its right of way"
    elif turn.state.arming.fresh(turn.now.at, turn.rules.stale) is not PointState.ON or visit is None:
        reason = "without a vehicle on the arming loop"
    else:
        number = turn.state.decisions + 1
        turn.set(decisions=number)
        turn.enter(Phase.DECIDING, replace(visit, credential=event.credential, decision=None))
        turn.commands.append(m.Decide(number, event.credential))
        return
    text = f"card {shown} was read {reason}"
    turn.tell(EventKind.CARD_IGNORED, text, device_id=event.reader_id, credential=shown)


def decided(turn: Turn, event: m.Decided) -> None:
    """The decision came; one that is no longer waited for changes nothing."""
    visit, decision = turn.state.visit, event.decision
    if turn.state.phase is not Phase.DECIDING or event.number != turn.state.decisions or visit is None:
        return
    shown = visit.credential.shown() if visit.credential else ""
    card_id = decision.card.card_id if decision.card else None
    trace = "; ".join(f"{rule.rule}: {'passed' if rule.passed else 'FAILED'} ({rule.seen})" for rule in decision.trace)
    visit = replace(visit, decision=decision)
    if decision.granted:
        _open(turn, visit)
        holder = decision.card.holder if decision.card else ""
        text = f"card {shown}{f' of {holder}' if holder else ''}: {decision.sentence()}"
        turn.tell(
            EventKind.ACCESS_GRANTED, text, credential=shown, card_id=card_id, reason=decision.reason, trace=trace
        )
    else:
        turn.enter(Phase.ARMED, visit)
        turn.set(note=f"card {shown} denied: {decision.sentence()}")
        turn.tell(
            EventKind.ACCESS_DENIED,
            f"card {shown}: {decision.sentence()}",
            filmed_from=turn.now.stamp.micros,
            credential=shown,
            card_id=card_id,
            reason=decision.reason,
            trace=trace,
        )


def operator_opens(turn: Turn, event: m.CommandRequested) -> None:
    """A person wants the gate open."""
    flights.send(turn, event.command, event.deadline)
    turn.set(closing_gate=None)
    if turn.state.phase not in _HAS_RIGHT_OF_WAY:
        seen = turn.state.arming.state is PointState.ON
        visit = turn.state.visit or Visit(arrived=turn.now.stamp, vehicle_seen=seen)
        turn.enter(Phase.OPENING, replace(visit, opened_by=event.command.source, arming_released=False))


def opened(turn: Turn) -> None:
    """The gate is seen open for this visit."""
    turn.enter(Phase.OPEN, turn.state.visit)
    turn.set(note="")
    turn.tell(EventKind.GATE_OPENED, "the gate is open")


def passing(turn: Turn) -> None:
    """A vehicle with its right of way is on the closing loop, perhaps before the gate was fully up."""
    turn.enter(Phase.PASSING, turn.state.visit)


def left_closing_loop(turn: Turn) -> None:
    """The closing loop is free: passed when the arming loop was released too, else it stands before the gate again."""
    visit = turn.state.visit
    if visit is None:
        return
    if not visit.arming_released and turn.state.arming.state is PointState.ON:
        turn.enter(Phase.OPEN, visit)
        return
    who = f"card {visit.credential.shown()}" if visit.decision and visit.credential else visit.opened_by
    turn.tell(
        EventKind.VEHICLE_PASSED,
        f"a vehicle passed ({who.removeprefix('user:')})",
        passage=_passage(turn, visit, PassageOutcome.PASSED),
        filmed_from=visit.arrived.micros,
        credential=visit.credential.shown() if visit.credential else "",
        direction=turn.rules.direction,
    )
    turn.rest()
    closing.begin(turn)


def not_opened(turn: Turn, reason: str) -> None:
    """The gate did not open for this visit."""
    visit = turn.state.visit
    turn.set(note=reason)
    if visit is None:
        return
    turn.tell(
        EventKind.OPENING_TIMED_OUT,
        f"the gate did not open: {reason}",
        passage=_passage(turn, visit, PassageOutcome.NOT_OPENED),
        filmed_from=turn.now.stamp.micros,
        position=turn.state.gate.position,
    )
    turn.rest()
    if turn.state.gate.position is not GatePosition.CLOSED:
        closing.begin(turn)


def closed_before_passing(turn: Turn) -> None:
    """The gate closed by hand or by itself before the vehicle passed."""
    visit = turn.state.visit
    if visit is not None:
        text = "the gate closed before the vehicle passed"
        turn.tell(EventKind.VEHICLE_BACKED_OUT, text, passage=_passage(turn, visit, PassageOutcome.BACKED_OUT))
    turn.rest()


def intruder_passed(turn: Turn, since: Stamp) -> None:
    """Something passed over the closing loop with the gate not closed and without a decision."""
    turn.set(intruder=None)
    visit = Visit(arrived=since)
    turn.tell(
        EventKind.UNAUTHORISED_PASSAGE,
        "something passed without a decision while the gate was not closed",
        passage=_passage(turn, visit, PassageOutcome.UNAUTHORISED),
        filmed_from=since.micros,
    )


def watch(turn: Turn) -> None:
    """Openings that take too long, and open gates that nobody drives through."""
    state, now = turn.state, turn.now.at
    if state.phase is Phase.OPENING and now >= state.since + turn.rules.opening:
        not_opened(turn, f"not seen open within {turn.rules.opening:g} s")
    elif state.phase is Phase.OPEN and now >= _given_up_at(turn.rules, state):
        _give_up(turn)


def deadlines(rules: LaneRules, state: LaneState) -> tuple[float, ...]:
    """When `watch` has something to do."""
    if state.phase is Phase.OPENING:
        return (state.since + rules.opening,)
    return (_given_up_at(rules, state),) if state.phase is Phase.OPEN else ()


def _open(turn: Turn, visit: Visit) -> None:
    turn.set(closing_gate=None, note="")
    turn.enter(Phase.OPENING, replace(visit, arming_released=False))
    flights.send(turn, turn.command(GateAction.OPEN), turn.now.at + turn.rules.command_life)


def _give_up(turn: Turn) -> None:
    visit = turn.state.visit
    if visit is not None and visit.vehicle_seen:
        text = "the vehicle left backwards; its right of way is taken back"
        turn.tell(EventKind.VEHICLE_BACKED_OUT, text, passage=_passage(turn, visit, PassageOutcome.BACKED_OUT))
    turn.rest()
    closing.begin(turn)


def _given_up_at(rules: LaneRules, state: LaneState) -> float:
    """When an open gate is given up. A loop that is on, or unknown, holds it without limit."""
    if state.free_since is None:
        return float("inf")
    seen = state.visit is not None and state.visit.vehicle_seen
    return max(state.free_since, state.since) + (rules.back_out if seen else rules.waiting)


def _passage(turn: Turn, visit: Visit, outcome: PassageOutcome) -> Passage:
    card = visit.decision.card if visit.decision else None
    return Passage(
        lane_id=turn.rules.lane_id,
        direction=turn.rules.direction,
        outcome=outcome,
        started_at=min(visit.arrived.micros, turn.now.stamp.micros),
        ended_at=turn.now.stamp.micros,
        clock_trusted=visit.arrived.trusted and turn.now.stamp.trusted,
        card_id=card.card_id if card else None,
        credential=visit.credential.shown() if visit.credential else "",
        reason=visit.decision.reason if visit.decision else visit.opened_by,
    )
