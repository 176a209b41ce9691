"""Whatever goes over the closing loop without a right of way of its own. Part of the machine."""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition
from gateway.domain.events import EventKind
from gateway.domain.passages import PassageOutcome
from gateway.lanes.board import Phase
from gateway.lanes.state import Intruder, Leaving, RememberedGrant, Side, Visit
from gateway.lanes.turn import Turn, named

_GATE_MAY_BE_PASSED = frozenset({GatePosition.OPEN, GatePosition.OPENING, GatePosition.CLOSING, GatePosition.STOPPED})


def on_closing_loop(turn: Turn) -> None:
    """Something came onto the closing loop; under a closed gate it cannot pass."""
    if turn.state.gate.position not in _GATE_MAY_BE_PASSED and not let_in_before(turn):
        return
    first = turn.state.phase is Phase.IDLE and turn.state.leaving is None
    visit = turn.state.visit or Visit(arrived=turn.now.stamp)
    turn.set(intruder=Intruder(visit, first=first))


def let_in_before(turn: Turn) -> RememberedGrant | None:
    """Who was let in before a restart and may be on the way still."""
    grant = turn.state.granted_before
    return grant if grant is not None and turn.now.at < grant.until else None


def came_from_behind(turn: Turn) -> bool:
    """Whether what comes onto the arming loop came over the closing loop first; then it wants out, not in."""
    intruder = turn.state.intruder
    recent = turn.now.at - turn.state.closing.since <= turn.rules.leaving
    if intruder is None or not intruder.first or turn.rules.two_way or not recent:
        return False
    turn.set(intruder=replace(intruder, reached_arming=True))
    return True


def left_closing_loop(turn: Turn, intruder: Intruder) -> None:
    """The closing loop is free again: tell what that was."""
    turn.set(intruder=None)
    if turn.now.at < turn.state.closing.chatters_until():
        return
    if intruder.first and intruder.reached_arming and not turn.rules.two_way:
        _wrong_way(turn, intruder.visit)
        turn.set(leaving=Leaving(Side.NEAR, until=turn.now.at + turn.rules.leaving))
        return
    behind = turn.state.closing_gate is not None
    visit = intruder.visit
    side = Side.FAR if intruder.first and turn.rules.two_way and turn.state.arming.is_on() else visit.side
    without_own_decision(turn, replace(visit, side=side), behind=behind)


def without_own_decision(turn: Turn, visit: Visit, *, behind: bool) -> None:
    """A vehicle has passed on nobody's word; `behind` another that had the right of way, or not."""
    state = turn.state
    if state.kept_open:
        turn.tell(
            EventKind.VEHICLE_PASSED,
            f"a vehicle passed while {state.kept_open}",
            passage=turn.passage(visit, PassageOutcome.PASSED, reason="fire" if state.on_fire else "hold_open"),
            filmed_from=visit.arrived.micros,
            direction=turn.direction(visit.side),
        )
        return
    before = let_in_before(turn)
    if before is not None and not behind:
        turn.set(granted_before=None)
        passage = turn.passage(visit, PassageOutcome.PASSED, reason="granted_before_restart")
        turn.tell(
            EventKind.VEHICLE_PASSED,
            f"a vehicle passed ({before.credential}), let in before the gateway restarted",
            passage=replace(passage, card_id=before.card_id, credential=before.credential),
            filmed_from=visit.arrived.micros,
            credential=before.credential,
            direction=turn.direction(visit.side),
        )
        return
    kind, text = EventKind.UNAUTHORISED_PASSAGE, "something passed without a decision while the gate was not closed"
    if behind:
        kind = EventKind.VEHICLE_TAILGATED
        text = "a second vehicle followed over the closing loop without a decision of its own"
    if visit.decision is not None and not visit.decision.granted and visit.credential:
        text += f"; {named(visit.credential)} had been denied: {visit.decision.sentence()}"
    turn.tell(kind, text, passage=turn.passage(visit, PassageOutcome.UNAUTHORISED), filmed_from=visit.arrived.micros)


def _wrong_way(turn: Turn, visit: Visit) -> None:
    against = "exit" if turn.rules.direction == "entry" else "entry"
    outcome, reason = PassageOutcome.UNAUTHORISED, "wrong_way"
    if turn.state.kept_open:
        outcome, reason = PassageOutcome.PASSED, "hold_open"
    passage = replace(turn.passage(visit, outcome, reason=reason), direction=against)
    turn.tell(
        EventKind.WRONG_WAY,
        f"a vehicle came over the closing loop first: it went against the lane's direction ({turn.rules.direction})",
        passage=passage,
        filmed_from=visit.arrived.micros,
    )
