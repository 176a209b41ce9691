"""Each input that forbids a close, alone: no close goes out because of it, and one goes out as soon as it is clear.

The cases are all inputs of `points_that_forbid`, in a lane that has an input of every role.
"""

from __future__ import annotations

import pytest
from lane_rules import changed, lane_rules

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.safety import points_that_forbid, polled_near_a_close
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.runner import lane_points
from gateway.site import ROLES, PointRef, Role

ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN
STALE, NEVER_STALE = 2.0, 60.0
POLL = 0.5


INPUTS = {
    role: tuple(PointRef(device=number + more, point="x") for more in ((0, 100) if ROLES[role].many else (0,)))
    for number, role in enumerate(Role, start=200)
}
"""References of their own for an input of each role; two where a lane can have several."""
RULES = lane_rules(safety_points=2, direction="two-way", **{role.value: refs for role, refs in INPUTS.items()})
GUARDS = points_that_forbid(RULES, LaneState())
NO_GUARDS = (Role.ARMING, Role.FAR)
"""Inputs that do not forbid a close: the vehicle waits before the gate."""
SWITCHES = (Role.FIRE, Role.KEY_SWITCH)
"""Inputs that forbid a close, but that no vehicle holds."""


def roles(lane):
    """Return the role of each input of the lane, and its place among those of the same role."""
    found = {}
    for point in lane_points(lane.rules, lane.state.inputs, lane.at, int)[1:]:
        role = Role(point.role)
        index = sum(other is role for other, _ in found.values())
        found[PointRef(device=point.device_id, point=point.name)] = (role, index)
    return found


def poll(lane, seconds, *, guard=None, fault=None):
    """Let time pass in which the gate is open and every input is read as off, except for the fault of one."""
    for number in range(round(seconds / POLL) + 1):
        lane.do(m.GateReported(GatePosition.OPEN, lane.at))
        for ref, (role, index) in roles(lane).items():
            reported = ref != guard or (fault in {"stale", "not answered"} and number < 2)
            if reported or fault in {ON, UNKNOWN}:
                lane.do(m.InputReported(role, OFF if reported else fault, lane.at, index))
            elif fault == "not answered":
                lane.do(m.InputMissed(role, number - 1, index))
        lane.wait(POLL, refresh=False)


@pytest.fixture
def left_open(make_script):
    """Return a lane that starts while its gate is open, so that it closes it as soon as it may."""

    def start(rules=RULES):
        lane = make_script(rules)
        lane.do(m.GateRegained())
        return lane

    return start


def test_lane_closes_a_gate_that_was_left_open_within_five_seconds(left_open):
    lane = left_open()
    poll(lane, 5)
    assert GateAction.CLOSE in lane.actions()


@pytest.mark.parametrize("fault", [ON, UNKNOWN, "never read", "stale", "not answered"])
@pytest.mark.parametrize("guard", [one.ref for one, _ in GUARDS], ids=[one.name for one, _ in GUARDS])
def test_no_close_goes_out_because_of_one_input_until_it_is_clear(left_open, guard, fault):
    lane = left_open(changed(RULES, stale_seconds=STALE if fault == "stale" else NEVER_STALE))
    poll(lane, 5, guard=guard, fault=fault)
    assert GateAction.CLOSE not in lane.actions()
    poll(lane, 5)
    assert lane.actions() == [GateAction.CLOSE]


def test_each_input_of_a_lane_forbids_a_close_or_is_named_as_one_that_does_not():
    expected = {ref for name, refs in INPUTS.items() if name not in NO_GUARDS for ref in refs}
    assert {one.ref for one, _ in GUARDS} == expected


def test_device_of_each_input_that_a_vehicle_can_hold_is_polled_fast_near_a_close():
    held = {ref.device for name, refs in INPUTS.items() if name not in {*NO_GUARDS, *SWITCHES} for ref in refs}
    assert polled_near_a_close(RULES) == {RULES.lane.gate, *held}
