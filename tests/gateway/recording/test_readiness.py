"""Readiness of an event's footage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.passages import CameraEvent
from gateway.recording.readiness import Coverage, PresentTime, is_complete, not_yet

EVENT = CameraEvent(
    id=2_000_000_000, central_id=None, camera_id=7, event_id=1, lane_id="", name="", description="",
    date_at=100_000_000, pinned_from=95_000_000, pinned_until=105_000_000, clock_trusted=True, ready=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("until", "recording", "now", "complete"),
    [
        (105.0, True, 105, True),
        (104.9, True, 105, False),
        (104.9, True, 160, False),  # a long segment is still open
        (104.9, True, 231, True),
        (105.0, True, 104.9, False),
        (104.9, False, 109, False),  # the last segment before the loss is on its way
        (104.9, False, 110, True),
        (None, False, 110, True),
    ],
)
def test_complete_when_covered_or_when_nothing_more_can_come(until, recording, now, complete):
    coverage = Coverage(until=None if until is None else int(until * 1e6), more_may_come=recording, since=0)
    assert is_complete(EVENT, coverage, now=int(now * 1e6)) is complete


def test_what_a_killed_worker_left_is_waited_for_after_a_start():
    starting = Coverage(until=None, more_may_come=True, since=1_000_000_000)
    assert not is_complete(EVENT, starting, now=1_010_000_000)
    assert is_complete(EVENT, starting, now=1_125_000_000)
    unreachable = Coverage(until=None, more_may_come=False, since=1_000_000_000)
    assert not is_complete(EVENT, unreachable, now=1_004_000_000)
    assert is_complete(EVENT, unreachable, now=1_005_000_000)


def test_what_waits_in_memory_for_the_disk_is_waited_for():
    in_memory = Coverage(until=None, more_may_come=False, since=0, in_memory=True)
    assert not is_complete(EVENT, in_memory, now=704_999_999)
    assert is_complete(EVENT, in_memory, now=705_000_000)


@pytest.mark.parametrize("step", [3600, -3600])
def test_whether_an_event_is_complete_does_not_depend_on_what_the_clock_was_set_to(step):
    event = replace(EVENT, boot_id="run", clock_offset=50_000_000)
    at = lambda uptime: PresentTime(wall=(uptime + 50 + step) * 1_000_000, uptime=uptime * 1_000_000, boot_id="run")  # noqa: E731
    covered = Coverage(until=(60 + step) * 1_000_000, more_may_come=True, since=0, uptime_until=55_000_000)

    def complete(uptime, coverage):
        mapped, now = at(uptime).of(event, coverage)
        return is_complete(event, mapped, now=now)

    assert not complete(54, covered)
    assert complete(55, covered)
    assert not complete(56, replace(covered, uptime_until=54_000_000))
    assert complete(180, replace(covered, uptime_until=54_000_000))
    mapped, now = PresentTime(wall=7, uptime=1, boot_id="another").of(event, covered)
    assert (mapped, now) == (covered, 7)


def test_why_footage_is_not_complete_yet_names_a_time_that_holds():
    told = [
        not_yet(EVENT, Coverage(until=None, more_may_come=more, since=0, in_memory=in_memory), now=now * 1_000_000)
        for more, in_memory, now in ((True, False, 101), (True, False, 111), (False, True, 111), (False, False, 109))
    ]
    assert [error.retry_after for error in told] == [9, 10, 10, 1]
    assert [str(error).partition("2000000000 ")[2] for error in told] == [
        "is still recording, ready in 9 s",
        "has not come yet; it is given up in 119 s",
        "waits in memory for the disk, at most 594 s more",
        "is still recording, ready in 1 s",
    ]
