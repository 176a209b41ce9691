"""Vehicles on the closing loop without a right of way of their own. Part of the machine.

A loop can drop out under a vehicle and come back, so a loop that is on again does not yet show a second vehicle. A
second vehicle has come over the arming loop, which was released when it drove on. While the arming loop is unknown,
every passage counts.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition, PointState
from gateway.domain.events import EventKind
from gateway.domain.passages import PassageOutcome
from gateway.lanes.machine.rules import LEAVING_SECONDS, Side
from gateway.lanes.machine.state.intruders import Intruder
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.state.visits import Leaving, Visit
from gateway.lanes.machine.transition import Transition, named
from gateway.lanes.snapshots import Phase
from gateway.texts import text

_DROPS_OUT_SECONDS = 2.0
_SAME_VEHICLE_SECONDS = 10.0


def on_closing_loop(lane: Transition) -> None:
    """Note a vehicle that came onto the closing loop; under a closed gate it cannot pass yet."""
    state, now = lane.state, lane.now.at
    shut = state.inputs.gate.position is GatePosition.CLOSED and not lane.state.visits.let_in_before(lane.now.at)
    moved_on = state.intruders.moved_on
    if moved_on is not None and now - moved_on.at > LEAVING_SECONDS:
        moved_on = None
    intruder = Intruder(
        visit=state.visits.present or (moved_on.visit if moved_on is not None else Visit(arrived=lane.now.stamp)),
        at=_moved_at(state, now) if moved_on is None else moved_on.at,
        first=state.visits.phase is Phase.IDLE and state.visits.leaving is None and moved_on is None,
        moved_on=moved_on is not None,
        drops_out=now - state.intruders.left_at < _DROPS_OUT_SECONDS,
        shut=shut,
    )
    lane.put(state.intruders.noticed(intruder, moved_on=moved_on if shut else None))


def follow_gate(lane: Transition, position: GatePosition) -> None:
    """Note that a vehicle under the gate can pass, since the gate has left its closed limit.

    If the gate opens for a vehicle with the right of way, the vehicle under it is no intruder.
    """
    intruder = lane.state.intruders.present
    if intruder is None or not intruder.shut or position in {GatePosition.CLOSED, GatePosition.UNKNOWN}:
        return
    given = lane.state.visits.phase in {Phase.OPENING, Phase.OPEN, Phase.PASSING}
    intruders = lane.state.intruders
    lane.put(intruders.gone() if given else replace(intruders, present=replace(intruder, shut=False)))


def _moved_at(state: LaneState, now: float) -> float:
    return (
        now if state.visits.present is None else state.moved_at(state.inputs.loop(state.visits.present.side).since, now)
    )


def is_the_one_before(lane: Transition) -> bool:
    """Return whether the vehicle on the closing loop is the one that just passed, not the one that may pass next."""
    state, visit = lane.state, lane.state.visits.present
    if visit is None or lane.now.at - state.intruders.left_at >= _DROPS_OUT_SECONDS:
        return False
    return not visit.arming_released and state.inputs.loop(visit.side).is_off()


def came_from_behind(lane: Transition) -> bool:
    """Return whether the vehicle on the arming loop came over the closing loop first, and note it if so."""
    intruder = lane.state.intruders.present
    may_go_since = max(lane.state.inputs.closing.since, lane.state.troubles.off_closed_at or 0.0)
    recent = lane.now.at - may_go_since <= LEAVING_SECONDS
    if intruder is None or not intruder.first or intruder.drops_out or lane.rules.two_way or not recent:
        return False
    if intruder.shut:
        return False
    lane.put(replace(lane.state.intruders, present=replace(intruder, reached_arming=True)))
    return True


def left_closing_loop(lane: Transition, intruder: Intruder) -> None:
    """Record the passage of an intruder that has left the closing loop.

    Nothing is recorded while the loop chatters, under a closed gate, or if it was probably the vehicle before.
    """
    lane.put(lane.state.intruders.gone())
    if lane.now.at < lane.state.inputs.closing.chatters_until() or intruder.shut:
        return
    if intruder.first and intruder.reached_arming and not lane.rules.two_way:
        went_wrong_way(lane, intruder.visit)
        return
    state, visit = lane.state, intruder.visit
    behind = state.closing is not None and state.intruders.vehicle_passed_at >= (
        state.troubles.off_closed_at or state.intruders.left_at
    )
    lately = behind or intruder.at - state.intruders.left_at < _SAME_VEHICLE_SECONDS
    if (
        lately
        and not intruder.moved_on
        and lane.state.visits.let_in_before(lane.now.at) is None
        and _sees_arrivals(lane)
    ):
        return
    side = Side.FAR if intruder.first and lane.rules.two_way and lane.state.inputs.arming.is_on() else visit.side
    without_own_decision(lane, visit.from_side(side), since=intruder.at, behind=behind)


def without_own_decision(lane: Transition, visit: Visit, *, since: float, behind: bool) -> None:
    """Record a passage without a decision; `behind`: it followed a vehicle with the right of way.

    A vehicle that came at `since` while the gate was kept open needed no decision, even if that is over now.
    """
    kept = lane.state.why_open_at(since, lane.now.at)
    if kept is not None:
        lane.tell(
            EventKind.VEHICLE_PASSED,
            text("event.passed_while", why=kept.sentence),
            passage=lane.passage(visit, PassageOutcome.PASSED, reason=kept.reason),
            filmed_from=visit.arrived.micros,
            direction=lane.direction(visit.side),
        )
        return
    before = lane.state.visits.let_in_before(lane.now.at)
    if before is not None and not behind:
        lane.put(lane.state.visits.without_grant(before))
        lane.tell(
            EventKind.VEHICLE_PASSED,
            text("event.passed_after_restart", credential=before.credential),
            passage=lane.passage(visit, PassageOutcome.PASSED, reason="granted_before_restart", before=before),
            filmed_from=visit.arrived.micros,
            credential=before.credential,
            direction=lane.direction(visit.side),
        )
        return
    is_known = lane.state.inputs.gate.position is not GatePosition.UNKNOWN
    kind, how = EventKind.UNAUTHORISED_PASSAGE, "undecided" if is_known else "undecided_unseen"
    if behind:
        kind, how = EventKind.VEHICLE_TAILGATED, "tailgated"
    said = text(f"event.passed.{how}")
    if visit.decision is not None and not visit.decision.granted and visit.credential:
        why = visit.decision.words()
        said = text("event.passed_denied", passed=said, credential=named(visit.credential), why=why)
    lane.tell(
        kind,
        said,
        passage=lane.passage(visit, PassageOutcome.UNAUTHORISED),
        filmed_from=visit.arrived.micros,
        on_arming_loop=visit.vehicle_seen,
    )


def _sees_arrivals(lane: Transition) -> bool:
    """Return whether the arming loops are known, so that a second vehicle would have been seen there."""
    state, rules = lane.state, lane.rules
    return all(
        state.inputs.loop(side).fresh(lane.now.at, rules.policy.stale_seconds) is not PointState.UNKNOWN
        for side in lane.sides()
    )


def went_wrong_way(lane: Transition, visit: Visit) -> None:
    """Record a vehicle that left against the lane's direction. It is still on the arming loop."""
    direction = lane.rules.lane.direction
    against = "exit" if direction == "entry" else "entry"
    outcome, reason = PassageOutcome.UNAUTHORISED, "wrong_way"
    kept = lane.state.why_open_at(lane.now.at, lane.now.at)
    if kept is not None:
        outcome, reason = PassageOutcome.PASSED, kept.reason
    elif visit.opened_by:
        outcome, reason = PassageOutcome.PASSED, visit.opened_by
    passage = lane.passage(visit, outcome, reason=reason, direction=against)
    lane.tell(
        EventKind.WRONG_WAY,
        text(f"event.wrong_way.{direction}"),
        passage=passage,
        filmed_from=visit.arrived.micros,
    )
    lane.put(lane.state.visits.with_leaving(Leaving(Side.NEAR, until=lane.now.at + LEAVING_SECONDS)))
