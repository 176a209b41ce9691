"""Since when each problem is there, and the events as one begins and as it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway.domain.central_status import CentralStatus
from gateway.domain.events import EventKind
from gateway.problems.found import SiteState
from gateway.problems.watch import ProblemWatch
from gateway.runtime.clock import Stamp
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


class HandClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at = 100.0

    def monotonic(self) -> float:
        return self.at

    def wall(self) -> Stamp:
        return Stamp(micros=int(self.at * 1_000_000), trusted=True)


class WatchedSite:
    """A site whose state is set by hand, and what is told of it."""

    def __init__(self) -> None:
        self.state = WELL
        self.clock = HandClock()
        self.told = []
        self.watch = ProblemWatch(
            state=lambda: self.state,
            refresh=self.refresh,
            changes=Changes(),
            clock=self.clock,
            tell=self.told.append,
        )

    async def refresh(self):
        """Read what takes a query: nothing here."""

    def after(self, seconds):
        self.clock.at += seconds
        self.watch.look()

    def kinds(self):
        return [event.kind for event in self.told]


@pytest.fixture
def site():
    return WatchedSite()


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
    assert problem.since == 100_000_000


def test_problem_that_comes_again_counts_anew(site):
    site.state = UNSET
    site.after(0)
    site.state = WELL
    site.after(1)
    site.state = UNSET
    site.after(1)
    assert site.watch.now().problems[0].since == 102_000_000


def test_owner_that_records_its_own_events_is_not_repeated(site):
    site.state = replace(WELL, store_failing="full", central=CentralStatus(reachable=False, since=1))
    for _ in range(4):
        site.after(1)
    assert [problem.kind.value for problem in site.watch.now().problems] == ["store_failing", "central_offline"]
    assert site.told == []
