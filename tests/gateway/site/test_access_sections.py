"""Areas, schedules, holidays and what lanes say of them."""

from __future__ import annotations

from datetime import time

import pytest
from pydantic import ValidationError

from gateway.domain.printed import ReaderBits
from gateway.site import Site, check
from gateway.site.faults import faults_of

LANE = {
    "id": "in",
    "name": "In",
    "gate": 101,
    "inputs": [
        {"role": "arming", "device": 101, "point": "a"},
        {"role": "closing", "device": 101, "point": "b"},
    ],
}
SITE = {
    "site": {"name": "North"},
    "links": [{"id": "gates", "url": "tcp://127.0.0.1:5020"}],
    "devices": [{"id": 101, "name": "Gate", "driver": "modbus-gate", "link": "gates", "profile": "barrier"}],
    "areas": [{"id": "garage", "name": "Garage", "limit": 5, "anti_passback": "timed"}],
    "schedules": [{"id": "day", "windows": [{"days": ["mon", "holiday"], "start": "08:00", "end": "24:00"}]}],
    "holidays": [{"date": "2026-12-25", "name": "Christmas"}],
    "lanes": [{**LANE, "inside": "garage", "schedule": "day", "zones": ["7"]}],
}


def faults(**parts):
    try:
        return [str(fault) for fault in check(Site.model_validate({**SITE, **parts}))]
    except ValidationError as error:
        return [str(fault) for fault in faults_of(error)]


SHARED = [{**SITE["areas"][0], "shared": True, "apart": "deny"}]
FLEET = {"urls": ["nats://127.0.0.1"], "site": "north", "gateway": "gate-1"}


def test_an_area_is_shared_over_the_fleet():
    assert faults(areas=SHARED, fleet=FLEET) == []
    assert faults(areas=SHARED) == [
        "areas[0].shared: needs [fleet]: the gateways share it over the fleet's server",
    ]


def test_a_good_site():
    site = Site.model_validate(SITE)
    assert check(site) == ()
    assert site.schedules[0].windows[0].end == time(0)


@pytest.mark.parametrize(
    ("parts", "fault"),
    [
        ({"areas": []}, "lanes[0].inside: no area 'garage'"),
        ({"schedules": []}, "lanes[0].schedule: no schedule 'day'"),
        ({"areas": SITE["areas"] * 2}, "areas[1].id: 'garage' is already used by areas[0]"),
        ({"schedules": SITE["schedules"] * 2}, "schedules[1].id: 'day' is already used by schedules[0]"),
        ({"holidays": SITE["holidays"] * 2}, "holidays[1].date: '2026-12-25' is already used by holidays[0]"),
        (
            {"lanes": [{**LANE, "inside": "garage", "outside": "garage"}]},
            "lanes[0].outside: is 'garage', the same area as inside; a passage leads from one to the other",
        ),
        (
            {"lanes": [{**LANE, "hold_open_schedule": "day", "lock_down_schedule": "day"}]},
            "lanes[0].lock_down_schedule: is 'day', as hold_open_schedule is: the gate cannot be held open and locked",
        ),
        (
            {"lanes": [{**LANE, "schedule": "day", "lock_down_schedule": "day"}]},
            "lanes[0].lock_down_schedule: is 'day', as schedule is: the lane would let nobody in while it is open",
        ),
    ],
)
def test_faults_between_parts(parts, fault):
    assert faults(**parts) == [fault]


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"areas": [{"id": "garage", "name": "Garage", "limit": 0}]}, "areas[0].limit"),
        ({"areas": [{"id": "garage", "name": "Garage", "anti_passback": "mild"}]}, "areas[0].anti_passback"),
        ({"schedules": [{"id": "day", "windows": [{"days": [], "start": "8:00", "end": "9"}]}]}, "schedules[0].win"),
        ({"schedules": [{"id": "day", "windows": [{"days": ["xmas"]}]}]}, "schedules[0].windows[0].days[0]"),
        ({"holidays": [{"date": "Christmas"}]}, "holidays[0].date"),
        ({"lanes": [{**LANE, "doubt": {"clock": "maybe"}}]}, "lanes[0].doubt.clock"),
    ],
)
def test_faults_inside_parts_are_placed_and_nothing_is_said_missing_for_them(parts, place):
    found = faults(**parts)
    assert found
    assert all(fault.startswith(place.split(".")[0]) for fault in found)
    assert any(fault.startswith(place) for fault in found)
    assert not any(": no " in fault for fault in found)


@pytest.mark.parametrize("wrong", ["6:00", "25:00", "06:00Z", 6])
@pytest.mark.parametrize("end", ["start", "end"])
def test_a_time_that_is_none_says_how_one_is_written(end, wrong):
    windows = [{"days": ["mon"], "start": "06:00", "end": "24:00", end: wrong}]
    said = "must be a time of day from 00:00 to 23:59 with two digits each, as '06:00'"
    assert set(faults(schedules=[{"id": "day", "windows": windows}])) == {f"schedules[0].windows[0].{end}: {said}"}


@pytest.mark.parametrize(("days", "said"), [(["monday"], "days[0]: must be 'mon', "), ([], "days: must not be empty")])
def test_days_that_are_none_are_one_fault(days, said):
    windows = [{"days": days, "start": time(6), "end": "12:00"}]
    (fault,) = set(faults(schedules=[{"id": "day", "windows": windows}]))
    assert fault.startswith(f"schedules[0].windows[0].{said}")


def test_how_a_reader_turns_bits():
    reader = {"id": 1, "name": "R", "driver": "serial-reader", "link": "r", "bits": {"inverted": True, "skip_last": 1}}
    site = Site.model_validate({**SITE, "devices": [*SITE["devices"], reader]})
    assert ReaderBits(**dict(site.devices[1].bits)) == ReaderBits(skip_last=1, inverted=True)
