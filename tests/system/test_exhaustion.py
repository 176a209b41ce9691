"""Descriptors that are used up: gates go on, and the rest comes back when there are some again."""

from __future__ import annotations

import http.client
import json
import resource

import pytest

from gateway.domain.events import EventKind
from simulation.demo.scene import GOOD_CARDS

pytestmark = pytest.mark.long("a running gateway with real far ends")


def answers(port: int) -> bool:
    """Return whether a new client is served."""
    another = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        another.request("GET", "/health/live")
        return another.getresponse().status == 200
    except OSError:
        return False
    finally:
        another.close()


def test_without_a_descriptor_left_what_is_open_goes_on_and_the_rest_comes_back(make_site, wait_until):
    site = make_site()
    wait_until(lambda: site.api.events(types=[EventKind.CARDS_CHANGED]), within=30, why="cards come from central")
    before = site.newest()
    kept = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)

    def events() -> set[int]:
        """Ask over the connection that was there before."""
        head = {"SessionID": site.api.session, "Content-Type": "application/json"}
        kept.request("POST", "/v1/event/list", json.dumps({"page_limit": 200}), head)
        return {event["type"] for event in json.load(kept.getresponse())["events"] if event["id"] > before}

    events()
    usual = resource.prlimit(site.gateway.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(site.gateway.pid, resource.RLIMIT_NOFILE, (0, usual[1]))  # what is open stays so
    try:
        assert not answers(site.port)
        site.present("entry", GOOD_CARDS[0].sent)
        wait_until(lambda: EventKind.ACCESS_GRANTED in events(), within=60, why="the lane decides, and it is recorded")
    finally:
        resource.prlimit(site.gateway.pid, resource.RLIMIT_NOFILE, usual)
        kept.close()
    wait_until(site.up, within=60, why="new connections are taken again, and no line is lost")
    site.present("exit", GOOD_CARDS[0].sent)
    wait_until(
        lambda: EventKind.VEHICLE_PASSED in site.types_since(before), within=90, why="a vehicle passes as always"
    )
    assert EventKind.POWER_LOST not in site.types_since(before)
