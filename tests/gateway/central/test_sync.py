"""Sync as a whole: pulling and sending side by side, through central's absences and the gateway's own end."""

from __future__ import annotations

import pytest
from fresh_ids import fresh_ids
from set_machine import PushedClock
from waiting import until
from wired import down_sync, outbox_sender, sync_loop

from gateway.central.central_link import CentralLink
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Moment
from gateway.domain.writes import site_id_in
from gateway.runtime.clock import SystemClock, WallTimes
from gateway.runtime.supervision import Backoff
from gateway.store import Entry, EventFilter
from simulation.far_ends.central import ErrorKind, Faults

NOW = 1_769_860_800_000_000


@pytest.fixture
def down(client, store):
    return down_sync(client=client, store=store, clock=SystemClock())


@pytest.fixture
def sync(client, store, down):
    clock = SystemClock()
    soon = Backoff(first=0.02, longest=0.1)
    return sync_loop(
        client=client,
        down=down,
        sender=outbox_sender(
            client=client, newest=fresh_ids(client), store=store, clock=clock, row_backoff=soon, away_backoff=soon
        ),
        store=store,
        clock=clock,
        pull_seconds=0.5,
    )


@pytest.fixture
def see(store):
    async def record():
        moment = Moment(
            camera_id=201, name="Passed", description="", pinned_from=NOW, pinned_until=NOW + 1, clock_trusted=True
        )
        event = Event(kind=EventKind.VEHICLE_PASSED, date_at=NOW, clock_trusted=True, text="")
        return (await store.journal.record(Entry(events=(event,), moments=(moment,)))).camera_event_ids[0]

    return record


async def names(store, *kinds):
    page = await store.events.page(EventFilter(types=tuple(int(kind) for kind in kinds)))
    return [event.name for event in reversed(page.events)]


async def test_a_new_row_goes_out_at_once(central, sync, down, see, running):
    async with running(sync.run()):
        await until(lambda: down.report is not None)
        await see()
        await until(lambda: len(central.camera_events) == 1)


async def test_it_follows_central_away_and_back(central, client, store, sync, down, see, running):
    async with running(sync.run()):
        await until(lambda: down.report is not None)
        await central.stop()
        ids = [await see() for _ in range(5)]
        await until(lambda: client.state.reachable is False)
        central.tables.cards.change(4001, {"status": "lost"})
        await central.start()
        await until(lambda: len(central.camera_events) >= 5)
        assert {site_id_in(event["source_id"]) for event in central.camera_events} == set(ids)

        async def lost():
            return (await store.cards.get(4001)).card.status.value == "lost"

        await until(lost)
        snapshot = await sync.snapshot()
        assert snapshot.books.balance()
        assert snapshot.central.reachable is True
        assert snapshot.pull.cards.cards == 40
    kinds = (EventKind.CENTRAL_REACHED, EventKind.CENTRAL_LOST)
    assert await names(store, *kinds) == ["Central reached", "Central lost", "Central reached"]


async def test_a_pull_can_be_asked_for(central, client, store, running):
    clock = SystemClock()
    down = down_sync(client=client, store=store, clock=clock)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=clock)
    sync = sync_loop(client=client, down=down, sender=sender, store=store, clock=clock, pull_seconds=3600)
    async with running(sync.run()):
        await until(lambda: down.report is not None)
        first = down.report
        sync.pull_soon()
        await until(lambda: down.report is not first)


async def test_a_refresh_writes_everything_anew_and_tells_how_far_it_is(central, client, store, running):
    clock = SystemClock()
    down = down_sync(client=client, store=store, clock=clock)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=clock)
    sync = sync_loop(client=client, down=down, sender=sender, store=store, clock=clock, pull_seconds=3600)
    link = CentralLink(
        client=client, down=down, sync=sync, made_at=0.0, wall_times=WallTimes(SystemClock()), password_in=""
    )
    assert link.snapshot().pulled_at is None
    seen = set()
    real = store.changes.bump

    def bump():
        seen.add(link.snapshot().progress)
        real()

    store.changes.bump = bump
    async with running(sync.run()):
        await until(lambda: down.report is not None)
        await link.refresh(by="user:technician")
        assert link.snapshot().refreshing
        await until(lambda: not link.snapshot().refreshing)
    assert down.report.anew
    assert down.report.cards.changed == 40
    assert "access cards: 40 of 40" in seen
    assert link.snapshot().pulled == "40 access cards, 3 devices, 1 cameras"
    assert link.snapshot().progress == ""


