"""The table of roles: the rows do not contradict themselves, and each has its key in the site file."""

from __future__ import annotations

import pytest

from gateway.site import ROLES, LaneInput, LaneSection, PointRef, Role

EACH = pytest.mark.parametrize("role", Role)


def point(number):
    return PointRef(device=101, point=f"x{number}")


def test_each_role_has_a_row():
    assert set(ROLES) == set(Role)


@EACH
def test_what_a_vehicle_under_the_gate_holds_forbids_a_close(role):
    assert ROLES[role].forbids_close or not ROLES[role].obstructs


@EACH
def test_no_input_both_opens_the_gate_and_forbids_that(role):
    assert not (ROLES[role].opens and ROLES[role].forbids_open)


@EACH
def test_only_an_input_named_after_its_point_may_be_there_several_times(role):
    assert ROLES[role].many is not bool(ROLES[role].name)


def test_inputs_of_a_lane_come_in_the_order_of_the_table():
    keys = {role: (point(1), point(2)) if ROLES[role].many else point(role) for role in reversed(Role)}
    lane = LaneSection(id="in", name="In", gate=101, **keys)
    assert [one.role for one in lane.inputs if one.index == 0] == list(ROLES)
    assert [one.place for one in lane.inputs if one.role is Role.SAFETY] == ["safety[0]", "safety[1]"]


def test_input_that_is_not_there_is_left_out():
    lane = LaneSection(id="in", name="In", gate=101, arming=point(1), closing=point(2))
    assert lane.inputs == (LaneInput(Role.ARMING, 0, point(1)), LaneInput(Role.CLOSING, 0, point(2)))
