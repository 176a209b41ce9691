"""Standing orders and the fire input carried out: a gate kept open, or a lane locked down. Part of the machine.

A fire counts for more than any order, and only a stop that a person gives during it counts for more than a fire.
Nobody is trapped by a lock-down: who has the right of way goes on, and fire and stop work as ever. No output is held on
to keep a gate open: when the gate is seen elsewhere it is told again, with a pause between and, but for a fire, a few
times only.
"""

from __future__ import annotations

from dataclasses import replace

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.lanes.machine import closing, commands_in_flight, stopping
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.order_values import Order
from gateway.lanes.machine.state import Keeping, Kept, LaneState
from gateway.lanes.machine.transition import Turn
from gateway.lanes.snapshots import Phase

_RIGHT_OF_WAY = frozenset({Phase.OPENING, Phase.OPEN, Phase.PASSING})
_ON_ITS_WAY = frozenset({GatePosition.OPEN, GatePosition.OPENING})


def ordered(turn: Turn, event: m.OrderGiven | m.OrderScheduled) -> None:
    """A person or the schedule wants something else from now on."""
    before, was_kept, doubt = turn.state.order, _kept_until_now(turn), turn.state.schedule_doubt
    turn.observe(event)
    if turn.state.schedule_doubt != doubt:
        turn.set(doubted_since=turn.now.at)
    order = turn.state.order
    stood = turn.state.is_stopped
    if isinstance(event, m.OrderGiven):
        stopping.ended(turn, f"{event.by.removeprefix('user:')} gives the lane an order")
        stood = stood and not turn.state.is_stopped
    if order == before:
        if stood and isinstance(event, m.OrderGiven):
            turn.set(keeping=Keeping())
            _close_if_idle(turn)
        return
    if before is not None:
        by = event.by.removeprefix("user:") if isinstance(event, m.OrderGiven) else "schedule"
        turn.tell(EventKind.ORDER_ENDED, f"no longer: {before.sentence()} (ended by {by})", order=before.kind.value)
    if order is not None:
        turn.tell(EventKind.ORDER_BEGAN, order.sentence(), order=order.kind.value, by=order.by, reason=order.reason)
    _changed(turn, was_kept=was_kept, order=order)
    if stood and isinstance(event, m.OrderGiven):
        _close_if_idle(turn)


def fire_reported(turn: Turn, event: m.InputReported) -> None:
    """The fire input: it opens the gate at once, and what it kept open is closed once it is over."""
    was_kept, was_on_fire = _kept_until_now(turn), turn.state.on_fire
    turn.observe(event)
    if event.state is PointState.OFF and turn.state.fire_over_at == float("inf"):
        turn.set(fire_over_at=turn.now.at)
    if turn.state.on_fire is not was_on_fire:
        stopping.fire_changed(turn)
        _changed(turn, was_kept=was_kept, order=turn.state.order)


def watch(turn: Turn) -> None:
    """Have the gate opened while it is to be open and is not."""
    state, now = turn.state, turn.now.at
    if not state.kept_open or state.gate_lost or not _may_move(turn):
        return
    if state.gate.position in _ON_ITS_WAY and state.closing_gate is not None:
        turn.set(closing_gate=None)
    if state.gate.position in _ON_ITS_WAY or now < state.keeping.not_before or _is_opening(turn):
        return
    keeping = state.keeping
    if not state.on_fire and keeping.tries >= turn.rules.hold_tries:
        if not keeping.told:
            turn.set(keeping=replace(keeping, told=True), note="the gate could not be held open")
            text = f"the gate is not open after {keeping.tries} commands, though {state.kept_open}"
            turn.tell(EventKind.HOLD_FAILED, text, tries=keeping.tries)
        return
    pause = turn.rules.opening + turn.rules.close_pause
    turn.set(keeping=Keeping(tries=keeping.tries + 1, not_before=now + pause), closing_gate=None)
    commands_in_flight.send(turn, turn.command(GateAction.OPEN), now + turn.rules.command_life)


def deadlines(state: LaneState) -> tuple[float, ...]:
    """When `watch` has something to do."""
    return (state.keeping.not_before,) if state.kept_open else ()


def _kept_until_now(turn: Turn) -> Kept | None:
    return turn.state.kept_at(float("inf"), turn.now.at)


def _changed(turn: Turn, *, was_kept: Kept | None, order: Order | None) -> None:
    state = turn.state
    turn.set(keeping=Keeping(), note="" if order is None else state.note)
    if state.kept_open:
        turn.set(forced_at=None)
        if not state.is_stopped:
            turn.set(closing_gate=None)
        return
    if was_kept is not None:
        turn.set(kept=was_kept)
    if state.off_closed_at is not None and was_kept is not None:
        turn.set(off_closed_at=turn.now.at)
    if was_kept is not None or state.locked_down:
        _close_if_idle(turn)


def _close_if_idle(turn: Turn) -> None:
    if turn.state.phase not in _RIGHT_OF_WAY and turn.state.closing_gate is None:
        closing.begin(turn)


def _may_move(turn: Turn) -> bool:
    """A fire moves a gate of unknown position too; an order does not, nor one that somebody works at or stopped."""
    state = turn.state
    if state.is_stopped:
        return False
    if state.on_fire:
        return True
    known = state.gate.fresh(turn.now.at, turn.rules.stale) is not GatePosition.UNKNOWN
    return known and (not turn.rules.local_input or state.local.state is PointState.OFF)


def _is_opening(turn: Turn) -> bool:
    flight = turn.state.flight
    return flight is not None and flight.command.action is GateAction.OPEN
