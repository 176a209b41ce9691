"""Reasons why the interface is not served, and when they count as a problem."""

from __future__ import annotations

import pytest
from set_machine import SetClock

from gateway.app.served_interface import ServedInterface
from gateway.store.engine.changes import Changes
from tests.gateway.web.setups.site import SITE

NOT_YET = "the interface is not served yet"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def interface(clock, tmp_path):
    return ServedInterface(
        site=SITE,
        changes=Changes(),
        run_folder=tmp_path,
        make=lambda: pytest.fail("nothing is served here"),
        clock=clock,
    )


def test_a_start_that_takes_its_usual_time_is_no_problem(interface, clock):
    assert (interface.fault, interface.lasting_fault) == (NOT_YET, "")
    clock.seconds += 19
    assert interface.lasting_fault == ""
    clock.seconds += 2
    assert interface.lasting_fault == NOT_YET


def test_a_port_that_cannot_be_had_is_a_problem_at_once(interface):
    interface.fault, interface.is_awaited = "port 8480 is in use", False
    assert interface.lasting_fault == "port 8480 is in use"
