"""What reports say of inputs, gate and orders, put into a lane's state and nothing more.

The machine does so in its turn; the shell does so ahead of the inbox, for the last question before a close.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from drivers.contract import PointState
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.inputs import SeenPoint
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state import LaneState


def observe(rules: LaneRules, state: LaneState, event: m.LaneEvent) -> LaneState:  # noqa: PLR0911 (one per event)
    """The state with what this event says of the world; other events change nothing."""
    match event:
        case m.InputReported():
            stale = rules.stale
            return _input(
                rules, state, event.role, event.index, lambda point: point.reported(event.state, event.at, stale=stale)
            )
        case m.InputMissed():
            return _input(rules, state, event.role, event.index, lambda point: replace(point, missed=event.in_a_row))
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


def _input(
    rules: LaneRules, state: LaneState, role: m.Role, index: int, change: Callable[[SeenPoint], SeenPoint]
) -> LaneState:
    match role:
        case m.Role.ARMING:
            return replace(state, arming=change(state.arming))
        case m.Role.FAR:
            return replace(state, far=change(state.far))
        case m.Role.CLOSING:
            return replace(state, closing=change(state.closing))
        case m.Role.FIRE:
            fire = change(state.fire)
            return replace(state, fire=fire, on_fire=_on_fire(state, fire.state))
        case m.Role.LOCAL:
            return replace(state, local=change(state.local))
        case m.Role.SAFETY:
            points = [*state.safety, *[SeenPoint()] * (rules.safety_points - len(state.safety))]
            if index < len(points):
                points[index] = change(points[index])
            return replace(state, safety=tuple(points))


def _on_fire(state: LaneState, now: PointState) -> bool:
    """A fire that was seen ends only when its input is seen off: losing the input is no all-clear."""
    known = {PointState.ON: True, PointState.OFF: False}
    return known.get(now, state.on_fire)
