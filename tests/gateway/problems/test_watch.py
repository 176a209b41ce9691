"""Since when each problem is there, and the events as one begins and as it ends."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from set_machine import NOON, SetClock
from waiting import until

from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.events import EventKind, RecordedEvent
from gateway.domain.server_lines import CentralStatus
from gateway.problems.found import SiteState
from gateway.problems.problem import Acknowledgement
from gateway.problems.watch import BeginsFile, ProblemWatch
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Supervisor
from gateway.store.engine.changes import Changes

WELL = SiteState(
    lanes=(),
    devices=(),
    cameras=(),
    storage=None,
    central=None,
    store_failing="",
    interface_fault="",
    site_notices=(),
    clock_trusted=True,
    now=0,
)
UNSET = replace(WELL, clock_trusted=False)


class WatchedSite:
    """A site whose state is set by hand, and what is told of it."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.state = WELL
        self.clock = SetClock()
        self.begins = BeginsFile(folder=folder, clock=self.clock)
        self.told = []
        self.watch = ProblemWatch(
            state=lambda: self.state,
            refresh=self.refresh,
            changes=Changes(),
            clock=self.clock,
            tell=self.told.append,
            begins=self.begins,
        )

    async def refresh(self):
        """Read what takes a query: nothing here."""

    def after(self, seconds):
        self.clock.seconds += seconds
        self.watch.look()

    def kinds(self):
        return [event.kind for event in self.told]


@pytest.fixture
def site(tmp_path):
    return WatchedSite(tmp_path)


def test_begin_and_end_are_told_once_each(site):
    site.state = UNSET
    for _ in range(4):
        site.after(1)
    assert site.kinds() == [EventKind.PROBLEM_BEGAN]
    assert site.told[0].data == {"problem": "clock_not_set", "subject": ""}
    site.state = WELL
    site.after(1)
    site.after(1)
    assert site.kinds() == [EventKind.PROBLEM_BEGAN, EventKind.PROBLEM_ENDED]
    assert site.told[1].description == f"over: {site.told[0].description}"


def test_problem_that_is_over_at_once_is_told_nowhere(site):
    site.state = UNSET
    site.after(1)
    site.state = WELL
    site.after(5)
    assert site.told == []


def test_problem_keeps_the_moment_that_it_was_first_seen(site):
    site.state = UNSET
    site.after(0)
    site.after(30)
    (problem,) = site.watch.now().problems
    assert problem.since == NOON + 100_000_000
    site.clock.stepped = 5000.0
    (problem,) = site.watch.now().problems
    assert problem.since == NOON + 5100_000_000


def test_problem_that_comes_again_counts_anew(site):
    site.state = UNSET
    site.after(0)
    site.state = WELL
    site.after(1)
    site.state = UNSET
    site.after(1)
    assert site.watch.now().problems[0].since == NOON + 102_000_000


def test_owner_that_records_its_own_events_is_not_repeated(site):
    site.state = replace(WELL, store_failing="full", central=CentralStatus(reachable=False, since=1))
    for _ in range(4):
        site.after(1)
    assert [problem.kind.value for problem in site.watch.now().problems] == ["store_failing", "central_offline"]
    assert site.told == []


CLOCK = ("clock_not_set", "gateway", "", "")


def acknowledged(site):
    return [problem.acknowledged for problem in site.watch.now().problems]


def test_who_knows_of_a_problem_is_kept_and_recorded_until_it_is_over(site):
    site.state = UNSET
    site.after(1)
    site.watch.acknowledge(CLOCK, by="user:ana", silent_seconds=3600)
    at = site.clock.wall().micros
    assert acknowledged(site) == [Acknowledgement("user:ana", at, at + 3_600_000_000)]
    assert site.told[-1].kind is EventKind.PROBLEM_ACKNOWLEDGED
    assert site.told[-1].data["by"] == "user:ana"
    site.state = WELL
    site.after(1)
    site.state = UNSET
    site.after(1)
    assert acknowledged(site) == [None], "it came anew"


def test_a_problem_that_is_over_cannot_be_acknowledged(site):
    with pytest.raises(NotFoundError, match="this problem is over"):
        site.watch.acknowledge(CLOCK, by="user:ana")


def test_two_who_acknowledge_at_once_take_nothing_from_each_other(site):
    site.state = UNSET
    site.after(1)
    site.watch.acknowledge(CLOCK, by="ana", silent_seconds=3600)
    at = site.clock.wall().micros
    with pytest.raises(CommandRefused, match="ana knows of it already"):
        site.watch.acknowledge(CLOCK, by="bo")
    site.watch.acknowledge(CLOCK, by="bo", silent_seconds=60)
    assert acknowledged(site) == [Acknowledgement("bo", at, at + 3_600_000_000)]


async def kept(site):
    """Let the watch look as it does by itself, until it has kept the beginnings."""
    async with Supervisor(clock=SystemClock()) as looking:
        looking.keep("problems", site.watch.run)
        await until((site.folder / "problems.json").exists)


@pytest.mark.parametrize(("back_after", "since"), [(30, 100_000_000), (90, 591_000_000)], ids=["soon", "too late"])
async def test_a_problem_that_outlasts_a_restart_keeps_its_beginning(site, tmp_path, back_after, since):
    site.state = UNSET
    await kept(site)
    again = WatchedSite(tmp_path)
    again.clock.seconds = 500
    await again.watch.recall(())
    again.after(back_after)
    again.state = UNSET
    again.after(1)
    assert [problem.since for problem in again.watch.now().problems] == [NOON + since]
    again.state = WELL
    again.after(1)
    again.state = UNSET
    again.after(1)
    assert again.watch.now().problems[0].since == again.clock.wall().micros, "it came anew"


async def test_a_file_of_beginnings_that_is_torn_is_passed_over(site, tmp_path):
    (tmp_path / "problems.json").write_text('[[["clock_not_set"')
    await site.watch.recall(())
    site.state = UNSET
    site.after(1)
    assert site.watch.now().problems[0].since == site.clock.wall().micros


def recorded(event, number):
    return RecordedEvent(
        id=number,
        device_id=event.device_id,
        type=event.kind,
        category=event.category,
        subcategory=event.severity,
        name=event.name,
        description=event.description,
        date_at=event.date_at,
        clock_trusted=True,
        lane_id=event.lane_id,
        data=json.dumps(event.data),
    )


@pytest.mark.parametrize(("back_after", "by"), [(30, "user:bo"), (90, None)], ids=["soon", "too late"])
async def test_what_was_acknowledged_before_a_restart_counts_for_what_is_still_there(site, tmp_path, back_after, by):
    site.state = UNSET
    site.after(1)
    for name in ("user:ana", "user:bo"):
        site.watch.acknowledge(CLOCK, by=name, silent_seconds=60)
    said = [recorded(event, number) for number, event in enumerate(site.told) if event.kind == 423]
    again = WatchedSite(tmp_path)
    await again.watch.recall(reversed(said))
    again.after(back_after)
    again.state = UNSET
    again.after(1)
    (found,) = acknowledged(again)
    assert (found and found.by) == by
