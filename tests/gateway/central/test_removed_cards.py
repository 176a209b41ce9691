"""Time until a right that central takes away is gone at the site, with a central that answers after 150 ms."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from fresh_ids import fresh_ids
from stopwatch import Stopwatch
from waiting import until
from wired import down_sync, outbox_sender, sync_loop

from gateway.domain.credentials import CardStatus
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from simulation.far_ends.central import Faults

pytestmark = pytest.mark.long("a central that answers after 150 ms, at its own pace")

CARDS = 1_000
PAGE = 100
PULL_SECONDS = 1.0
ANSWER_SECONDS = 0.15
SLACK_SECONDS = 1.0  # a busy machine
SOON = Backoff(first=0.02, longest=0.1)
LIST = "/v1/access/list"
LAST_PAGE = CARDS // PAGE + 1  # an empty one
RIGHT_AFTER = (1, LAST_PAGE)


def make_sync(client, store, **changed):
    clock = SystemClock()
    wanted = {
        "client": client,
        "down": down_sync(client=client, store=store, clock=clock),
        "sender": outbox_sender(
            client=client, newest=fresh_ids(client), store=store, clock=clock, row_backoff=SOON, away_backoff=SOON
        ),
        "store": store,
        "clock": clock,
        "pull_seconds": PULL_SECONDS,
        "away_backoff": SOON,
    }
    return sync_loop(**(wanted | changed))


@pytest.fixture
async def slow_central(central):
    """1,000 cards in pages of a hundred, each after 150 ms."""
    central.tables.page_cap = PAGE
    for number in range(CARDS - len(central.cards)):
        central.tables.cards.put({"id": 10_000 + number, "number": f"{number:08d}", "status": "active"})
    central.faults = Faults(latency_seconds=ANSWER_SECONDS)
    return central


class Watch:
    """Sees which pages central gave, and when."""

    def __init__(self, central):
        self.given = []
        self._real = central.tables.cards.page
        central.tables.cards.page = self._page

    def _page(self, matches, *, page, limit, **more):
        batch = self._real(matches, page=page, limit=limit, **more)
        self.given.append((page, time.monotonic()))
        return batch

    def longest_between_pulls(self):
        starts = [at for page, at in self.given if page == 1]
        return max(late - early for early, late in pairwise(starts))

    def longest_pull(self):
        starts = [at for page, at in self.given if page == 1]
        last = [at for page, at in self.given if page == LAST_PAGE]
        return max(end - start for start, end in zip(starts, last, strict=False)) + 4 * ANSWER_SECONDS


async def seconds_until(condition, most=60.0):
    watch = Stopwatch()
    await until(condition, within=most)
    return watch.seconds()


def at_lane(store, number):
    """Return what a lane decides by: the cards with this number."""
    return store.cards.at_once((f"text:{number:08d}",))


async def begin(store, down_report, watch):
    await seconds_until(lambda: store.cards.is_indexed and down_report() is not None)
    await seconds_until(lambda: [page for page, _ in watch.given].count(1) >= 2)


@pytest.mark.parametrize("page", RIGHT_AFTER)
@pytest.mark.parametrize("way", ["suspended", "deleted"])
async def test_a_right_taken_away_is_gone_within_pull_seconds_and_one_pull(
    slow_central, client, store, running, page, way
):
    """Right after a page was given, at any place of the list."""
    watch = Watch(slow_central)
    down = down_sync(client=client, store=store, clock=SystemClock())
    async with running(make_sync(client, store, down=down).run()):
        await begin(store, lambda: down.report, watch)
        for number in (959, 450, 0):
            assert at_lane(store, number)[0].status is CardStatus.ACTIVE
            given = len(watch.given)
            await seconds_until(lambda given=given: page in [seen for seen, _ in watch.given[given:]])
            if way == "deleted":
                slow_central.tables.cards.remove(10_000 + number)
            else:
                slow_central.tables.cards.change(10_000 + number, {"status": "suspended"})

            def refused(number=number):
                found = at_lane(store, number)
                return found is not None and all(card.status is not CardStatus.ACTIVE for card in found)

            took = await seconds_until(refused)
            given = len(watch.given)  # the pull that took the right away counts, too
            await seconds_until(lambda given=given: LAST_PAGE in [seen for seen, _ in watch.given[given - 1 :]])
            print(f"{way} after page {page}, card {number}: {took:.2f} s; a pull takes {watch.longest_pull():.2f} s")
            assert took < PULL_SECONDS + watch.longest_pull() + SLACK_SECONDS


async def test_pulls_follow_each_other_in_pull_seconds(slow_central, client, store, running):
    watch, load = Watch(slow_central), Stopwatch()
    async with running(make_sync(client, store).run()):
        await seconds_until(lambda: [page for page, _ in watch.given].count(1) >= 4)
    most = PULL_SECONDS + watch.longest_pull() + SLACK_SECONDS
    assert watch.longest_between_pulls() < most + load.held_up()


async def test_a_list_costs_no_more_than_the_bandwidth_that_is_allowed(central, client, store, running):
    for number in range(CARDS):
        central.tables.cards.put({"id": 10_000 + number, "number": f"{number:08d}", "note": "x" * 200})
    watch = Watch(central)
    weight = sum(len(json.dumps(card)) for card in central.cards.values())
    sync = make_sync(client, store, pull_seconds=0.1, bytes_per_second=weight / 2)
    async with running(sync.run()):
        await seconds_until(lambda: [page for page, _ in watch.given].count(1) >= 4)
    starts = [at for page, at in watch.given if page == 1]
    assert starts[3] - starts[0] > 3 * 1.7


def test_the_site_file_says_the_default_bound():
    example = Path(__file__).parents[3] / "config" / "site.example.toml"
    assert "pull_bytes_per_second = 1_000_000" in example.read_text()
