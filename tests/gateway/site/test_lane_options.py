"""The settings of a lane, and those that do not go together."""

from __future__ import annotations

import pytest

from gateway.lanes.machine.rules import LaneRules, Side
from gateway.site import Site, check
from gateway.site.faults import faults_of

POINT = {"device": 101, "point": "x"}


def row(role, point="x", device=101):
    return {"role": role, "device": device, "point": point}


def site(*inputs, **lane) -> Site:
    return Site.model_validate(
        {
            "site": {"name": "North"},
            "links": [{"id": "plc", "url": "tcp://127.0.0.1:502"}, {"id": "desk", "url": "serial:/dev/ttyS0"}],
            "devices": [
                {"id": 101, "name": "Barrier", "driver": "modbus-gate", "link": "plc", "profile": "demo"},
                {"id": 102, "name": "Reader", "driver": "serial-reader", "link": "desk"},
            ],
            "lanes": [
                {
                    "id": "main",
                    "name": "Main",
                    "gate": 101,
                    "readers": [102],
                    "inputs": [row("arming", "arming"), row("closing", "closing"), *inputs],
                    **lane,
                }
            ],
        }
    )


def test_lane_with_everything_is_sound_and_reaches_the_rules():
    whole = site(
        row("far"),
        row("fire", "fire"),
        row("key_switch", "key"),
        direction="two-way",
        far_readers=[102],
        vend="counted",
        closes="gateway",
        held_open_seconds=135,
    )
    assert check(whole) == ()
    rules = LaneRules.of(whole, whole.lanes[0], boot="b")
    assert (rules.two_way, rules.closes_itself, rules.lane.vend) == (True, False, "counted")
    assert (rules.direction_of(Side.NEAR), rules.direction_of(Side.FAR)) == ("entry", "exit")
    assert (rules.lane.far_readers, rules.lane.held_open_seconds) == ((102,), 135)


TWO_WAY = {"direction": "two-way"}


@pytest.mark.parametrize(
    ("inputs", "lane", "place"),
    [
        ((), TWO_WAY, "lanes[0].inputs"),
        ((row("far"),), {}, "lanes[0].inputs[2]"),
        ((), {"closed_limit": POINT}, "lanes[0].open_limit"),
        ((), {"open_limit": POINT}, "lanes[0].closed_limit"),
        ((), {"closed_limit": POINT, "open_limit": POINT}, "lanes[0].open_limit"),
        ((), {"closed_limit": {"device": 101, "point": "arming"}, "open_limit": POINT}, "lanes[0].closed_limit"),
        ((), {"pin": True}, "lanes[0].pin"),
        ((), {"far_readers": [102]}, "lanes[0].far_readers"),
        ((row("far", "arming"),), TWO_WAY, "lanes[0].inputs[2]"),
        ((row("far"),), TWO_WAY | {"far_readers": [103]}, "lanes[0].far_readers[0]"),
        ((row("fire", "closing"),), {}, "lanes[0].inputs[2]"),
        ((row("fire"), row("key_switch")), {}, "lanes[0].inputs[3]"),
        ((row("safety"), row("safety")), {}, "lanes[0].inputs[3]"),
        ((row("fire", device=109),), {}, "lanes[0].inputs[2].device"),
        ((row("key_switch", device=102),), {}, "lanes[0].inputs[2].device"),
        ((), {"vend": "counted", "closes": "device"}, "lanes[0].vend"),
        ((), {"vend": "supervised"}, "lanes[0].vend"),
        ((), {"hold_open_schedule": "rush"}, "lanes[0].hold_open_schedule"),
        ((), {"lock_down_schedule": "night"}, "lanes[0].lock_down_schedule"),
    ],
)
def test_what_does_not_go_together_is_named_with_its_place(inputs, lane, place):
    assert [fault.place for fault in check(site(*inputs, **lane))] == [place]


@pytest.mark.parametrize(
    "lane",
    [{"held_open_seconds": 5}, {"vend": "often"}, {"direction": "both"}, {"plate_sure": 1.5}, {"forced_seconds": 0}],
)
def test_values_out_of_range_are_refused(lane):
    with pytest.raises(ValueError, match=next(iter(lane))) as caught:
        site(**lane)
    assert list(faults_of(caught.value))
