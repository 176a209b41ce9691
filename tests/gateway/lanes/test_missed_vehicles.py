"""Vehicles that count as missed by a loop: those that a loop should have seen, and no others."""

from __future__ import annotations

import json
from zoneinfo import ZoneInfo

import pytest

from drivers.contract import GatePosition, PointState
from gateway.domain.credentials import Credential
from gateway.domain.day_counts import Measure, counted
from gateway.domain.events import RecordedEvent
from gateway.lanes.machine import messages as m

ON, OFF = PointState.ON, PointState.OFF


def missed(lane) -> int:
    """Return how many vehicles of the lane's events count as missed by a loop."""
    events = [event for one in lane.out if isinstance(one, m.Record) for event in one.entry.events]
    recorded = [
        RecordedEvent(
            id=number,
            device_id=event.device_id,
            type=int(event.kind),
            category=0,
            subcategory=0,
            name="",
            description=event.description,
            date_at=event.date_at,
            clock_trusted=True,
            lane_id=event.lane_id,
            data=json.dumps(event.data),
        )
        for number, event in enumerate(events, 1)
    ]
    return sum(one.amount for one in counted(recorded, ZoneInfo("UTC")) if one.measure is Measure.MISSED_VEHICLES)


def refused_and_left(lane):
    lane.arming(ON)
    lane.card("9999")
    lane.wait(2)
    lane.arming(OFF)


def left_before_the_decision(lane):
    lane.arming(ON)
    lane.do(m.CardRead(102, Credential(text="0007"), lane.at))
    lane.arming(OFF)


def let_in_and_not_seen_to_pass(lane):
    lane.let_in()
    lane.wait(1)
    lane.arming(OFF)
    lane.wait(lane.rules.lane.back_out_seconds + 1)


def passed_unseen_by_the_arming_loop(lane):
    lane.gate(GatePosition.OPEN)
    lane.wait(1)
    lane.closing(ON)
    lane.wait(1)
    lane.closing(OFF)


def refused_and_drove_through_an_open_gate(lane):
    lane.gate(GatePosition.OPEN)
    lane.arming(ON)
    lane.card("9999")
    lane.wait(2)
    lane.closing(ON)
    lane.wait(1)
    lane.arming(OFF)
    lane.wait(1)
    lane.closing(OFF)


@pytest.mark.parametrize(
    ("happens", "outcome", "count"),
    [
        (refused_and_left, "backed_out", 0),
        (left_before_the_decision, "backed_out", 0),
        (refused_and_drove_through_an_open_gate, "unauthorised", 0),
        (let_in_and_not_seen_to_pass, "backed_out", 1),
        (passed_unseen_by_the_arming_loop, "unauthorised", 1),
    ],
)
def test_only_vehicles_that_a_loop_should_have_seen_count_as_missed(lane, happens, outcome, count):
    happens(lane)
    assert lane.passages[-1].outcome == outcome
    assert missed(lane) == count
