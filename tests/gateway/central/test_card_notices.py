"""Cards that central says were changed are fetched at once, and whole pulls rest while it says so."""

from __future__ import annotations

import asyncio

import pytest
from waiting import until
from wired import down_sync

from gateway.central.pull.card_notices import SILENT_SECONDS, SWEEP_SECONDS, CardNotices
from gateway.domain.credentials import CardStatus
from gateway.domain.errors import StoreError
from gateway.domain.events import EventKind
from gateway.runtime.clock import Stamp, SystemClock
from gateway.store import EventFilter


class Hand:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def wall(self) -> Stamp:
        return SystemClock().wall()


class Noticed:
    """The notices of one site, and how often a pull was asked for."""

    def __init__(self, down, *, pull_seconds: float = 0.0) -> None:
        self.clock, self.pulls = Hand(), 0
        self.notices = CardNotices(down=down, clock=self.clock, pull_soon=self._pull, pull_seconds=pull_seconds)

    def _pull(self) -> None:
        self.pulls += 1


@pytest.fixture
def down(client, store):
    return down_sync(client=client, store=store, clock=SystemClock())


@pytest.fixture
async def noticed(down):
    await down.pull()
    noticed = Noticed(down)
    task = asyncio.get_running_loop().create_task(noticed.notices.run())
    yield noticed
    task.cancel()
    await asyncio.wait([task])


async def status_is(store, card_id: int, status: CardStatus) -> bool:
    known = await store.cards.get(card_id)
    return known is not None and known.card.status is status


async def test_a_revoked_card_is_refused_and_a_deleted_and_a_new_one_follow(central, store, noticed):
    central.tables.cards.change(4002, {"status": "suspended"})
    central.tables.cards.remove(4003)
    central.tables.cards.put({"id": 10_000, "number": "77"})
    noticed.notices.take([4002, 4003, 10_000], number=None)
    await until(lambda: status_is(store, 4002, CardStatus.SUSPENDED))
    await until(lambda: status_is(store, 10_000, CardStatus.ACTIVE))

    async def gone() -> bool:
        return await store.cards.get(4003) is None

    await until(gone)
    assert await store.cards.count() == 40

    async def told() -> bool:
        page = await store.events.page(EventFilter(types=(EventKind.CARDS_CHANGED,)))
        return any("1 access cards added, 1 changed, 1 removed" in event.description for event in page.events)

    await until(told)
    assert noticed.pulls == 0


async def test_a_pull_under_way_does_not_bring_back_what_was_fetched_meanwhile(central, store, down):
    await down.pull()
    written = store.pending_writes.pull_begins("access_card")
    central.tables.cards.change(4002, {"status": "lost"})
    assert await down.fetch_cards(frozenset({4002}))
    assert await status_is(store, 4002, CardStatus.LOST)
    assert 4002 in written  # the pull passes over these


async def test_a_card_is_fetched_at_once_though_a_notice_before_it_was_missed(central, store, noticed):
    central.tables.cards.change(4002, {"status": "suspended"})
    noticed.notices.take([], number=1)
    noticed.notices.take([4002], number=3)
    assert noticed.pulls == 1
    await until(lambda: status_is(store, 4002, CardStatus.SUSPENDED))


async def test_a_card_is_fetched_at_once_while_a_pull_waits_that_follows_a_lost_line(central, store, down, running):
    await down.pull()
    noticed = Noticed(down, pull_seconds=100_000)
    notices = noticed.notices
    async with running(notices.run()):
        notices.take([], number=1)
        assert notices.apart(60, began=noticed.clock.now) == SWEEP_SECONDS
        notices.lost()
        for _ in range(5):
            await asyncio.sleep(0)
        central.tables.cards.change(4002, {"status": "suspended"})
        notices.take([4002], number=2)
        await until(lambda: status_is(store, 4002, CardStatus.SUSPENDED))
        assert noticed.pulls == 0
        noticed.clock.now += 100_000
        notices.take([], number=3)
        await until(lambda: noticed.pulls == 1)


