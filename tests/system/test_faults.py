"""Faults in the field: a controller that falls silent under a waiting vehicle, a media disk that goes away."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from forked import done

from gateway.domain.events import EventKind
from simulation.demo.scene import GOOD_CARDS

pytestmark = pytest.mark.long("a running gateway with real far ends")


def test_a_field_that_is_gone_is_told_once_and_commands_are_refused(make_site, wait_until):
    site = make_site()
    wait_until(lambda: site.api.events(types=[EventKind.CARDS_CHANGED]), within=20, why="cards come from central")
    before = site.newest()
    site.lose_field()
    wait_until(
        lambda: {EventKind.DEVICE_LOST, EventKind.CENTRAL_LOST, EventKind.CAMERA_LOST} <= site.types_since(before),
        within=40,
        why="every loss is told",
    )
    device_losses = lambda device: [  # noqa: E731
        e for e in site.api.events(types=[EventKind.DEVICE_LOST]) if e["device_id"] == device
    ]
    wait_until(lambda: all(map(device_losses, (101, 103))), within=20, why="and that of each gate")
    status, answer, _ = site.api.raw("POST", "/v1/device/open", {"id": 101})
    assert status == 409
    assert b"does not answer" in answer
    refused = wait_until(
        lambda: site.api.events(types=[EventKind.COMMAND_REFUSED]), within=10, why="the refusal is recorded"
    )
    assert refused[0]["id"] > before
    for device in (101, 103):
        assert len(device_losses(device)) == 1, "one loss, one event"
    status, answer, _ = site.api.raw("GET", "/health/ready")
    assert status == 503
    unable = json.loads(answer)["not_ready"]
    stopped = {name for why in unable for name in why.split(" cannot work: ")[0].split(", ")}
    assert len(stopped) == 3, "every lane of the demo"
    reasons = [why.partition(" cannot work: ")[2] for why in unable]
    assert all(" does not answer" in why or (why.startswith("line ") and " is down: " in why) for why in reasons), (
        unable
    )
    assert site.api.raw("GET", "/health/live")[0] == 200, "the gateway itself lives"


def test_a_media_disk_that_goes_away_stops_no_gate_and_recording_resumes_on_it(make_site, wait_until, small_disk):
    site = make_site(start=False)
    media = site.data / "media"
    media.mkdir(parents=True)
    subprocess.run(["mount", "--bind", str(small_disk), str(media)], check=True)
    site.site.write_text(site.site.read_text().replace("free_floor_gigabytes = 0.2", "free_floor_gigabytes = 0.002"))
    try:
        site.start_gateway()
        wait_until(lambda: site.api.events(types=[EventKind.CARDS_CHANGED]), within=20, why="cards come from central")
        wait_until(lambda: len(_footage(small_disk)) > 2, within=30, why="cameras record")
        before = site.newest()
        subprocess.run(["umount", "-l", str(media)], check=True)
        site.present("entry", GOOD_CARDS[0].sent)
        wait_until(
            lambda: (
                {EventKind.ACCESS_GRANTED, EventKind.VEHICLE_PASSED, EventKind.CAMERA_LOST} <= site.types_since(before)
            ),
            within=30,
            why="the vehicle passes and is recorded, and the loss of video is told",
        )
        lost = [e for e in site.api.events(types=[EventKind.CAMERA_LOST]) if e["id"] > before]
        assert all("marker" in e["description"] for e in lost), lost
        assert list(media.iterdir()) == [], "nothing is written where the disk is not"
        kept = _footage(small_disk)
        subprocess.run(["mount", "--bind", str(small_disk), str(media)], check=True)
        wait_until(lambda: len(_footage(small_disk) - kept) > 2, within=40, why="recording resumes by itself")
    finally:
        site.close()
        subprocess.run(["umount", "-l", str(media)], check=False, capture_output=True)


def _footage(disk: Path) -> set[str]:
    return {path.name for path in disk.glob("*/*/*.ts")}


def test_a_new_read_only_folder_is_refused_in_one_sentence(make_site, small_disk):
    site = make_site(start=False)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    answer = done("gateway", "run", site.site, "--data", small_disk / "data")
    assert answer.returncode in {1, 2}
    assert "read-only" in answer.stderr.lower()
    assert "Traceback" not in answer.stderr
    assert not Path(small_disk / "data").exists()
