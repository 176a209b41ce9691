"""Many clients ask for many clips at once; each gets its clip, or is told when to ask again."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

pytestmark = pytest.mark.long("a running gateway with many clients")

EVENTS = 200
CLIENTS = 50
CAMERAS = (201, 202)


@pytest.fixture(scope="module")
def marked(make_lasting_site, wait_until):
    """A site with so many camera events that are ready."""
    site = make_lasting_site()
    for camera in CAMERAS:
        playlist = f"/v1/camera/live/{camera}/index.m3u8"
        wait_until(lambda: site.api.raw("GET", playlist)[1].count(b"#EXTINF") >= 2, within=60, why="footage")  # noqa: B023 (called at once)
    now = datetime.now(UTC)
    for number in range(EVENTS):
        at = now - timedelta(milliseconds=5 * number)
        status, answer, _ = site.api.raw(
            "PUT",
            "/v1/camera/event",
            {
                "camera_id": CAMERAS[number % len(CAMERAS)],
                "name": f"Moment {number}",
                "date_at": at.isoformat(),
                "start_date": (at - timedelta(seconds=1)).isoformat(),
                "end_date": at.isoformat(),
            },
        )
        assert status == 200, answer
    found = wait_until(
        lambda: (
            [event["id"] for event in site.api.camera_events() if event["ready"]][EVENTS - 1 :]
            and [event["id"] for event in site.api.camera_events()]
        ),
        within=60,
        why="all are ready",
    )
    assert len(found) == EVENTS
    return site, found


def fetched(site, path: str, answers: Counter[int]) -> bytes:
    """Ask until the file comes, as often as the answers say."""
    end = time.monotonic() + 240
    while time.monotonic() < end:
        status, body, headers = site.api.raw("GET", path)
        answers[status] += 1
        if status == 200:
            return body
        assert status == 503, (status, body)
        assert b'"success":false' in body
        assert 1 <= int(headers["Retry-After"]) <= 60
        time.sleep(int(headers["Retry-After"]))  # as it was asked to
    raise AssertionError(f"{path} did not come in time: {answers}")


def test_fifty_clients_get_two_hundred_clips(marked):
    site, events = marked
    answers: Counter[int] = Counter()
    with ThreadPoolExecutor(CLIENTS) as clients:
        clips = list(clients.map(lambda event: fetched(site, f"/v1/camera/event/clip/{event}", answers), events))
    assert all(clip[4:8] == b"ftyp" for clip in clips)
    assert answers == {200: EVENTS}, "so many fit into the queue"


def test_over_capacity_callers_are_told_when_to_ask_again_and_all_get_their_pictures(marked):
    site, events = marked
    answers: Counter[int] = Counter()
    with ThreadPoolExecutor(2 * CLIENTS) as clients:
        paths = [f"/v1/camera/event/thumbnail/{event}" for event in events]
        pictures = list(clients.map(lambda path: fetched(site, path, answers), paths))
    assert all(picture[:2] == b"\xff\xd8" for picture in pictures)
    assert answers[200] == EVENTS
    assert answers[503]
