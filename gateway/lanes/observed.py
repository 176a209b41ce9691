"""What reports say of inputs, gate and orders, put into a lane's state and nothing more.

The machine does so in its turn; the shell does so ahead of the inbox, for the last question before a close.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import PointState
from gateway.lanes import messages as m
from gateway.lanes.rules import LaneRules
from gateway.lanes.seen import SeenPoint
from gateway.lanes.state import LaneState


def observe(rules: LaneRules, state: LaneState, event: m.LaneEvent) -> LaneState:  # noqa: PLR0911 (one per event)
    """The state with what this event says of the world; other events change nothing."""
    match event:
        case m.InputReported():
            return _input(rules, state, event)
        case m.GateReported():
            return replace(state, gate=state.gate.reported(event.position, event.at))
        case m.GateLost():
            return replace(state, gate_lost=event.reason or "it does not answer")
        case m.GateLossExplained():
            return replace(state, gate_lost=state.gate_lost and event.reason)
        case m.GateRegained():
            return replace(state, gate_lost="")
        case m.OrderGiven():
            return replace(state, operator_order=event.order)
        case m.OrderScheduled():
            return replace(state, scheduled_order=event.order, schedule_doubt=event.doubt)
        case _:
            return state


def _input(rules: LaneRules, state: LaneState, event: m.InputReported) -> LaneState:
    match event.role:
        case m.Role.ARMING:
            return replace(state, arming=state.arming.reported(event.state, event.at, stale=rules.stale))
        case m.Role.FAR:
            return replace(state, far=state.far.reported(event.state, event.at, stale=rules.stale))
        case m.Role.CLOSING:
            return replace(state, closing=state.closing.reported(event.state, event.at, stale=rules.stale))
        case m.Role.FIRE:
            fire = state.fire.reported(event.state, event.at, stale=rules.stale)
            return replace(state, fire=fire, on_fire=_on_fire(state, event))
        case m.Role.LOCAL:
            return replace(state, local=state.local.reported(event.state, event.at, stale=rules.stale))
        case m.Role.SAFETY:
            points = [*state.safety, *[SeenPoint()] * (rules.safety_points - len(state.safety))]
            if event.index < len(points):
                points[event.index] = points[event.index].reported(event.state, event.at, stale=rules.stale)
            return replace(state, safety=tuple(points))


def _on_fire(state: LaneState, event: m.InputReported) -> bool:
    """A fire that was seen ends only when its input is seen off: losing the input is no all-clear."""
    known = {PointState.ON: True, PointState.OFF: False}
    return known.get(event.state, state.on_fire)
