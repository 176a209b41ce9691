"""A vehicle's time in the lane, from the arming loop to its passage. Part of the machine."""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import Feedback, GatePosition
from gateway.domain.access import Decision, Reason
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.domain.grants import listed_id, without_code
from gateway.domain.passages import PassageOutcome
from gateway.lanes.machine import closing, commands_in_flight, intruders, stopping, troubles
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.plates import Votes
from gateway.lanes.machine.rules import LaneRules, Side, Vend
from gateway.lanes.machine.state import LaneState
from gateway.lanes.machine.transition import Turn, named
from gateway.lanes.machine.vehicles import Leaving, MovedOn, Visit
from gateway.lanes.snapshots import Phase

_GAP_SECONDS = 0.3
_VEHICLE_SECONDS = 0.8
_LET_IN = "a vehicle is let in"
HAS_RIGHT_OF_WAY = frozenset({Phase.OPENING, Phase.OPEN, Phase.PASSING})


def arrived(turn: Turn, side: Side, *, free_for: float = float("inf")) -> None:
    """An arming loop came on, after it was free for so many seconds; for a moment only, it had dropped out."""
    if turn.is_leaving(side):
        return
    visit, phase = turn.state.visit, turn.state.phase
    if visit is not None and not visit.vehicle_seen:
        against = turn.state.closing.is_on() and not turn.rules.two_way
        turn.set(visit=replace(visit, vehicle_seen=not against, side=side, against=against))
    elif visit is not None and phase is Phase.PASSING and side is visit.side and visit.arming_released:
        turn.set(votes_behind=turn.state.votes_behind.recent(since=turn.now.at - turn.rules.plate_early))
        turn.set(visit=replace(visit, followed=visit.followed or free_for >= _GAP_SECONDS))
    if phase is Phase.IDLE and not intruders.came_from_behind(turn):
        votes = turn.state.votes.recent(since=turn.now.at - turn.rules.plate_early)
        turn.enter(Phase.ARMED, Visit(arrived=turn.now.stamp, vehicle_seen=True, side=side))
        turn.set(note="", votes=votes)
        turn.tell(EventKind.VEHICLE_ARRIVED, "a vehicle is on the arming loop")


def arming_released(turn: Turn, side: Side, *, held_for: float) -> None:
    """An arming loop went off: before a grant the vehicle has left, after it the vehicle moves on.

    It was on for `held_for` seconds; for less than a vehicle needs, it tells of no second one.
    """
    if turn.is_leaving(side):
        turn.set(leaving=None)
        return
    visit, phase = turn.state.visit, turn.state.phase
    if visit is None or visit.side is not side:
        return
    turn.set(queued=None)
    if phase in {Phase.ARMED, Phase.DECIDING}:
        tried = visit.credential is not None
        is_vehicle = tried or held_for >= _VEHICLE_SECONDS
        intruder = turn.state.intruder
        if intruder is not None and not intruder.shut and (intruder.drops_out or not intruder.first):
            # It drives on behind the vehicle before; what it is will be told when it has passed.
            moved_on = intruder.moved_on or is_vehicle
            turn.set(intruder=replace(intruder, visit=visit, first=False, moved_on=moved_on))
        else:
            if is_vehicle:
                turn.set(moved_on=MovedOn(visit, turn.state.moved_at(turn.now.at - held_for, turn.now.at)))
            if tried:
                text = "the vehicle left before it was let in"
                _backed_out(turn, visit, text)
        turn.rest()
    elif phase in HAS_RIGHT_OF_WAY:
        is_vehicle = held_for >= _VEHICLE_SECONDS or bool(turn.state.owed)
        followers = visit.followers + (visit.followed and is_vehicle)
        turn.set(visit=replace(visit, arming_released=True, followed=False, followers=followers), votes_behind=Votes())


