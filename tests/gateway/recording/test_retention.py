"""Footage is kept within its limits, the footage of events last of all."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.events import EventKind
from gateway.domain.footage import SegmentFinished, segment_path
from gateway.recording.forecast import StorageLimits, StorageUse, Strain, forecast, lasting
from gateway.recording.index import FootageIndex, utc_hour
from gateway.recording.retention import ClockCorrection, Retention, bytes_to_free, must_pause
from gateway.runtime.clock import Stamp
from gateway.store import Choice

SIZE = 1000


@given(*(st.integers(0, 10**13) for _ in range(4)))
def test_freeing_that_much_satisfies_both_limits(footage, free, cap, floor):
    limits = StorageLimits(cap=cap, floor=floor)
    wanted = bytes_to_free(StorageUse(footage=footage, free=free), limits)
    assert bytes_to_free(StorageUse(footage=footage - wanted, free=free + wanted), limits) == 0
    assert wanted >= 0


def test_cameras_pause_before_the_disk_is_full_and_only_then():
    limits = StorageLimits(cap=10, floor=100)
    assert not must_pause(StorageUse(footage=1000, free=50), limits, paused=False)
    assert must_pause(StorageUse(footage=0, free=49), limits, paused=False)
    assert must_pause(StorageUse(footage=0, free=99), limits, paused=True)
    assert not must_pause(StorageUse(footage=0, free=100), limits, paused=True)


@pytest.fixture
def media(tmp_path):
    (tmp_path / "media").mkdir()
    return tmp_path / "media"


@pytest.fixture
async def footage(store, media, clock):
    """Twenty segments of 1000 bytes, 2 s each, the last one ending now."""
    reports = []
    begin = clock.wall().micros - 40_000_000
    for n in range(20):
        start = begin + n * 2_000_000
        path = segment_path(7, start, 2_000_000, utc_hour(start))
        (media / path).parent.mkdir(parents=True, exist_ok=True)
        (media / path).write_bytes(b"x" * SIZE)
        reports.append(
            SegmentFinished(
                camera_id=7, path=path, started_at=start, clock_trusted=True, duration=2_000_000, size=SIZE
            )
        )  # fmt: skip
    await store.segments.add(reports)
    return reports


@pytest.fixture
def keeper(store, media, clock):
    """Retention with these limits, and the index that it tells."""

    def make(*, cap=10**12, floor=0, starved=lambda _: None, fault="", at=clock, boot_id="", first=None, **days):
        index = FootageIndex(segments=store.segments, journal=store.journal, media=media, clock=at)
        retention = Retention(
            index=index, limits=StorageLimits(cap=cap, floor=floor, **days), starved=starved,
            media_fault=lambda: fault, boot_id=boot_id,
            first=None if first is None else lambda: first(index),
        )  # fmt: skip
        return retention, index

    return make


async def test_the_oldest_go_first_and_footage_of_events_stays(store, footage, keeper, pin, media):
    await pin(7, before=2, after=1, at=footage[3].started_at)  # segments 2 and 3
    retention, _ = keeper(cap=12 * SIZE)
    await retention.look()
    left = [report for number, report in enumerate(footage) if number in (2, 3) or number >= 10]
    assert await store.segments.paths() == {report.path for report in left}
    assert {str(path.relative_to(media)) for path in media.glob("*/*/*.ts")} == {report.path for report in left}
    assert await store.segments.garbage() == ()


async def test_what_only_events_hold_is_never_deleted_and_told_once(store, footage, keeper, pin, events_of):
    await pin(7, before=60, after=60)
    paused = []
    retention, index = keeper(cap=SIZE, floor=10**15, starved=paused.append)
    for _ in range(3):
        await retention.look()
    assert len(await store.segments.paths()) == 20
    assert paused == [True] * 3
    writing = asyncio.get_running_loop().create_task(index.run())
    await index.flush()
    writing.cancel()
    (low,) = await events_of(EventKind.STORAGE_LOW)
    assert "pause" in low.description


async def test_a_deletion_that_was_cut_short_is_finished(store, footage, keeper, media):
    chosen = await store.segments.discard(Choice(at_least=3 * SIZE))
    retention, _ = keeper()
    await retention.look()
    assert await store.segments.garbage() == ()
    assert len(list(media.glob("*/*/*.ts"))) == 17
    assert len(chosen) == 3


class SetClock:
    """A clock that shows what it is told."""

    def __init__(self, micros, *, trusted=True):
        self.stamp = Stamp(micros, trusted)
        self.uptime = None

    def monotonic(self):
        return self.stamp.micros / 1_000_000 if self.uptime is None else self.uptime

    def wall(self):
        return self.stamp


DAY = 86_400_000_000


@pytest.fixture
async def three_classes(store, footage, pin):
    """Segments 2 and 3 prove an incident, 6 and 7 a transaction."""
    await pin(7, before=2, after=1, at=footage[3].started_at, kind=EventKind.VEHICLE_TAILGATED)
    await pin(7, before=2, after=1, at=footage[7].started_at)
    for row in await store.outbox.due(now=2**60):
        await store.outbox.delivered(row, central_id=row.id)

    async def left():
        paths = await store.segments.paths()
        return [number for number, report in enumerate(footage) if report.path in paths]

    return left


async def test_footage_goes_when_the_days_of_its_class_are_over(footage, keeper, three_classes):
    clock = SetClock(footage[-1].started_at + 30 * DAY)
    retention, _ = keeper(at=clock, continuous_days=30, transaction_days=90, incident_days=365)
    assert await looked(retention, three_classes) == [2, 3, 6, 7, 19]
    clock.stamp = Stamp(footage[-1].started_at + 91 * DAY, trusted=True)
    assert await looked(retention, three_classes) == [2, 3]
    clock.stamp = Stamp(footage[-1].started_at + 366 * DAY, trusted=False)
    assert await looked(retention, three_classes) == [2, 3], "by a clock that nobody trusts nothing is old"
    clock.stamp = Stamp(footage[-1].started_at + 366 * DAY, trusted=True)
    assert await looked(retention, three_classes) == []


async def test_a_clock_that_is_set_forward_deletes_nothing_early(footage, keeper, three_classes):
    clock = SetClock(footage[-1].started_at)
    clock.uptime = 1000.0
    retention, _ = keeper(at=clock, continuous_days=30)
    assert await looked(retention, three_classes) == [*range(20)]
    clock.stamp = Stamp(footage[-1].started_at + 4000 * DAY, trusted=True)
    for clock.uptime in (2000.0, 80_000.0):
        assert await looked(retention, three_classes) == [*range(20)]
    clock.stamp, clock.uptime = Stamp(footage[-1].started_at + DAY, trusted=True), 87_400.0
    assert await looked(retention, three_classes) == [*range(20)]


async def test_what_this_run_of_the_machine_recorded_is_as_old_as_the_run_at_most(store, footage, media, keeper, pin):
    """The clock was set forward before the gateway was started again: nothing but the other clock tells."""
    await pin(7, before=2, after=1, at=footage[3].started_at)
    for row in await store.outbox.due(now=2**60):
        await store.outbox.delivered(row, central_id=row.id)
    event = (await store.camera_events.pinned_since((7,), 0))[0]
    own = [
        report.model_copy(
            update={
                "path": report.path.replace("7/", "9/", 1), "camera_id": 9,
                "boot_id": "run", "monotonic": 1_000_000_000 + n * 2_000_000,
            }
        )
        for n, report in enumerate(footage)
    ]  # fmt: skip
    for report in own:
        (media / report.path).parent.mkdir(parents=True, exist_ok=True)
        (media / report.path).write_bytes(b"x" * SIZE)
    await store.segments.add(own)
    assert event.camera_id == 7
    clock = SetClock(footage[-1].started_at + 4000 * DAY)
    clock.uptime = 2_000.0 + 20 * 86_400
    retention, _ = keeper(at=clock, continuous_days=30, boot_id="run")
    await retention.look()
    assert await store.segments.paths() == {report.path for report in own}
    clock.uptime = 1_020.0 + 30 * 86_400
    clock.stamp = Stamp(clock.stamp.micros + 11 * DAY, trusted=True)
    retention, _ = keeper(at=clock, continuous_days=30, boot_id="run")
    await retention.look()
    assert await store.segments.paths() == {report.path for report in own[10:]}


async def test_an_event_of_this_run_of_the_machine_is_as_old_as_the_run_at_most(store, footage, keeper, three_classes):
    begin = footage[0].started_at
    await store.database.write(
        lambda connection: connection.execute(
            "UPDATE camera_event SET boot_id = 'run', clock_offset = ? WHERE NOT incident", (begin - 1_000_000_000,)
        )
    )
    clock = SetClock(begin + 4000 * DAY)
    for clock.uptime, left in ((1000 + 89 * 86_400, [6, 7]), (1020 + 90 * 86_400, [])):
        retention, _ = keeper(at=clock, cap=0, boot_id="run")
        assert await looked(retention, three_classes) == left


async def test_footage_of_events_never_goes_before_continuous_footage(footage, keeper, three_classes):
    clock = SetClock(footage[-1].started_at + 100 * DAY, trusted=False)
    for cap, left in ((18, [2, 3, *range(4, 20)]), (6, [2, 3, 6, 7, 18, 19])):
        retention, _ = keeper(at=clock, cap=cap * SIZE)
        assert await looked(retention, three_classes) == left
    retention, _ = keeper(at=clock, cap=3 * SIZE)  # the transaction's days are over, the incident's are not
    assert await looked(retention, three_classes) == [2, 3, 7]
    retention, _ = keeper(at=clock, cap=SIZE)
    assert await looked(retention, three_classes) == [2, 3]


async def test_footage_that_central_has_not_got_stays_whatever_its_age(footage, store, keeper, pin):
    await pin(7, before=2, after=1, at=footage[3].started_at)
    retention, _ = keeper(at=SetClock(footage[-1].started_at + 4000 * DAY), cap=SIZE)
    await retention.look()
    assert await store.segments.paths() == {footage[2].path, footage[3].path}


@pytest.mark.parametrize("book", ["delivered", "dropped"])
async def test_footage_of_what_central_refused_is_held_until_that_is_settled(footage, store, keeper, pin, book):
    await pin(7, before=2, after=1, at=footage[3].started_at)
    (row,) = await store.outbox.due(now=2**60)
    await store.outbox.park(row, error="refused")
    retention, _ = keeper(at=SetClock(footage[-1].started_at + 4000 * DAY), cap=SIZE)
    await retention.look()
    assert await store.segments.paths() == {footage[2].path, footage[3].path}
    if book == "delivered":
        await store.outbox.delivered(row, central_id=7)
    else:
        await store.outbox.drop(row)
    later, _ = keeper(at=SetClock(footage[-1].started_at + 4001 * DAY), cap=SIZE)
    await later.look()
    assert await store.segments.paths() == set()
    assert (await store.outbox.books()).balance()


async def looked(retention, left):
    await retention.look()
    return await left()


async def test_the_forecast_follows_what_comes_in(footage, keeper, clock):
    retention, _ = keeper(cap=20 * SIZE + 10 * 43_200 * SIZE)
    assert retention.forecast() is None
    await retention.look()
    seen = retention.forecast()
    assert seen.footage_bytes == 20 * SIZE
    assert seen.bytes_per_day == pytest.approx(43_200 * SIZE, rel=0.2)
    assert "days at this rate" in seen.text
    assert seen.full_in_days == pytest.approx(10, rel=0.2)


@pytest.mark.parametrize(
    ("footage", "free", "seen", "strain", "days", "text"),
    [
        (5, 100, 1.0, {}, 9.0, "5.0 GB, full in 9 days at this rate"),
        (5, 5.5, 1.0, {}, 4.5, "5.0 GB, full in 4 days at this rate"),
        (5, 100, 10.0, {}, 0.9, "5.0 GB, full in 21 hours at this rate"),
        (14, 100, 7.0, {}, 0.0, "14.0 GB, full: the oldest goes, about 2 days are kept"),
        (5, 100, 0.4, {}, None, "5.0 GB, does not fill up at this rate: footage is deleted after 30 days"),
        (5, 100, 0.0, {}, None, "5.0 GB, nothing was recorded lately"),
        (15, 4, 1.0, {"pinned": True}, 3.0, "15.0 GB, over its limit and all held for events: cameras pause in 3 days"),
        (5, 0.2, 1.0, {"paused": True}, None, "5.0 GB, full, and nothing may be deleted: cameras pause"),
    ],
)
def test_the_forecast_in_words(footage, free, seen, strain, days, text):
    giga = 10**9
    limits = StorageLimits(cap=14 * giga, floor=giga)
    use = StorageUse(footage=int(footage * giga), free=int(free * giga))
    found = forecast(use, limits, seen_bytes=int(seen * giga / 4), seen_seconds=21_600, strain=Strain(**strain))
    assert found.text == text
    assert found.short is bool(strain)
    assert found.full_in_days == (None if days is None else pytest.approx(days))


def test_times_in_words():
    told = [lasting(days) for days in (0, 1 / 24, 1.3, 2, 9.9)]
    assert told == ["1 hour", "1 hour", "31 hours", "2 days", "9 days"]


async def test_footage_gets_its_true_time_before_anything_is_judged_old(
    store, footage, keeper, media, pin, monkeypatch
):
    """Recorded in 1970 before the clock was set; by that time all of it would go at once."""
    uptime = 10_000_000_000
    wrong = [
        report.model_copy(
            update={
                "path": f"8/1970010100/{n * 2_000_000}_2000000.ts", "camera_id": 8, "started_at": n * 2_000_000,
                "clock_trusted": False, "boot_id": "run", "monotonic": uptime + n * 2_000_000,
            }
        )
        for n, report in enumerate(footage)
    ]  # fmt: skip
    await store.segments.add(wrong)
    clock = SetClock(50_000_000, trusted=False)
    heard = []

    async def correct(index):
        correction = ClockCorrection(
            corrections=store.clock_corrections,
            index=index,
            clock=clock,
            boot_id="run",
            moved=lambda: heard.append(index.covered_until(8)),
        )
        await correction.look()

    retention, index = keeper(at=clock, continuous_days=1, first=correct)
    for report in wrong:
        (media / report.path).parent.mkdir(parents=True, exist_ok=True)
        (media / report.path).write_bytes(b"x" * SIZE)
    await index.recover((8,))
    await retention.look()
    assert heard == []

    true = footage[-1].started_at
    monkeypatch.setattr(clock, "monotonic", lambda: uptime / 1_000_000 + 40)
    clock.stamp = Stamp(true + 40_000_000, trusted=True)
    await index.look_again()
    await retention.look()
    assert len(await store.segments.between(8, true, true + 40_000_000)) == 20
    assert heard == [true + 40_000_000]
