"""Reasons for which a lane is unable: each unknown input is told with the device that it is wired to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lane_rules import lane_rules

from drivers.contract import PointState
from gateway.domain.problems import ProblemKind
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.inputs import Inputs
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.troubles import why_unable
from gateway.runtime.clock import Stamp
from gateway.site import PointRef, Role

NOW = m.Now(at=10.0, stamp=Stamp(micros=1, trusted=True))
PHOTOCELL, FIRE, KEY_SWITCH = (PointRef(device=number, point="x") for number in (201, 202, 203))


@pytest.mark.parametrize("is_read", [False, True], ids=["never read", "read once"])
def test_an_unknown_safety_input_is_told_with_its_own_device(is_read):
    rules = lane_rules(safety=(PHOTOCELL,), fire=FIRE, key_switch=KEY_SWITCH)
    inputs = Inputs()
    if is_read:
        reading = m.InputReported(role=Role.SAFETY, index=0, state=PointState.UNKNOWN, at=1.0)
        inputs = inputs.reported(reading, stale=2.0)
    state = replace(LaneState.at_start(NOW), inputs=inputs)
    told = {
        one.subject: one.device_id
        for one in why_unable(rules, state, NOW.at)
        if one.kind is ProblemKind.SAFETY_INPUT_UNKNOWN
    }
    assert told == {"safety point 1": 201, "the fire input": 202, "the key switch": 203}
