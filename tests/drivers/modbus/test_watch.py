"""The meaning of polls: positions, points, loss and recovery, with instants given."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import (
    DeviceConnected,
    DeviceLost,
    GateMoved,
    GatePosition,
    LossExplained,
    PointChanged,
    PointState,
    PollMissed,
)
from drivers.gates.polls import LOST_AFTER_SECONDS, PollWatch, limit_position
from drivers.modbus.frames import Table
from drivers.modbus.polled_unit import points_of, position_of

P = GatePosition
ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN


@pytest.mark.parametrize(
    ("closed", "opened", "before", "commanded", "position"),
    [
        (ON, OFF, P.OPEN, P.OPENING, P.CLOSED),
        (OFF, ON, P.CLOSED, P.STOPPED, P.OPEN),
        (ON, ON, P.OPEN, None, P.UNKNOWN),
        (UNKNOWN, ON, P.OPEN, None, P.UNKNOWN),
        (OFF, OFF, P.CLOSED, None, P.OPENING),
        (OFF, OFF, P.OPEN, None, P.CLOSING),
        (OFF, OFF, P.OPENING, None, P.OPENING),
        (OFF, OFF, P.CLOSING, P.OPENING, P.OPENING),
        (OFF, OFF, P.CLOSING, P.STOPPED, P.STOPPED),
        (OFF, OFF, P.CLOSED, P.STOPPED, P.STOPPED),
        (OFF, OFF, P.CLOSED, P.CLOSING, P.OPENING),
        (OFF, OFF, P.STOPPED, P.CLOSING, P.CLOSING),
        (OFF, OFF, P.UNKNOWN, None, P.UNKNOWN),
    ],
)
def test_the_position_by_limit_switches(closed, opened, before, commanded, position):
    assert limit_position(closed=closed, opened=opened, before=before, commanded=commanded) is position


def test_the_position_by_register(came_profile):
    def shown(value):
        held = {(Table.HOLDING_REGISTER, 100): value}
        return position_of(came_profile, held, {}, before=P.CLOSED, commanded=None)

    assert [shown(value) for value in (16, 17, 19, 32, 33, 0, 999)] == [
        P.OPEN,
        P.CLOSED,
        P.STOPPED,
        P.OPENING,
        P.CLOSING,
        P.UNKNOWN,
        P.UNKNOWN,
    ]
    assert position_of(came_profile, {}, {}, before=P.OPEN, commanded=None) is P.UNKNOWN


def test_what_was_not_read_is_unknown(relay_profile):
    states = points_of(relay_profile, {(Table.DISCRETE_INPUT, 3): 1, (Table.DISCRETE_INPUT, 4): 0})
    assert states["closing_loop"] is ON
    assert states["photocell"] is OFF
    assert states["arming_loop"] is UNKNOWN


def test_connected_once_then_changes_and_refreshes():
    watch = PollWatch(device_id=7, started_at=0.0)
    first = watch.answered(P.CLOSED, {"loop": OFF}, at=0.1)
    assert first == (
        DeviceConnected(7, 0.1),
        GateMoved(7, P.CLOSED, 0.1),
        PointChanged(7, "loop", OFF, 0.1),
    )
    assert watch.answered(P.CLOSED, {"loop": OFF}, at=0.2) == ()
    assert watch.answered(P.CLOSED, {"loop": ON}, at=0.3) == (PointChanged(7, "loop", ON, 0.3),)
    assert watch.answered(P.CLOSED, {"loop": ON}, at=1.15) == (GateMoved(7, P.CLOSED, 1.15),)


def test_lost_after_three_failures():
    watch = PollWatch(device_id=7, started_at=0.0)
    watch.answered(P.CLOSED, {"loop": OFF}, at=0.1)
    assert watch.missed("silent", at=0.2, asked=True) == (PollMissed(7, 1, 0.2),)
    assert watch.missed("silent", at=0.3, asked=True) == (PollMissed(7, 2, 0.3),)
    assert watch.missed("silent", at=0.4, asked=True) == (DeviceLost(7, "silent", 0.4),)
    assert watch.missed("silent", at=9.0, asked=True) == ()
    assert watch.position is P.UNKNOWN
    again = watch.answered(P.CLOSED, {"loop": OFF}, at=10.0)
    assert [type(report) for report in again] == [DeviceConnected, GateMoved, PointChanged]


def test_polls_that_were_not_sent_count_by_time_alone():
    watch = PollWatch(device_id=7, started_at=0.0)
    watch.answered(P.OPEN, {}, at=1.0)
    for tenth in range(11, 30):
        assert watch.missed("rests", at=tenth / 10, asked=False) == ()
    assert watch.missed("rests", at=3.0, asked=False) == (DeviceLost(7, "rests", 3.0),)


def test_a_poll_that_was_sent_gives_the_reason_and_a_lost_device_gets_a_newer_one():
    watch = PollWatch(device_id=7, started_at=0.0)
    watch.answered(P.OPEN, {}, at=1.0)
    watch.missed("silent", at=1.5, asked=True)
    assert watch.missed("rests", at=3.0, asked=False) == (DeviceLost(7, "silent", 3.0),)
    assert watch.missed("rests", at=5.0, asked=False) == ()
    assert watch.missed("refused", at=6.0, asked=True, answers=True) == (
        LossExplained(7, "refused", 6.0, answers=True),
    )


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.floats(0.05, 0.8)), max_size=60))
def test_loss_and_recovery_always_alternate(polls):
    watch = PollWatch(device_id=7, started_at=0.0)
    reports, now, heard_at = [], 0.0, 0.0
    for answered, asked, pause in polls:
        now += pause
        if answered:
            heard_at = now
            reports += watch.answered(P.OPEN, {"loop": ON}, at=now)
        else:
            reports += watch.missed("silent", at=now, asked=asked)
            if now - heard_at >= LOST_AFTER_SECONDS:
                assert watch.position is P.UNKNOWN
    turns = [type(report) for report in reports if isinstance(report, DeviceConnected | DeviceLost)]
    assert all(earlier is not later for earlier, later in itertools.pairwise(turns))
