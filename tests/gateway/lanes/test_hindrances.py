"""Hindrances of a lane beyond those that its machine knows, and gates that are to stay open and do not."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from far_end_site import a_barrier, alive
from idle_lane import GATE, IDLE

from drivers.contract import GatePosition, PointState
from drivers.gates.limits import LimitPoint, Limits
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind as E
from gateway.domain.problems import ProblemKind as K
from gateway.lanes.lanes import with_hindrances
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.machine.troubles import lasting
from gateway.lanes.snapshots import DeviceSnapshot, LaneTrouble, PointSnapshot

READER = 103
BARRIER = DeviceSnapshot(GATE, "Barrier", "modbus-gate", True, 5, "", GatePosition.CLOSED, ())
LIMITS = Limits(LimitPoint(GATE, "closed_limit"), LimitPoint(GATE, "open_limit"))
UNMOVED = LaneTrouble(K.GATE_DOES_NOT_MOVE, "the gate did not open: locked")
UNKNOWN = LaneTrouble(K.GATE_POSITION_UNKNOWN, "the position is not known")


def hindered(lane, *devices, readers=(), limits=None):
    known = {device.device_id: device for device in devices}
    return with_hindrances(lane, devices=known, readers=readers, limits=limits)


def unmoved(lane):
    return [trouble for trouble in lasting(lane.state) if trouble.kind is K.GATE_DOES_NOT_MOVE]


async def test_barrier_that_acknowledges_and_stays_where_it_is_stops_its_lane_until_it_moves(tmp_path):
    async with a_barrier() as (barrier, _, port), alive(tmp_path, barrier=barrier, port=port) as lane:
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED and not shown.unable)
        barrier.set_locked(locked=True, now=time.monotonic())
        await lane.lanes.command(device_id=GATE, action=GateAction.OPEN, source="user:guard")
        (trouble,) = (await lane.sees(lambda shown: shown.unable)).unable
        assert trouble.kind is K.GATE_DOES_NOT_MOVE
        assert "the gate did not open" in str(trouble.text)
        barrier.set_locked(locked=False, now=time.monotonic())
        await lane.lanes.command(device_id=GATE, action=GateAction.OPEN, source="user:guard")
        await lane.sees(lambda shown: shown.position is GatePosition.OPEN and not shown.unable)


@pytest.mark.parametrize("position", [GatePosition.CLOSED, GatePosition.STOPPED, GatePosition.OPENING])
def test_gate_that_does_not_move_and_is_not_open_stops_its_lane(position):
    assert hindered(replace(IDLE, position=position, troubles=(UNMOVED,))).unable == (UNMOVED,)


@pytest.mark.parametrize("position", [GatePosition.OPEN, GatePosition.UNKNOWN])
def test_gate_that_stands_open_stops_nobody_and_an_unknown_one_is_told_as_such(position):
    lane = replace(IDLE, position=position, troubles=(UNMOVED,))
    assert hindered(lane) == lane


def test_gate_that_is_to_be_held_open_and_stays_shut_is_a_trouble_until_it_is_open(lane):
    lane.order(OrderKind.HOLD_OPEN)
    assert unmoved(lane) == []
    lane.wait(200)
    assert E.HOLD_FAILED in lane.events
    (trouble,) = unmoved(lane)
    assert trouble.kind is K.GATE_DOES_NOT_MOVE
    assert "market day" in str(trouble.text)
    lane.gate(GatePosition.OPEN)
    assert unmoved(lane) == []


def test_gate_that_a_fire_does_not_open_is_a_trouble(lane):
    lane.fire(PointState.ON)
    lane.wait(100)
    (trouble,) = unmoved(lane)
    assert str(trouble.text) == "the gate did not open, though the fire input is active"


def test_a_gate_that_opens_slowly_is_told_as_slow_once_and_until_it_is_at_a_limit(lane):
    lane.arming(PointState.ON)
    lane.card()
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    lane.wait(lane.rules.lane.opening_seconds + 1)
    text = "the gate moves, but is not open after 8 s"
    assert [(one.kind, str(one.text)) for one in lasting(lane.state)] == [(K.GATE_TOO_SLOW, text)]
    assert (lane.texts.count(text), lane.state.note) == (1, "")
    lane.gate(GatePosition.OPEN)
    assert list(lasting(lane.state)) == []
    assert lane.texts.count(f"over: {text}") == 1


def test_a_gate_that_closes_slowly_is_told_as_slow(lane):
    lane.arming(PointState.ON)
    lane.card()
    lane.open_gate()
    lane.drive_through()
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.wait(100)
    text = "the gate moves, but is not closed after 15 s"
    assert (K.GATE_TOO_SLOW, text) in [(one.kind, str(one.text)) for one in lasting(lane.state)]
    assert (lane.texts.count(text), lane.state.note) == (1, "")


def test_a_gate_that_does_not_move_is_told_once_and_leaves_no_note_behind(lane):
    lane.arming(PointState.ON)
    lane.card()
    lane.acknowledge()
    lane.wait(lane.rules.lane.opening_seconds + 1)
    (trouble,) = unmoved(lane)
    assert (lane.texts.count(str(trouble.text)), lane.state.note) == (1, "")
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    assert lane.texts.count(f"over: {trouble.text}") == 1
    assert lane.state.note == ""


@pytest.mark.parametrize(
    ("opened", "kind"),
    [
        (PointState.ON, K.GATE_LIMITS_BOTH_ON),
        (PointState.OFF, K.GATE_POSITION_UNKNOWN),
        (PointState.UNKNOWN, K.GATE_POSITION_UNKNOWN),
    ],
)
def test_a_position_that_is_unknown_because_both_limits_are_on_says_so_in_the_lane(opened, kind):
    points = (PointSnapshot("closed_limit", PointState.ON), PointSnapshot("open_limit", opened))
    barrier = replace(BARRIER, points=points)
    lane = replace(IDLE, position=GatePosition.UNKNOWN, unable=(UNKNOWN,), troubles=(UNKNOWN,))
    shown = hindered(lane, barrier, limits=LIMITS)
    assert {trouble.kind for trouble in (*shown.unable, *shown.troubles)} == {kind}
    if kind is K.GATE_LIMITS_BOTH_ON:
        assert shown.unable[0].text == (
            "both limit switches are on, as if the gate were open and closed at once: closed_limit and open_limit"
        )


def test_lane_whose_readers_are_all_away_says_so():
    away = DeviceSnapshot(READER, "Reader", "serial-reader", False, 5, "unplugged", None, ())
    other = replace(away, device_id=104, online=True)
    shown = hindered(IDLE, BARRIER, away, other, readers=(READER,))
    assert [trouble.kind for trouble in shown.unable] == [K.READERS_OFFLINE]
    assert hindered(IDLE, BARRIER, away, other, readers=(READER, 104)) == IDLE
