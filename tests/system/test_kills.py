"""Power cuts and crashes, during traffic."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from stopwatch import Stopwatch

from gateway.domain.events import EventKind
from gateway.recording.worker_client import HUNG_SECONDS

pytestmark = pytest.mark.long("a running gateway whose processes are killed, at its own pace")


@pytest.fixture(scope="module")
def site(make_lasting_site, wait_until):
    site = make_lasting_site(traffic=True)
    wait_until(lambda: site.api.events(types=[EventKind.VEHICLE_PASSED]), within=60, why="traffic flows")
    wait_until(lambda: _recording(site), within=30, why="cameras record")
    return site


def _recording(site) -> bool:
    """Return whether every camera has fresh footage."""
    return all(site.api.raw("GET", f"/v1/camera/thumbnail/{camera}")[0] == 200 for camera in (201, 202))


def openings(site, *, after: int) -> list[float]:
    """Seconds from each grant to the gate being seen open, of passages recorded after event `after`."""
    events = [e for e in reversed(site.api.events()) if e["id"] > after]
    granted: dict[str, float] = {}
    taken = []
    for event in events:
        at = _seconds(event["date_at"])
        if event["type"] == EventKind.ACCESS_GRANTED:
            granted[event["lane_id"]] = at
        elif event["type"] == EventKind.GATE_OPENED and event["lane_id"] in granted:
            taken.append(at - granted.pop(event["lane_id"]))
    return taken


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()


def test_a_killed_camera_worker_disturbs_no_lane_and_video_resumes(site, wait_until):
    usual = wait_until(lambda: openings(site, after=0), within=60, why="openings to compare with")
    mark = site.api.events()[0]["id"]
    workers = wait_until(site.workers, within=10, why="a worker runs")
    killed_at, watch = time.time(), Stopwatch(children=True)
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    gap = wait_until(
        lambda: next((e for e in site.api.events(types=[EventKind.FOOTAGE_GAP]) if e["id"] > mark), None),
        within=15,
        why="the gap is recorded",
    )
    resumed = wait_until(
        lambda: [e for e in site.api.events(types=[EventKind.CAMERA_RECORDING]) if e["id"] > mark],
        within=15,
        why="cameras record again",
    )
    assert min(_seconds(e["date_at"]) for e in resumed) - killed_at < 5 + watch.held_up()
    assert json.loads(gap["data"])["reason"] == "worker"
    after = wait_until(lambda: openings(site, after=mark), within=60, why="the next passage")
    assert after[0] <= max(usual) + 0.5 + watch.held_up(), (usual, after)
    assert not set(workers) & set(site.workers())


def test_a_gateway_that_was_stopped_for_a_while_keeps_its_healthy_workers(site, wait_until):
    workers = wait_until(site.workers, within=10, why="a worker runs")
    mark = site.api.events()[0]["id"]
    site.gateway.send_signal(signal.SIGSTOP)
    time.sleep(HUNG_SECONDS + 1.5)  # for so long it is stopped
    site.gateway.send_signal(signal.SIGCONT)
    wait_until(
        lambda: any(e["id"] > mark for e in site.api.events(types=[EventKind.VEHICLE_PASSED])),
        within=60,
        why="traffic goes on",
    )
    assert site.workers() == workers
    assert not [e for e in site.api.events(types=[EventKind.WORKER_LOST]) if e["id"] > mark]


def test_a_killed_gateway_keeps_every_event_that_was_shown_and_moves_no_gate(site, wait_until):
    shown = {event["id"]: event for event in site.api.events()}
    deadline = time.monotonic() + 6
    while time.monotonic() < deadline:
        shown |= {event["id"]: event for event in site.api.events()}
    site.kill_gateway()
    time_of_death = time.time()
    site.start_gateway()
    kept = {}
    cursor = 0
    while True:
        page = site.api.call("/v1/event/list", page_limit=200, cursor_id=cursor)
        kept |= {event["id"]: event for event in page["events"]}
        cursor = page.get("next_cursor") or 0
        if not cursor:
            break
    assert {i: kept.get(i) for i in shown} == shown
    started = next(e for e in kept.values() if e["type"] == EventKind.GATEWAY_STARTED and e["id"] > max(shown))
    lost = [e for e in kept.values() if e["type"] == EventKind.POWER_LOST]
    assert lost, "the sudden end is told"
    early = [
        e
        for e in kept.values()
        if e["id"] > started["id"] and e["type"] == EventKind.COMMAND_SENT and _seconds(e["date_at"]) > time_of_death
    ]
    assert early == [], "nothing that a person asked for before is sent again"
    wait_until(
        lambda: any(e["id"] > started["id"] for e in site.api.events(types=[EventKind.VEHICLE_PASSED])),
        within=60,
        why="traffic goes on",
    )


def test_the_gateway_stops_when_asked_and_says_so(site):
    before = site.newest()
    begun = time.monotonic()
    assert site.stop_gateway() == 0
    assert time.monotonic() - begun < 10
    assert "Traceback" not in site.tail()
    site.start_gateway()
    assert EventKind.POWER_LOST not in site.types_since(before)
    assert EventKind.GATEWAY_STOPPED in {event["type"] for event in site.api.events()}