def decided(turn: Turn, event: m.Decided) -> None:
    """The decision came; one that is no longer waited for changes nothing."""
    visit, queued = turn.state.visit, turn.state.queued
    if turn.state.phase is Phase.DECIDING and event.number == turn.state.decisions and visit is not None:
        visit = _with_decision(visit, event.decision)
        if turn.state.locked_down:
            turn.enter(Phase.ARMED, visit)
            deny_locked(turn, visit)
        elif event.decision.granted:
            _open(turn, visit)
        else:
            turn.enter(Phase.ARMED, visit)
            _tell_decision(turn, visit)
    elif queued is not None and queued[0] == event.number:
        _queued_decided(turn, _with_decision(queued[1], event.decision))


def deny_locked(turn: Turn, visit: Visit) -> None:
    """Nobody is let in while the lane is locked down."""
    shown = visit.credential.shown() if visit.credential else ""
    why = turn.state.locked_down
    turn.set(note=f"{named(visit.credential)} denied: {why}")
    _show(turn, visit, Feedback.DENIED)
    turn.tell(
        EventKind.ACCESS_DENIED,
        f"{named(visit.credential)}: {why}",
        filmed_from=turn.now.stamp.micros,
        credential=shown,
        reason="locked_down",
    )


def operator_opens(turn: Turn, event: m.CommandRequested) -> None:
    """A person wants the gate open."""
    source = event.command.source
    commands_in_flight.send(turn, event.command, event.deadline)
    troubles.right_of_way_began(turn)
    turn.set(closing_gate=None)
    stopping.ended(turn, f"{source.removeprefix('user:')} opens it")
    if turn.state.phase not in HAS_RIGHT_OF_WAY:
        side = next((side for side in turn.sides() if turn.state.loop(side).is_on()), Side.NEAR)
        seen = turn.state.loop(side).is_on()
        visit = turn.state.visit or Visit(arrived=turn.now.stamp, vehicle_seen=seen, side=side)
        turn.set(awaited_pin=None)
        turn.enter(Phase.OPENING, replace(visit, opened_by=source, arming_released=False))
    elif turn.rules.vend is Vend.COUNTED:
        turn.set(owed=(*turn.state.owed, Visit(arrived=turn.now.stamp, opened_by=source)))


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
    visit, passing_since = turn.state.visit, turn.state.since
    if visit is None:
        return
    if visit.against:
        intruders.went_wrong_way(turn, visit)
        turn.set(passed_at=turn.now.at, moved_on=None)
        _next(turn, passed=True)
        return
    if not visit.arming_released and turn.state.loop(visit.side).is_on():
        # Under a gate that is not open nothing was passing: it is still to open, in a time of its own.
        is_open = turn.state.gate.fresh(turn.now.at, turn.rules.stale) is GatePosition.OPEN
        turn.enter(Phase.OPEN if is_open else Phase.OPENING, visit)
        return
    _passed(turn, visit)
    for _ in range(visit.followers):
        if turn.state.owed:
            _passed(turn, turn.state.owed[0])
            turn.set(owed=turn.state.owed[1:])
        else:
            follower = Visit(arrived=turn.now.stamp, side=visit.side)
            intruders.without_own_decision(turn, follower, since=passing_since, behind=True)
    beyond = turn.state.loop(visit.side.other)
    if turn.rules.two_way and not (beyond.is_on() and beyond.since < passing_since):
        turn.set(leaving=Leaving(visit.side.other, until=turn.now.at + turn.rules.leaving))
    troubles.right_of_way_began(turn)
    turn.set(passed_at=turn.now.at, moved_on=None)
    _next(turn, passed=True)


def not_opened(turn: Turn, reason: str) -> None:
    """The gate did not open for this visit."""
    visit = turn.state.visit
    turn.set(note=reason)
    if visit is None:
        return
    turn.tell(
        EventKind.OPENING_TIMED_OUT,
        f"the gate did not open: {reason}",
        passage=turn.passage(visit, PassageOutcome.NOT_OPENED),
        filmed_from=turn.now.stamp.micros,
        position=turn.state.gate.position,
    )
    turn.set(owed=())
    turn.rest()
    if turn.state.gate.position is not GatePosition.CLOSED:
        closing.begin(turn)


