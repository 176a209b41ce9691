"""The main job, on real input: a vehicle, its card over a serial line, a gate over Modbus, footage, central."""

from __future__ import annotations

import json

import pytest

from gateway.domain.events import EventKind
from gateway.domain.writes import site_id_in
from simulation.demo.scene import BAD_CARDS, GOOD_CARDS

pytestmark = pytest.mark.long("a gateway and its field as processes, with a camera; ffmpeg")


@pytest.fixture(scope="module")
def site(make_lasting_site, wait_until):
    site = make_lasting_site()
    wait_until(
        lambda: _cards_are_there(site),
        within=20,
        why="cards come from central",
    )
    return site


def _cards_are_there(site) -> bool:
    return bool(site.api.events(types=[EventKind.CARDS_CHANGED]))


def newest(site) -> int:
    events = site.api.events()
    return events[0]["id"] if events else 0


def kinds_since(site, before: int, lane: str) -> list[int]:
    return [event["type"] for event in reversed(site.api.events()) if event["id"] > before and event["lane_id"] == lane]


def test_vehicle_with_a_good_card_passes_and_everything_follows(site, wait_until, ffprobe, tmp_path):
    before = newest(site)
    site.present("entry", GOOD_CARDS[0].sent)
    wait_until(lambda: EventKind.GATE_CLOSED in kinds_since(site, before, "entry"), within=20, why="the passage ends")
    kinds = kinds_since(site, before, "entry")
    expected = [
        EventKind.VEHICLE_ARRIVED,
        EventKind.ACCESS_GRANTED,
        EventKind.GATE_OPENED,
        EventKind.VEHICLE_PASSED,
        EventKind.GATE_CLOSED,
    ]
    assert [kind for kind in kinds if kind in expected] == expected

    passed = next(e for e in site.api.events(types=[EventKind.VEHICLE_PASSED]) if e["id"] > before)
    proof = wait_until(
        lambda: next((e for e in site.api.camera_events() if e["event_id"] == passed["id"] and e["ready"]), None),
        within=30,
        why="the footage is complete",
    )
    status, clip, headers = site.api.raw("GET", f"/v1/camera/event/clip/{proof['id']}")
    assert status == 200, clip
    assert headers["Content-Type"] == "video/mp4"
    path = tmp_path / "clip.mp4"
    path.write_bytes(clip)
    found = ffprobe(path)
    assert found["streams"][0]["codec_name"] == "h264"
    assert float(found["format"]["duration"]) > 5, "from before the arrival to after the passage"

    status, master, headers = site.api.raw("GET", f"/v1/camera/event/vod/{proof['id']}/master.m3u8")
    assert status == 200
    assert master.startswith(b"#EXTM3U")

    def central_has_it() -> bool:
        taken = site.central("/v1/camera/event/list", page_limit=500)["events"]
        return any(site_id_in(event.get("source_id") or 0) == proof["id"] for event in taken)

    wait_until(central_has_it, within=20, why="central has the camera event")


def test_unknown_card_is_refused_and_nothing_moves(site, wait_until):
    before = newest(site)
    site.present("exit", BAD_CARDS[2].sent)
    denied = wait_until(
        lambda: next((e for e in site.api.events(types=[EventKind.ACCESS_DENIED]) if e["id"] > before), None),
        within=15,
        why="the denial is recorded",
    )
    assert "no card has this number or plate" in denied["description"]
    assert json.loads(denied["data"])["reason"] == "unknown_credential"
    wait_until(
        lambda: EventKind.VEHICLE_BACKED_OUT in kinds_since(site, before, "exit"), within=20, why="the vehicle leaves"
    )
    assert EventKind.GATE_OPENED not in kinds_since(site, before, "exit")


def test_operator_opens_and_closes_over_the_interface(site, wait_until):
    before = newest(site)
    assert site.api.call("/v1/device/open", id=103)["success"] is True
    wait_until(lambda: EventKind.GATE_OPENED in kinds_since(site, before, "exit"), within=10, why="it opens")
    steps = [EventKind.COMMAND_RECORDED, EventKind.COMMAND_SENT, EventKind.COMMAND_ACKNOWLEDGED, EventKind.COMMAND_DONE]
    assert [kind for kind in kinds_since(site, before, "exit") if kind in steps] == steps

    def close_is_taken() -> bool:
        """Not at once: the way under the gate must have been known to be clear for some seconds."""
        return site.api.raw("POST", "/v1/device/close", {"id": 103})[0] == 200

    wait_until(close_is_taken, within=15, why="the way is known to be clear")
    wait_until(lambda: EventKind.GATE_CLOSED in kinds_since(site, before, "exit"), within=10, why="it closes")
