"""Whatever goes over the closing loop without a right of way of its own. Part of the machine.

A loop drops out under a vehicle and comes back, so a loop that is on again is no second vehicle yet. A second one has
come over the arming loop, and that was released for it; while the arming loop is not known, every passage counts.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition, PointState
from gateway.domain.events import EventKind
from gateway.domain.passages import PassageOutcome
from gateway.lanes.machine.rules import Side
from gateway.lanes.machine.state import LaneState
from gateway.lanes.machine.transition import Turn, named
from gateway.lanes.machine.vehicles import Intruder, Leaving, Visit
from gateway.lanes.snapshots import Phase

_DROPS_OUT_SECONDS = 2.0
_SAME_VEHICLE_SECONDS = 10.0


def on_closing_loop(turn: Turn) -> None:
    """Note what came onto the closing loop; under a closed gate it cannot pass yet."""
    state, now = turn.state, turn.now.at
    shut = state.gate.position is GatePosition.CLOSED and not turn.state.let_in_before(turn.now.at)
    moved_on = state.moved_on
    if moved_on is not None and now - moved_on.at > turn.rules.leaving:
        moved_on = None
    intruder = Intruder(
        visit=state.visit or (moved_on.visit if moved_on is not None else Visit(arrived=turn.now.stamp)),
        at=_moved_at(state, now) if moved_on is None else moved_on.at,
        first=state.phase is Phase.IDLE and state.leaving is None and moved_on is None,
        moved_on=moved_on is not None,
        drops_out=now - state.left_at < _DROPS_OUT_SECONDS,
        shut=shut,
    )
    turn.set(intruder=intruder, moved_on=moved_on if shut else None)


def gate_seen(turn: Turn, position: GatePosition) -> None:
    """A gate that is off its closed limit lets pass whoever waits under it, or is open for who has the right of way."""
    intruder = turn.state.intruder
    if intruder is None or not intruder.shut or position in {GatePosition.CLOSED, GatePosition.UNKNOWN}:
        return
    given = turn.state.phase in {Phase.OPENING, Phase.OPEN, Phase.PASSING}
    turn.set(intruder=None if given else replace(intruder, shut=False))


def _moved_at(state: LaneState, now: float) -> float:
    return now if state.visit is None else state.moved_at(state.loop(state.visit.side).since, now)


def is_the_one_before(turn: Turn) -> bool:
    """Whether what comes onto the closing loop is who passed a moment ago, and not who may pass now."""
    state, visit = turn.state, turn.state.visit
    if visit is None or turn.now.at - state.left_at >= _DROPS_OUT_SECONDS:
        return False
    return not visit.arming_released and state.loop(visit.side).is_off()


def came_from_behind(turn: Turn) -> bool:
    """Whether what comes onto the arming loop came over the closing loop first; then it wants out, not in."""
    intruder = turn.state.intruder
    may_go_since = max(turn.state.closing.since, turn.state.off_closed_at or 0.0)
    recent = turn.now.at - may_go_since <= turn.rules.leaving
    if intruder is None or not intruder.first or intruder.drops_out or turn.rules.two_way or not recent:
        return False
    if intruder.shut:
        return False
    turn.set(intruder=replace(intruder, reached_arming=True))
    return True


def left_closing_loop(turn: Turn, intruder: Intruder) -> None:
    """The closing loop is free again: tell what that was."""
    turn.set(intruder=None)
    if turn.now.at < turn.state.closing.chatters_until() or intruder.shut:
        return
    if intruder.first and intruder.reached_arming and not turn.rules.two_way:
        went_wrong_way(turn, intruder.visit)
        return
    state, visit = turn.state, intruder.visit
    behind = state.closing_gate is not None and state.passed_at >= (state.off_closed_at or state.left_at)
    lately = behind or intruder.at - state.left_at < _SAME_VEHICLE_SECONDS
    if lately and not intruder.moved_on and turn.state.let_in_before(turn.now.at) is None and _sees_arrivals(turn):
        return
    side = Side.FAR if intruder.first and turn.rules.two_way and turn.state.arming.is_on() else visit.side
    without_own_decision(turn, replace(visit, side=side), since=intruder.at, behind=behind)


def without_own_decision(turn: Turn, visit: Visit, *, since: float, behind: bool) -> None:
    """A vehicle has passed on nobody's word; `behind` another that had the right of way, or not.

    Who came, at `since`, while the gate was kept open was welcome, though that may be over now.
    """
    kept = turn.state.kept_at(since, turn.now.at)
    if kept is not None:
        turn.tell(
            EventKind.VEHICLE_PASSED,
            f"a vehicle passed while {kept.sentence}",
            passage=turn.passage(visit, PassageOutcome.PASSED, reason=kept.reason),
            filmed_from=visit.arrived.micros,
            direction=turn.direction(visit.side),
        )
        return
    before = turn.state.let_in_before(turn.now.at)
    if before is not None and not behind:
        turn.set(granted_before=tuple(grant for grant in turn.state.granted_before if grant is not before))
        passage = turn.passage(visit, PassageOutcome.PASSED, reason="granted_before_restart")
        turn.tell(
            EventKind.VEHICLE_PASSED,
            f"a vehicle passed ({before.credential}), let in before the gateway restarted",
            passage=replace(
                passage,
                card_id=before.card_id,
                credential=before.credential,
                holder=before.holder,
                opens=before.opens,
            ),
            filmed_from=visit.arrived.micros,
            credential=before.credential,
            direction=turn.direction(visit.side),
        )
        return
    is_known = turn.state.gate.position is not GatePosition.UNKNOWN
    gate = "the gate was not closed" if is_known else "the gate's position was not known"
    kind, text = EventKind.UNAUTHORISED_PASSAGE, f"something passed without a decision while {gate}"
    if behind:
        kind = EventKind.VEHICLE_TAILGATED
        text = "a second vehicle followed over the closing loop without a decision of its own"
    if visit.decision is not None and not visit.decision.granted and visit.credential:
        text += f"; {named(visit.credential)} had been denied: {visit.decision.sentence()}"
    turn.tell(kind, text, passage=turn.passage(visit, PassageOutcome.UNAUTHORISED), filmed_from=visit.arrived.micros)


def _sees_arrivals(turn: Turn) -> bool:
    """Whether the arming loops are known, so that a second vehicle would have been seen there."""
    state, rules = turn.state, turn.rules
    return all(state.loop(side).fresh(turn.now.at, rules.stale) is not PointState.UNKNOWN for side in turn.sides())


def went_wrong_way(turn: Turn, visit: Visit) -> None:
    """A vehicle left against the lane's direction, and is on the arming loop still. Whoever opened let it pass."""
    against = "exit" if turn.rules.direction == "entry" else "entry"
    outcome, reason = PassageOutcome.UNAUTHORISED, "wrong_way"
    kept = turn.state.kept_at(turn.now.at, turn.now.at)
    if kept is not None:
        outcome, reason = PassageOutcome.PASSED, kept.reason
    elif visit.opened_by:
        outcome, reason = PassageOutcome.PASSED, visit.opened_by
    passage = replace(turn.passage(visit, outcome, reason=reason), direction=against)
    turn.tell(
        EventKind.WRONG_WAY,
        f"a vehicle came over the closing loop first: it went against the lane's direction ({turn.rules.direction})",
        passage=passage,
        filmed_from=visit.arrived.micros,
    )
    turn.set(leaving=Leaving(Side.NEAR, until=turn.now.at + turn.rules.leaving))