def closed_before_passing(turn: Turn) -> None:
    """The gate closed by hand or by itself before the vehicle passed."""
    visit = turn.state.visit
    if visit is not None:
        _backed_out(turn, visit, "the gate closed before the vehicle passed")
    turn.set(owed=())
    turn.rest()


def watch(turn: Turn) -> None:
    """Openings that take too long, open gates that nobody drives through, and loops that belong to who has left."""
    state, now = turn.state, turn.now.at
    if state.phase is Phase.OPENING and now >= state.since + turn.rules.opening:
        stopped = turn.state.stopped_by and f"stopped by {turn.state.stopped_by}"
        not_opened(
            turn, stopped or commands_in_flight.why_not_moved(turn) or f"not seen open within {turn.rules.opening:g} s"
        )
    elif state.phase is Phase.OPEN and now >= _given_up_at(turn.rules, state):
        _give_up(turn)
    leaving = turn.state.leaving
    if leaving is not None and now >= leaving.until:
        turn.set(leaving=None)
        if turn.state.loop(leaving.side).is_on():
            arrived(turn, leaving.side)


def deadlines(rules: LaneRules, state: LaneState) -> tuple[float, ...]:
    """When `watch` has something to do."""
    moments: list[float] = []
    if state.phase is Phase.OPENING:
        moments.append(state.since + rules.opening)
    elif state.phase is Phase.OPEN:
        moments.append(_given_up_at(rules, state))
    if state.leaving is not None:
        moments.append(state.leaving.until)
    return tuple(moments)


def _with_decision(visit: Visit, decision: Decision) -> Visit:
    """The visit as it is told of from now on: no record holds a code that opens gates."""
    credential = visit.credential
    return replace(
        visit,
        decision=decision,
        credential=None if credential is None else without_code(credential, decision.card),
    )


def _open(turn: Turn, visit: Visit) -> None:
    """Let it in: the gate first, then the word about it."""
    is_open = turn.state.gate.fresh(turn.now.at, turn.rules.stale) is GatePosition.OPEN
    shown = visit.credential.shown() if visit.credential else ""
    still = tuple(grant for grant in turn.state.granted_before if grant.credential != shown)
    turn.set(closing_gate=None, note="", granted_before=still)
    if turn.state.kept_open and is_open:
        # Nothing to ask of the gate; a second open would close some gates.
        turn.enter(Phase.OPEN, replace(visit, arming_released=False))
        _tell_decision(turn, visit)
        stopping.ended(turn, _LET_IN)
        return
    turn.enter(Phase.OPENING, replace(visit, arming_released=False))
    if turn.state.gate_lost:
        _tell_decision(turn, visit)
        not_opened(turn, f"the gate's controller is away: {turn.state.gate_lost}")
        return
    commands_in_flight.send(turn, turn.command(GateAction.OPEN), turn.now.at + turn.rules.command_life)
    stopping.ended(turn, _LET_IN)
    troubles.right_of_way_began(turn)
    _tell_decision(turn, visit)


def _queued_decided(turn: Turn, visit: Visit) -> None:
    """The vehicle behind, in a counted lane: its passage is owed beside the present one."""
    turn.set(queued=None)
    if turn.state.locked_down:
        deny_locked(turn, visit)
        return
    if visit.granted and turn.state.phase in HAS_RIGHT_OF_WAY:
        turn.set(owed=(*turn.state.owed, visit))
        stopping.ended(turn, _LET_IN)
    elif visit.granted and turn.state.phase is Phase.ARMED:
        _open(turn, visit)
        return
    _tell_decision(turn, visit)