async def test_a_refresh_that_central_breaks_off_goes_on_by_itself_until_all_was_looked_at(
    central, client, store, running
):
    clock = SystemClock()
    down = down_sync(client=client, store=store, clock=clock)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=clock)
    sync = sync_loop(
        client=client,
        down=down,
        sender=sender,
        store=store,
        clock=clock,
        pull_seconds=3600,
        away_backoff=Backoff(first=0.01, longest=0.05),
    )
    link = CentralLink(
        client=client, down=down, sync=sync, made_at=0.0, wall_times=WallTimes(SystemClock()), password_in=""
    )
    async with running(sync.run()):
        await until(lambda: down.report is not None)
        first = down.report
        central.faults = Faults(paths="/v1/access/list", error=ErrorKind.JSON)
        await link.refresh(by="user:technician")
        await until(lambda: down.report is not first and link.snapshot().progress.endswith("still to come"))
        shown = link.snapshot()
        assert (shown.refreshing, shown.progress) == (True, "access cards: still to come")
        assert any("database is unavailable" in str(notice.text) for notice in shown.notices)
        central.faults = Faults()
        await until(lambda: not link.snapshot().refreshing)
    assert (down.report.anew, down.report.cards.changed) == (True, 40)


async def test_what_is_still_to_be_fetched_anew_is_known_after_a_restart(central, client, store, running):
    clock = SystemClock()
    before = down_sync(client=client, store=store, clock=clock)
    await before.pull()
    await before.anew.ask()
    central.faults = Faults(paths="/v1/camera/list", error=ErrorKind.JSON)
    await before.pull()
    assert before.anew.left == ("cameras",)
    central.faults = Faults(deny="can_view_cameras")
    down = down_sync(client=client, store=store, clock=clock)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=clock)
    sync = sync_loop(client=client, down=down, sender=sender, store=store, clock=clock, pull_seconds=3600)
    async with running(sync.run()):
        await until(lambda: down.report is not None)
        assert down.report.anew
        assert not sync.refreshing, "what central does not permit will not come by asking again"
        assert any("can_view_cameras" in problem.text for problem in down.report.problems)


async def test_a_list_that_is_never_right_does_not_keep_a_refresh_for_ever(central, client, store):
    down = down_sync(client=client, store=store, clock=SystemClock())
    await down.anew.ask()
    central.faults = Faults(paths="/v1/access/list", count_off_by=3)
    await down.pull()
    assert down.anew.left == ("access cards",)
    for _ in range(4):
        await down.pull()
    assert down.anew.left == ()


async def test_a_technician_is_told_what_is_wrong_once(central, connect, store, running):
    clock = PushedClock(stepped=330)
    client = connect(clock=clock)
    central.faults = Faults(deny="can_view_cameras")
    central.tables.cards.put({"id": 9000, "holder_name": "No card yet"})
    down = down_sync(client=client, store=store, clock=clock)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=clock)
    sync = sync_loop(client=client, down=down, sender=sender, store=store, clock=clock, pull_seconds=0.5)
    link = CentralLink(
        client=client, down=down, sync=sync, made_at=0.0, wall_times=WallTimes(SystemClock()), password_in=""
    )
    async with running(sync.run()):
        await until(lambda: sum(request.path == "/v1/camera/list" for request in central.requests) >= 4)
        notices = [str(notice.text) for notice in link.snapshot().notices]
    assert any("does not permit POST /v1/camera/list" in text and "can_view_cameras" in text for text in notices)
    assert sum("can_view_cameras" in text for text in notices) == 1
    assert any("5 min" in text and "s behind this machine's" in text for text in notices)
    assert any(text.startswith("1 access cards have no number") for text in notices)
    assert await names(store, EventKind.CLOCKS_DIFFER, EventKind.CLOCKS_AGREE) == ["Central's clock differs"]
    assert await names(store, EventKind.NOT_PERMITTED) == ["Not permitted at central"]


async def test_away_from_central_it_does_not_wait_for_the_next_pull(central, client, store, running):
    clock = SystemClock()
    down = down_sync(client=client, store=store, clock=clock)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=clock)
    soon = Backoff(first=0.02, longest=0.1)
    sync = sync_loop(
        client=client, down=down, sender=sender, store=store, clock=clock, pull_seconds=3600, away_backoff=soon
    )
    await central.stop()
    async with running(sync.run()):
        await until(lambda: client.state.reachable is False)
        await central.start()
        await until(lambda: down.report is not None)


async def test_its_end_signs_out(central, sync, down, running):
    async with running(sync.run()):
        await until(lambda: down.report is not None)
        assert central.open_sessions == 1
    assert central.open_sessions == 0


async def test_a_list_of_cards_that_was_lost_is_fetched_anew_until_it_is_whole(central, client, store, running):
    clock = SystemClock()
    store.cards.lost = "cards.db was missing or empty"
    central.faults = Faults(paths="/v1/access/list", error=ErrorKind.JSON)
    down = down_sync(client=client, store=store, clock=clock)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=clock)
    sync = sync_loop(client=client, down=down, sender=sender, store=store, clock=clock, pull_seconds=3600)
    async with running(sync.run()):
        await until(lambda: down.report is not None)
        assert sync.refreshing
        assert store.cards.lost
        central.faults = Faults()
        await until(lambda: not sync.refreshing)
        assert await store.cards.count() == 40
        assert store.cards.lost == ""
