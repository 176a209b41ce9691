"""The table of roles does not contradict itself, and a lane has the inputs that it needs."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from gateway.site import ROLES, LaneSection, PointRef, Role
from gateway.site.faults import faults_of

EACH = pytest.mark.parametrize("role", Role)


def point(number):
    return PointRef(device=101, point=f"x{number}")


def with_inputs(*roles):
    rows = [{"role": role, "device": 101, "point": f"x{number}"} for number, role in enumerate(roles)]
    return LaneSection.model_validate({"id": "in", "name": "In", "gate": 101, "inputs": rows})


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
    lane = with_inputs(*reversed(Role), Role.SAFETY)
    assert [one.role for one in lane.ordered_inputs if one.index == 0] == list(ROLES)
    first, last = list(reversed(Role)).index(Role.SAFETY), len(Role)
    safety = [(one.index, one.ref, one.place) for one in lane.ordered_inputs if one.role is Role.SAFETY]
    assert safety == [(0, point(first), f"inputs[{first}]"), (1, point(last), f"inputs[{last}]")]


@pytest.mark.parametrize(
    ("roles", "told"),
    [
        ((Role.ARMING,), "inputs: needs an input with role 'closing'"),
        ((Role.ARMING, Role.CLOSING, Role.ARMING), "inputs: only one input can have role 'arming'"),
        ((Role.ARMING, Role.CLOSING, "shutter"), "inputs[2].role: must be 'arming', 'far', 'closing', 'safety'"),
    ],
)
def test_rows_that_make_no_lane_are_told_with_their_place(roles, told):
    with pytest.raises(ValidationError) as caught:
        with_inputs(*roles)
    (fault,) = faults_of(caught.value)
    assert str(fault).startswith(told)
