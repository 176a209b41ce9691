"""A disk that takes nothing: gates open, people sign in, and what happened is recorded when there is room."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.domain.events import EventKind
from simulation.demo.scene import GOOD_CARDS

pytestmark = pytest.mark.long("a running gateway with real far ends")


def device(site, device_id: int) -> dict:
    return site.api.call("/v1/device", id=device_id)["device"]


def cameras(site) -> list[int]:
    return [camera["id"] for camera in site.api.call("/v1/camera/list")["cameras"]]


def condition(site, camera_id: int) -> str:
    return json.loads(site.api.raw("GET", f"/v1/camera/status/{camera_id}")[1])["status"]["condition"]


@contextlib.contextmanager
def kept_full(disk: Path) -> Iterator[list[int]]:
    """Keep the disk full: take each freed room at once, and yield the bytes taken so far."""
    filler = fill(disk)
    emptied = threading.Event()
    rooms: list[int] = []

    def fill_again() -> None:
        with filler.open("ab", buffering=0) as file:
            while not emptied.wait(0.005):
                taken = 0
                with contextlib.suppress(OSError):
                    while not emptied.is_set():
                        taken += file.write(b"\0" * 4096)
                if taken:
                    rooms.append(taken)

    filling = threading.Thread(target=fill_again)
    filling.start()
    try:
        yield rooms
    finally:
        emptied.set()
        filling.join()
        filler.unlink()


def fill(disk: Path) -> Path:
    """Fill a disk to its last byte; returns the file to remove."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    file.write(b"\0" * size)
    return filler


@pytest.fixture(scope="module")
def lasting_site(lasting_small_disk, make_lasting_site):
    site = make_lasting_site(start=False)
    site.data = lasting_small_disk / "data"
    text = site.site.read_text().replace("free_floor_gigabytes = 0.2", "free_floor_gigabytes = 0.004")
    site.site.write_text(text)
    return site


@pytest.fixture
def site_on_small_disk(lasting_site, wait_until):
    """A gateway that was just started; its log tells of this test alone."""
    site = lasting_site
    site.log.unlink(missing_ok=True)
    site.start_gateway()
    site.api.sign_in()  # a session from while the disk took nothing ended with its gateway
    wait_until(lambda: site.api.events(types=[EventKind.CARDS_CHANGED]), within=20, why="cards come from central")
    yield site
    if site.gateway.poll() is None:
        site.stop_gateway()


@pytest.fixture
def small_disk(lasting_small_disk):
    return lasting_small_disk


def test_a_full_disk_stops_no_gate_and_loses_nothing_that_was_told(site_on_small_disk, wait_until, small_disk):
    site = site_on_small_disk
    recording = lambda: [condition(site, camera) == "recording" for camera in cameras(site)]  # noqa: E731
    wait_until(lambda: all(recording()), within=30, why="cameras record")
    before = site.newest()
    with kept_full(small_disk) as rooms:
        wait_until(lambda: not any(recording()), within=30, why="video stops")
        site.present("entry", GOOD_CARDS[0].sent)
        opened = lambda: device(site, 101)["position"] in {"opening", "open"}  # noqa: E731
        try:
            wait_until(opened, within=10, why="the gate opens though nothing can be recorded")
        except AssertionError as error:
            error.add_note(f"{site.lane('entry')}\n{site.tail()}")
            raise
        wait_until(lambda: device(site, 101)["position"] == "closed", within=20, why="and closes behind the vehicle")
        site.api.sign_in()
        assert device(site, 101)["position"], "a technician can sign in just now, to see why"
    wait_until(
        lambda: {EventKind.ACCESS_GRANTED, EventKind.VEHICLE_PASSED, EventKind.GATE_CLOSED} <= site.types_since(before),
        within=20,
        why="what happened meanwhile is recorded when there is room",
    )
    told = [e for e in site.api.events(types=[EventKind.RECORDS_WAITED]) if e["id"] > before]
    assert 1 <= len(told) <= 1 + len(rooms), "told once, and once more where the disk had room for a moment"
    assert all("0 were lost" in event["description"] for event in told)
    told_lost = lambda: [e for e in site.api.events(types=[EventKind.CAMERA_LOST]) if e["id"] > before]  # noqa: E731
    lost = wait_until(told_lost, within=20, why="video says why it stopped")
    assert all("takes no data" in e["description"] or "free space" in e["description"] for e in lost)
    again = lambda: len([e for e in site.api.events(types=[EventKind.CAMERA_RECORDING]) if e["id"] > before])  # noqa: E731
    wait_until(lambda: again() >= len({e["device_id"] for e in told_lost()}), within=45, why="and resumes by itself")