async def test_the_first_cards_of_a_long_notice_do_not_wait_for_the_last(down):
    class Watched:
        """A pull that tells which cards were asked for together."""

        together: tuple[frozenset[int], ...] = ()

        async def fetch_cards(self, card_ids) -> bool:
            self.together += (card_ids,)
            return await down.fetch_cards(card_ids)

    await down.pull()
    watched = Watched()
    noticed = Noticed(watched)
    noticed.notices.take([4039], number=None)
    noticed.notices.take(range(4001, 4039), number=None)
    task = asyncio.get_running_loop().create_task(noticed.notices.run())
    await until(lambda: sum(map(len, watched.together)) == 39)
    task.cancel()
    await asyncio.wait([task])
    assert watched.together[0] == {4039, 4001, 4002, 4003, 4004}
    assert max(map(len, watched.together)) == 5


async def test_a_disk_that_refuses_forgets_no_noticed_card(central, store, down):
    await down.pull()

    class Refuses:
        """A disk that takes nothing the first time."""

        full = True

        async def fetch_cards(self, card_ids) -> bool:
            if self.full:
                self.full = False
                raise StoreError("the disk is full")
            return await down.fetch_cards(card_ids)

    noticed = Noticed(Refuses())
    central.tables.cards.change(4002, {"status": "suspended"})
    noticed.notices.take([4002], number=None)
    with pytest.raises(StoreError):
        await noticed.notices.run()
    task = asyncio.get_running_loop().create_task(noticed.notices.run())
    await until(lambda: status_is(store, 4002, CardStatus.SUSPENDED))
    task.cancel()
    await asyncio.wait([task])


async def test_noticed_cards_wait_for_no_pace_of_requests(central, store, connect):
    client = connect(requests_per_second=0.001)
    down = down_sync(client=client, store=store, clock=SystemClock())
    await down.card_pull.pull()
    central.tables.cards.change(4002, {"status": "suspended"})
    async with asyncio.timeout(30):
        assert await down.fetch_cards(frozenset({4002}))
    assert await status_is(store, 4002, CardStatus.SUSPENDED)


async def test_pulls_do_not_rest_after_one_that_began_before_notices_came(noticed):
    notices, clock = noticed.notices, noticed.clock
    began = clock.now
    clock.now += 2
    notices.take([], number=1)
    assert notices.apart(60, began=began) == 60
    clock.now += 60
    assert notices.apart(60, began=clock.now) == SWEEP_SECONDS
    began = clock.now
    notices.lost()
    clock.now += 2
    notices.take([], number=2)
    assert notices.apart(60, began=began) == 60


async def test_pulls_rest_to_a_sweep_while_notices_come_and_go_on_when_they_end(noticed):
    notices, clock = noticed.notices, noticed.clock
    assert notices.apart(60, began=clock.now) == 60
    notices.take([], number=None)
    assert notices.apart(60, began=clock.now) == SWEEP_SECONDS
    clock.now += SILENT_SECONDS - 1
    assert notices.apart(60, began=clock.now) == SWEEP_SECONDS
    notices.lost()
    assert notices.apart(60, began=clock.now) == 60


async def test_a_pull_follows_when_notices_end_and_when_one_is_missing(noticed):
    notices = noticed.notices
    notices.take([], number=1)
    notices.apart(60, began=noticed.clock.now)
    notices.lost()
    await until(lambda: noticed.pulls == 1)
    notices.take([], number=4)  # after a loss nobody knows which number follows
    notices.take([], number=5)
    assert noticed.pulls == 1
    notices.take([], number=7)
    assert noticed.pulls == 2
    notices.take([], number=6)
    notices.take([], number=6)
    assert noticed.pulls == 3  # two that cross: nobody knows what came between
    notices.take(range(1, 1000), number=7)
    assert noticed.pulls == 4