def _tell_decision(turn: Turn, visit: Visit) -> None:
    decision = visit.decision
    if decision is None:
        return
    shown = visit.credential.shown() if visit.credential else ""
    trace = "; ".join(f"{rule.rule}: {'passed' if rule.passed else 'FAILED'} ({rule.seen})" for rule in decision.trace)
    holder = f" of {decision.card.holder}" if decision.granted and decision.card and decision.card.holder else ""
    raw = visit.credential.read_as() if visit.credential else ""
    unknown = decision.reason is Reason.UNKNOWN_CREDENTIAL and raw
    awaits = decision.reason is Reason.SECOND_CREDENTIAL_AWAITED
    kind, feedback = EventKind.ACCESS_DENIED, Feedback.DENIED
    if decision.granted:
        kind, feedback = EventKind.ACCESS_GRANTED, Feedback.GRANTED
    elif awaits:
        kind, feedback = EventKind.SECOND_AWAITED, Feedback.AWAITING
    _show(turn, visit, feedback)
    turn.set(second_until=turn.now.at + turn.rules.second_within if awaits else None)
    if not decision.granted:
        verdict = "" if awaits else " denied"
        turn.set(note=f"{named(visit.credential)}{verdict}: {decision.sentence()}")
    turn.tell(
        kind,
        f"{named(visit.credential)}{holder}: {decision.sentence()}" + (f"; read as {raw}" if unknown else ""),
        filmed_from=turn.now.stamp.micros if kind is EventKind.ACCESS_DENIED else None,
        credential=shown,
        read_as=raw,
        card_id=listed_id(decision.card),
        user_id=decision.card.owner if decision.card else "",
        grant=decision.grant,
        holder=decision.holder,
        opens=decision.opens,
        reason=decision.reason,
        trace=trace,
    )


def _show(turn: Turn, visit: Visit, feedback: Feedback) -> None:
    if visit.asked_by:
        turn.commands.append(m.Show(visit.asked_by, feedback))


def _passed(turn: Turn, visit: Visit) -> None:
    who = named(visit.credential) if visit.decision and visit.credential else visit.opened_by
    turn.tell(
        EventKind.VEHICLE_PASSED,
        f"a vehicle passed ({who.removeprefix('user:')})",
        passage=turn.passage(visit, PassageOutcome.PASSED),
        filmed_from=visit.arrived.micros,
        credential=visit.credential.shown() if visit.credential else "",
        direction=turn.direction(visit.side),
    )


def _backed_out(turn: Turn, visit: Visit, text: str) -> None:
    turn.tell(
        EventKind.VEHICLE_BACKED_OUT,
        text,
        passage=turn.passage(visit, PassageOutcome.BACKED_OUT),
        credential=visit.credential.shown() if visit.credential else "",
    )


def _give_up(turn: Turn) -> None:
    visit = turn.state.visit
    if visit is not None and visit.vehicle_seen:
        _backed_out(turn, visit, "the vehicle left backwards; its right of way is taken back")
    _next(turn)


def _next(turn: Turn, *, passed: bool = False) -> None:
    """This visit is over: the next vehicle that is owed a passage goes, or the gate is closed."""
    if turn.state.owed:
        following, rest = turn.state.owed[0], turn.state.owed[1:]
        turn.set(owed=rest)
        turn.enter(Phase.OPEN, following)
        return
    queued = turn.state.queued
    turn.rest(passed=passed)
    if queued is not None and turn.state.visit is not None:
        # The vehicle behind has asked already; its answer is still to come.
        turn.set(queued=queued)
    closing.begin(turn)


def _given_up_at(rules: LaneRules, state: LaneState) -> float:
    """When an open gate is given up. A loop that is on, or unknown, holds it without limit."""
    free_since = state.free_since(rules)
    seen = state.visit is not None and state.visit.vehicle_seen
    if free_since is None or (rules.vend is not Vend.MOMENTARY and not seen):
        return float("inf")
    return max(free_since, state.since) + (rules.back_out if seen else rules.waiting)
