"""Standing orders and the fire input carried out: a gate kept open, or a lane locked down. Part of the machine.

A fire overrides every order; only a stop that a person gives during the fire overrides the fire. A lock-down traps
nobody: a vehicle with the right of way goes on, and fire and stop work as usual. No output is held on to keep a gate
open: a gate that is not seen open gets the command again after a pause; without a fire, a few times at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import SCHEDULE, GateAction, actor
from gateway.domain.events import EventKind
from gateway.lanes.machine import closing, commands_in_flight, reopening, stopping
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import OPEN_TRIES, PAUSE_SECONDS
from gateway.lanes.machine.state.orders import OpensToStayOpen, Order, ReasonToStayOpen
from gateway.lanes.machine.transition import AT_EACH_STEP, Due, LaneView, Transition
from gateway.lanes.snapshots import Phase
from gateway.texts import text

_RIGHT_OF_WAY = frozenset({Phase.OPENING, Phase.OPEN, Phase.PASSING})
_SOON = 0.25
_ON_ITS_WAY = frozenset({GatePosition.OPEN, GatePosition.OPENING})


def ordered(lane: Transition, event: m.OrderGiven | m.OrderScheduled) -> None:
    """Carry out a changed order, of a person or of the schedule."""
    before, was_open_for, doubt = lane.state.orders.in_force, _why_open_until_now(lane), lane.state.orders.doubt
    lane.observe(event)
    if lane.state.orders.doubt != doubt:
        lane.put(lane.state.orders.doubted(lane.now.at))
    order = lane.state.orders.in_force
    stood = lane.state.stop.is_in_force
    if isinstance(event, m.OrderGiven):
        stopping.ended(lane, text("stop.ended_by.order", who=actor(event.by)))
        stood = stood and not lane.state.stop.is_in_force
    if order == before:
        if stood and isinstance(event, m.OrderGiven):
            lane.put(lane.state.orders.afresh())
            _close_if_idle(lane)
        return
    if before is not None:
        by = actor(event.by if isinstance(event, m.OrderGiven) else SCHEDULE)
        ended = text("event.order_ended", who=by, why=before.words())
        lane.tell(EventKind.ORDER_ENDED, ended, order=before.kind.value)
    if order is not None:
        lane.tell(EventKind.ORDER_BEGAN, order.words(), order=order.kind.value, by=order.by, reason=order.reason)
    _changed(lane, was_open_for=was_open_for, order=order)
    if stood and isinstance(event, m.OrderGiven):
        _close_if_idle(lane)


def fire_reported(lane: Transition, event: m.InputReported) -> None:
    """Follow the fire input: a fire opens the gate at once; after its end the gate closes unless somebody needs it."""
    was_open_for, was_on_fire = _why_open_until_now(lane), lane.state.inputs.on_fire
    lane.observe(event)
    if event.state is PointState.OFF and lane.state.stop.fire_over_at == float("inf"):
        lane.put(lane.state.stop.fire_over(lane.now.at))
    if lane.state.inputs.on_fire is not was_on_fire:
        stopping.fire_changed(lane)
        _changed(lane, was_open_for=was_open_for, order=lane.state.orders.in_force)


def due(lane: LaneView) -> Iterator[Due]:
    """Yield the next open of a gate that must be kept open; until then no close may begin."""
    if not lane.state.reason_kept_open:
        return
    if not lane.state.stop.is_in_force:
        yield AT_EACH_STEP, closing.drop_unsent
    yield lane.state.orders.opens.not_before, _keep_open


def _keep_open(lane: Transition) -> None:
    """Open a gate that must be kept open and is not.

    If a close that the gateway sent moves the gate, or may still move an open one, `reopening` undoes it.
    """
    state, now = lane.state, lane.now.at
    if state.inputs.gate_lost or not reopening.may_keep_open(lane):
        return
    position, is_undone = state.inputs.gate.position, lane.state.closing is not None
    if position in _ON_ITS_WAY or (position is GatePosition.CLOSING and is_undone):
        return
    if _is_opening(lane):
        return
    opens = state.orders.opens
    if lane.rules.has_position and opens.tries >= OPEN_TRIES and not state.troubles.unmoved:
        lane.put(state.troubles.gate_unmoved(text("gate.not_open_though", why=state.reason_kept_open)))
    if opens.tries >= OPEN_TRIES and not opens.reported and (lane.rules.has_position or not state.inputs.on_fire):
        lane.put(replace(lane.state.orders, opens=replace(lane.state.orders.opens, reported=True)))
        lane.note(text("gate.not_held_open"))
        said = text("event.hold_failed", count=opens.tries, why=state.reason_kept_open)
        lane.tell(EventKind.HOLD_FAILED, said, tries=opens.tries)
    if not state.inputs.on_fire and opens.tries >= OPEN_TRIES:
        return
    pause = lane.rules.lane.opening_seconds + PAUSE_SECONDS
    lane.put(replace(state.orders, opens=OpensToStayOpen(tries=state.orders.opens.tries + 1, not_before=now + pause)))
    close = reopening.closing_to_replace(lane.state)
    lane.drop_closing()
    deadline = now + lane.rules.policy.command_seconds
    commands_in_flight.send(lane, lane.command(GateAction.OPEN), deadline, instead_of=close)


def not_sent(lane: Transition) -> None:
    """Retry soon when the first open was not sent: a line that was reset is back in a moment."""
    if lane.state.reason_kept_open:
        lane.put(lane.state.orders.not_sent(soon=lane.now.at + _SOON))


def _why_open_until_now(lane: Transition) -> ReasonToStayOpen | None:
    return lane.state.why_open_at(float("inf"), lane.now.at)


def _changed(lane: Transition, *, was_open_for: ReasonToStayOpen | None, order: Order | None) -> None:
    state = lane.state
    lane.put(state.orders.afresh())
    if order is None:
        lane.note("")
    if state.reason_kept_open:
        lane.put(state.troubles.forced(None))
        return
    if was_open_for is not None:
        lane.put(replace(lane.state.orders, last_reason=was_open_for))
    if state.troubles.off_closed_at is not None and was_open_for is not None:
        lane.put(state.troubles.off_closed(lane.now.at))
    if was_open_for is not None or state.locked_down:
        _close_if_idle(lane)


def _close_if_idle(lane: Transition) -> None:
    if lane.state.visits.phase not in _RIGHT_OF_WAY and lane.state.closing is None:
        closing.begin(lane)


def _is_opening(lane: Transition) -> bool:
    flight = lane.state.commands.flight
    return flight is not None and flight.command.action is GateAction.OPEN
