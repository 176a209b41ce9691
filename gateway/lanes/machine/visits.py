"""A vehicle's time in the lane, from the arming loop to its passage. Part of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.access import AccessRules, Coming, Decision
from gateway.domain.commands import LANE, Command, GateAction, actor
from gateway.domain.events import EventKind
from gateway.domain.passages import PassageOutcome
from gateway.lanes.machine import answers, closing, commands_in_flight, intruders, reopening, stopping, troubles
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LEAVING_SECONDS, WAITED_SECONDS, LaneRules, Side
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.state.plates import Votes
from gateway.lanes.machine.state.visits import Leaving, Visit
from gateway.lanes.machine.transition import Due, LaneView, Transition, named
from gateway.lanes.snapshots import Phase
from gateway.texts import Text, Words, text

_GAP_SECONDS = 0.3
_VEHICLE_SECONDS = 0.8
_LET_IN = text("stop.ended_by.vehicle")
HAS_RIGHT_OF_WAY = frozenset({Phase.OPENING, Phase.OPEN, Phase.PASSING})


def arrived(lane: Transition, side: Side, *, free_for: float = float("inf")) -> None:
    """Handle an arming loop that comes on: begin a visit, or note a second vehicle behind the one that passes.

    `free_for` is how many seconds the loop was off. A loop that was off for a moment had only dropped out.
    """
    lane.put(lane.state.readings.vehicle_seen())
    if lane.is_leaving(side):
        return
    visit, phase = lane.state.visits.present, lane.state.visits.phase
    if visit is not None and not visit.vehicle_seen:
        against = lane.state.inputs.closing.is_on() and not lane.rules.two_way
        lane.put(lane.state.visits.with_present(replace(visit, vehicle_seen=not against, side=side, against=against)))
    elif visit is not None and phase is Phase.PASSING and side is visit.side and visit.arming_released:
        readings = lane.state.readings
        lane.put(
            readings.voted_behind(readings.votes_behind.recent(since=lane.now.at - lane.rules.lane.plate_early_seconds))
        )
        if free_for >= _GAP_SECONDS:
            lane.put(lane.state.visits.with_present(replace(visit, followed=True)))
    if phase is Phase.IDLE and not intruders.came_from_behind(lane):
        votes = lane.state.readings.votes.recent(since=lane.now.at - lane.rules.lane.plate_early_seconds)
        lane.enter(Phase.ARMED, Visit(arrived=lane.now.stamp, vehicle_seen=True, side=side))
        lane.put(lane.state.readings.voted(votes))
        lane.note("")
        lane.tell(EventKind.VEHICLE_ARRIVED, text("event.vehicle_arrived"))


def arming_released(lane: Transition, side: Side, *, held_for: float) -> None:
    """Handle an arming loop that goes off: before a grant the vehicle has left, after a grant it moves on.

    `held_for` is how many seconds the loop was on. Less than a vehicle needs shows no vehicle.
    """
    if lane.is_leaving(side):
        lane.put(lane.state.visits.with_leaving(None))
        return
    visit, phase = lane.state.visits.present, lane.state.visits.phase
    if visit is None or visit.side is not side:
        return
    lane.put(lane.state.visits.with_queued(None))
    if phase in {Phase.ARMED, Phase.DECIDING}:
        tried = visit.credential is not None
        is_vehicle = tried or held_for >= _VEHICLE_SECONDS
        intruder = lane.state.intruders.present
        if intruder is not None and not intruder.shut and (intruder.drops_out or not intruder.first):
            # It drives on behind the vehicle before; an event follows when it has passed.
            lane.put(lane.state.intruders.driving_on(intruder, visit, vehicle=is_vehicle))
        else:
            if is_vehicle:
                at = lane.state.moved_at(lane.now.at - held_for, lane.now.at)
                lane.put(lane.state.intruders.left_arming_loop(visit, at))
            if tried:
                _backed_out(lane, visit, text("event.backed_out.before_let_in"))
            elif _waited_in_vain(lane, held_for):
                lane.put(lane.state.readings.vehicle_unread())
        lane.rest()
    elif phase in HAS_RIGHT_OF_WAY:
        is_vehicle = held_for >= _VEHICLE_SECONDS or bool(lane.state.visits.owed)
        lane.put(lane.state.visits.with_present(visit.released_loop(vehicle=is_vehicle)))
        lane.put(lane.state.readings.voted_behind(Votes()))


def _waited_in_vain(lane: Transition, held_for: float) -> bool:
    """Return whether a vehicle that leaves has waited before the closed gate, and nothing was read."""
    state = lane.state
    is_shut = state.inputs.gate.position is GatePosition.CLOSED and not state.reason_kept_open
    is_unread = bool(lane.rules.lane.readers) and not state.readings.votes.readings
    return is_shut and is_unread and held_for >= WAITED_SECONDS


def decided(lane: Transition, event: m.Decided) -> None:
    """Carry out the decision. One that is no longer awaited changes nothing."""
    visit, queued = lane.state.visits.present, lane.state.visits.queued
    if (
        lane.state.visits.phase is Phase.DECIDING
        and event.number == lane.state.readings.decisions
        and visit is not None
    ):
        visit = visit.decided(event.decision)
        if lane.state.locked_down:
            lane.enter(Phase.ARMED, visit)
            answers.denied_locked(lane, visit)
        elif event.decision.granted:
            _open(lane, visit)
        else:
            lane.enter(Phase.ARMED, visit)
            answers.decided(lane, visit)
    elif queued is not None and queued[0] == event.number:
        _queued_decided(lane, queued[1].decided(event.decision))


def operator_opens(lane: Transition, event: m.CommandRequested) -> None:
    """Open the gate for a person."""
    source = event.command.source
    commands_in_flight.send(lane, event.command, event.deadline, instead_of=reopening.closing_to_replace(lane.state))
    lane.drop_closing()
    stopping.lifted(lane, event.command)
    if lane.state.visits.phase not in HAS_RIGHT_OF_WAY:
        side = next((side for side in lane.sides() if lane.state.inputs.loop(side).is_on()), Side.NEAR)
        seen = lane.state.inputs.loop(side).is_on()
        visit = lane.state.visits.present or Visit(arrived=lane.now.stamp, vehicle_seen=seen, side=side)
        lane.put(lane.state.readings.awaiting_pin(None))
        lane.enter(Phase.OPENING, visit.opening(by=source))
    elif lane.rules.lane.vend == "counted":
        visits, owed = lane.state.visits, Visit(arrived=lane.now.stamp, opened_by=source)
        lane.put(replace(visits, owed=(*visits.owed, owed)))


def open_heard(lane: Transition) -> None:
    """Count the time of an open gate anew: the device has heard an open for a vehicle, or may have."""
    if lane.state.visits.phase in HAS_RIGHT_OF_WAY:
        troubles.right_of_way_began(lane)


def opened(lane: Transition) -> None:
    """Note that the gate is seen open for this visit."""
    lane.enter(Phase.OPEN, lane.state.visits.present)
    lane.note("")
    lane.tell(EventKind.GATE_OPENED, text("event.gate_opened"))


def passing(lane: Transition) -> None:
    """Follow a vehicle with the right of way onto the closing loop, perhaps before the gate is fully open."""
    lane.enter(Phase.PASSING, lane.state.visits.present)


def left_closing_loop(lane: Transition) -> None:
    """Record a passage once the closing loop is free, if the arming loop was released too; else wait on."""
    visit, passing_since = lane.state.visits.present, lane.state.visits.since
    if visit is None:
        return
    if visit.against:
        intruders.went_wrong_way(lane, visit)
        lane.put(lane.state.intruders.vehicle_passed(lane.now.at))
        _next(lane, passed=True)
        return
    if not visit.arming_released and lane.state.inputs.loop(visit.side).is_on():
        # Nothing can have passed under a gate that is not open: it must still open, within a new time-out.
        is_open = lane.state.inputs.gate.fresh(lane.now.at, lane.rules.policy.stale_seconds) is GatePosition.OPEN
        lane.enter(Phase.OPEN if is_open or not lane.rules.has_position else Phase.OPENING, visit)
        return
    _passed(lane, visit)
    for _ in range(visit.followers):
        if lane.state.visits.owed:
            _passed(lane, lane.state.visits.owed[0])
            lane.put(replace(lane.state.visits, owed=lane.state.visits.owed[1:]))
        else:
            follower = Visit(arrived=lane.now.stamp, side=visit.side)
            intruders.without_own_decision(lane, follower, since=passing_since, behind=True)
    beyond = lane.state.inputs.loop(visit.side.other)
    if lane.rules.two_way and not (beyond.is_on() and beyond.since < passing_since):
        lane.put(lane.state.visits.with_leaving(Leaving(visit.side.other, until=lane.now.at + LEAVING_SECONDS)))
    troubles.right_of_way_began(lane)
    lane.put(lane.state.intruders.vehicle_passed(lane.now.at))
    _next(lane, passed=True)


def open_not_sent(lane: Transition, command: Command, reason: str, *, may_still_open: bool) -> None:
    """End what waits for an open that did not reach the device; a person's open that was not sent changes nothing.

    A visit goes on while another open may still open the gate for it (`may_still_open`), or is seen to do so.
    """
    visit = lane.state.visits.present
    lane.put(lane.state.visits.owing_one_less_to(command.source))
    goes_on = may_still_open or lane.state.inputs.gate.position is GatePosition.OPENING
    if lane.state.visits.phase is not Phase.OPENING or visit is None or goes_on:
        return
    if command.source == LANE or (visit.decision is not None and visit.decision.granted):
        not_opened(lane, reason, closes=False)
    elif visit.vehicle_seen and not visit.arming_released:
        lane.enter(Phase.ARMED, replace(visit, opened_by=""))
    else:
        lane.rest()


def not_opened(lane: Transition, reason: Words, *, said: Words = "", closes: bool = True) -> None:
    """End a visit for which the gate did not open. `said`: a sentence with the reason, if there is a truer one.

    `closes`: the gate may have moved, so it is closed again.
    """
    visit = lane.state.visits.present
    lane.note("" if lane.state.troubles.unmoved else reason)  # a trouble says it until it is over
    if visit is None:
        return
    lane.tell(
        EventKind.OPENING_TIMED_OUT,
        said or text("gate.did_not_open", why=reason),
        passage=lane.passage(visit, PassageOutcome.NOT_OPENED),
        filmed_from=lane.now.stamp.micros,
        position=lane.state.inputs.gate.position,
    )
    lane.put(lane.state.visits.owing_nothing())
    lane.rest()
    if closes and lane.state.inputs.gate.position is not GatePosition.CLOSED:
        closing.begin(lane)


def gate_regained(lane: Transition) -> None:
    """Begin the time to be seen open anew: the gate may have opened while its controller was away."""
    if lane.state.visits.phase is Phase.OPENING:
        lane.enter(Phase.OPENING, lane.state.visits.present)


def closed_before_passing(lane: Transition) -> None:
    """End a visit whose gate closed by hand or by itself before the vehicle passed."""
    visit = lane.state.visits.present
    if visit is not None:
        _backed_out(lane, visit, text("event.backed_out.gate_closed"))
    lane.put(lane.state.visits.owing_nothing())
    lane.rest()


def due(lane: LaneView) -> Iterator[Due]:
    """Yield the ends of an opening, of the wait at an open gate without a vehicle, and of the time to leave a loop."""
    since, phase = lane.state.visits.since, lane.state.visits.phase
    if phase is Phase.OPENING:
        seen_by = since + lane.rules.lane.opening_seconds
        # While its controller is away nobody sees the gate open: then the vehicle's leaving ends the wait.
        ends = max(seen_by, _given_up_at(lane.rules, lane.state)) if lane.state.inputs.gate_lost else seen_by
        yield ends, _opening_timed_out
    elif phase is Phase.OPEN:
        yield _given_up_at(lane.rules, lane.state), _give_up
    if lane.state.visits.leaving is not None:
        yield lane.state.visits.leaving.until, _left_loop


def _opening_timed_out(lane: Transition) -> None:
    if lane.state.inputs.gate_lost:
        not_opened(lane, text("lane.gate_offline", why=lane.state.inputs.gate_lost))
        return
    if lane.state.stop.by:
        not_opened(lane, text("gate.stopped_by", who=lane.state.stop.by))
        return
    is_slow = lane.state.inputs.gate.position is GatePosition.OPENING
    late = text("gate.not_seen_open", seconds=lane.rules.lane.opening_seconds)
    reason = late if is_slow else commands_in_flight.why_not_moved(lane) or late
    slowly = text("gate.slow_to_open", seconds=lane.rules.lane.opening_seconds)
    said = slowly if is_slow else text("gate.did_not_open", why=reason)
    lane.put(lane.state.troubles.gate_unmoved(said, is_slow=is_slow))
    not_opened(lane, reason, said=said)


def _left_loop(lane: Transition) -> None:
    """End the time to leave the loop. If the loop is still on, another vehicle has come."""
    leaving = lane.state.visits.leaving
    lane.put(lane.state.visits.with_leaving(None))
    if leaving is not None and lane.state.inputs.loop(leaving.side).is_on():
        arrived(lane, leaving.side)


def _open(lane: Transition, visit: Visit) -> None:
    """Let the vehicle in: command the gate first, then record the event."""
    is_open = lane.state.inputs.gate.fresh(lane.now.at, lane.rules.policy.stale_seconds) is GatePosition.OPEN
    lane.put(lane.state.visits.without_grant_of(visit))
    lane.note("")
    if lane.state.reason_kept_open and is_open:
        # Send no open: a second one would close some gates, and `reopening` undoes a close under way.
        lane.enter(Phase.OPEN, visit.opening())
        answers.decided(lane, visit)
        stopping.ended(lane, _LET_IN)
        return
    lane.enter(Phase.OPENING, visit.opening())
    if lane.state.inputs.gate_lost:
        answers.decided(lane, visit)
        not_opened(lane, text("lane.gate_offline", why=lane.state.inputs.gate_lost))
        return
    replaced, command = reopening.closing_to_replace(lane.state), lane.command(GateAction.OPEN)
    lane.drop_closing()
    deadline = lane.now.at + lane.rules.policy.command_seconds
    commands_in_flight.send(lane, command, deadline, instead_of=replaced)
    stopping.lifted(lane, command, _LET_IN)
    troubles.right_of_way_began(lane)
    answers.decided(lane, visit)


def _queued_decided(lane: Transition, visit: Visit) -> None:
    """Carry out the decision on the vehicle behind, in a counted lane: a grant means that a passage is owed to it."""
    lane.put(lane.state.visits.with_queued(None))
    if lane.state.locked_down:
        answers.denied_locked(lane, visit)
        return
    if visit.granted and lane.state.visits.phase in HAS_RIGHT_OF_WAY:
        visits = lane.state.visits
        lane.put(replace(visits, owed=(*visits.owed, visit)))
        stopping.ended(lane, _LET_IN)
    elif visit.granted and lane.state.visits.phase is Phase.ARMED:
        _open(lane, visit)
        return
    answers.decided(lane, visit)


def _passed(lane: Transition, visit: Visit) -> None:
    who = named(visit.credential) if visit.decision and visit.credential else actor(visit.opened_by)
    lane.tell(
        EventKind.VEHICLE_PASSED,
        text("event.passed_by", who=who),
        passage=lane.passage(visit, PassageOutcome.PASSED),
        filmed_from=visit.arrived.micros,
        credential=visit.shown,
        direction=lane.direction(visit.side),
    )


def _backed_out(lane: Transition, visit: Visit, said: Text) -> None:
    lane.tell(
        EventKind.VEHICLE_BACKED_OUT,
        said,
        passage=lane.passage(visit, PassageOutcome.BACKED_OUT),
        credential=visit.shown,
        let_in=visit.granted,
    )


def _give_up(lane: Transition) -> None:
    visit = lane.state.visits.present
    if visit is not None and visit.vehicle_seen:
        _backed_out(lane, visit, text("event.backed_out.after_let_in"))
    _next(lane)


def _next(lane: Transition, *, passed: bool = False) -> None:
    """Turn to the next vehicle that is owed a passage, or begin to close the gate."""
    if lane.state.visits.owed:
        following = lane.state.visits.owed[0]
        lane.put(replace(lane.state.visits, owed=lane.state.visits.owed[1:]))
        lane.enter(Phase.OPEN, following)
        return
    queued = lane.state.visits.queued
    lane.rest(passed=passed)
    if queued is not None and lane.state.visits.present is not None:
        # The decision on the vehicle behind was already asked for and is still to come.
        lane.put(lane.state.visits.with_queued(queued))
    closing.begin(lane)


def _given_up_at(rules: LaneRules, state: LaneState) -> float:
    """Return when an open gate stops waiting for a vehicle. A loop that is on or unknown keeps it open for ever."""
    free_since = state.free_since(rules)
    seen = state.visits.present is not None and state.visits.present.vehicle_seen
    if free_since is None or (rules.lane.vend != "momentary" and not seen):
        return float("inf")
    return max(free_since, state.visits.since) + (rules.lane.back_out_seconds if seen else rules.lane.waiting_seconds)


def granted_vehicles(rules: LaneRules, state: LaneState, access: Mapping[str, AccessRules]) -> Iterator[Coming]:
    """Yield the vehicle that has its right of way, and in a counted lane those that are owed a passage after it."""
    present = (
        (state.visits.present,) if state.visits.present is not None and state.visits.phase in HAS_RIGHT_OF_WAY else ()
    )
    for visit in (*present, *state.visits.owed):
        yield from granted(access[rules.direction_of(visit.side)], visit.decision)


def granted(rules: AccessRules, decision: Decision | None) -> Iterator[Coming]:
    """Yield a vehicle that is let in, with no decision if by a person. Yield nothing if the lane leads nowhere else.

    Areas count such a vehicle as on its way.
    """
    if rules.way:
        card = decision.card if decision is not None else None
        yield Coming(rules.lane_id, rules.way, rules.holder(card) if card is not None else "")