def not_ready(site) -> list[str]:
    with contextlib.suppress(OSError, ValueError):
        return json.loads(site.api.raw("GET", "/health/ready")[1]).get("not_ready", [])
    return []


def unrecorded(site) -> bool:
    reasons = not_ready(site)
    return len(reasons) == 1 and "nothing can be recorded" in reasons[0]


def lane_position(site) -> str:
    return site.lane("entry")["position"]


def test_a_person_opens_a_gate_though_the_disk_is_full(site_on_small_disk, wait_until, small_disk):
    site = site_on_small_disk
    before = site.newest()
    filler = fill(small_disk)
    asked = []

    def is_recorded():
        answer = site.api.call("/v1/device/open", id=101)
        asked.append(answer["command"]["id"])
        return answer["command"]["recorded"]

    def told():
        events = site.api.events(types=[EventKind.COMMAND_RECORDED])
        return [json.loads(event["data"])["command_id"] for event in events if event["id"] > before]

    wait_until(lambda: not is_recorded(), within=20, why="the disk takes nothing, and the person is told so")
    wait_until(lambda: lane_position(site) in {"opening", "open"}, within=5, why="the gate opens all the same")
    filler.unlink()
    wait_until(lambda: asked[-1] in told(), within=20, why="the command is recorded when there is room")
    wait_until(is_recorded, within=10, why="as usual")
    wait_until(lambda: set(asked) <= set(told()), within=10, why="and so is each of those meanwhile")
    assert sorted(told()) == sorted(asked), "each of them once"


@pytest.mark.parametrize("fault", ["full", "read-only"])
def test_a_gateway_starts_and_lets_cards_pass_on_a_disk_that_takes_nothing(
    site_on_small_disk, wait_until, small_disk, fault
):
    site = site_on_small_disk
    site.api.call("/status/lane/order", lane_id="exit", order="lock_down", reason="works")
    before = site.newest()
    site.kill_gateway()
    (site.data / "cards.db-shm").unlink()  # of the databases one finds its index still there, the other no room for it
    filler = fill(small_disk)
    if fault == "read-only":
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    site.spawn_gateway()
    wait_until(lambda: unrecorded(site), within=30, why="it runs and says that nothing is recorded")
    site.api.sign_in()
    assert "gateway_starts_without_recording" in site.log.read_text()
    assert site.lane("exit")["order"] == "lock_down", "what a person ordered holds"
    site.present("entry", GOOD_CARDS[0].sent)
    wait_until(lambda: lane_position(site) in {"opening", "open"}, within=15, why="a card opens")
    wait_until(lambda: lane_position(site) == "closed", within=20, why="and the gate closes behind the vehicle")
    assert not site.api.call("/v1/device/open", id=101)["command"]["recorded"]
    wait_until(lambda: lane_position(site) in {"opening", "open"}, within=5, why="a person opens")
    if fault == "read-only":
        subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    filler.unlink()
    wait_until(site.api.is_ready, within=30, why="it records again by itself")
    wanted = {EventKind.GATEWAY_STARTED, EventKind.ACCESS_GRANTED, EventKind.VEHICLE_PASSED, EventKind.RECORDS_WAITED}
    wait_until(lambda: wanted <= site.types_since(before), within=20, why="all that happened meanwhile is recorded")
    assert "Traceback" not in site.log.read_text(), site.log.read_text()
    assert site.stop_gateway() == 0
