"""Passages become entries, and exits close them."""

from __future__ import annotations

import json

import pytest

from gateway.domain.passages import LONGEST_STAY, EntryStatus, Passage, PassageOutcome
from gateway.domain.presence import Movement, Way
from gateway.domain.writes import ENTRY_CREATE, ENTRY_UPDATE, site_id_in
from gateway.store import Entry, EntryFilter

HOUR = 3_600_000_000
NOW = 1_767_268_800_000_000
IN, OUT = Way(enters="garage"), Way(leaves="garage")


@pytest.fixture
def passes(store, event):
    """Records that a vehicle passed a lane."""

    async def pass_(at, direction="entry", *, way=None, outcome=PassageOutcome.PASSED, trusted=True, **known):
        made = event("A vehicle passed.", date_at=at, device_id=101 if direction == "entry" else 103, lane_id=direction)
        passage = Passage(direction, direction, outcome, at - 5_000_000, at, clock_trusted=trusted, **known)
        movements = (Movement(way, at),) if way else ()
        await store.journal.record(Entry(events=(made,), passage=passage, movements=movements))

    return pass_


@pytest.fixture
def entries(store):
    async def found(now=NOW, **wanted):
        return (await store.entries.page(EntryFilter(**wanted), now=now)).entries

    return found


async def outbox(store):
    return [(row.record_id, row.action, json.loads(row.body)) for row in await store.outbox.due(now=2**62)]


async def test_an_exit_closes_the_entry_of_its_card(store, passes, entries):
    await passes(NOW, card_id=7, credential="0042")
    await passes(NOW + 1, card_id=8, credential="0043")
    await passes(NOW + HOUR, "exit", card_id=7, credential="0042")
    other, mine = await entries()
    assert (other.status, other.exit_at) == (EntryStatus.OPEN, None)
    assert (mine.status, mine.entry_at, mine.exit_at, mine.stayed) == ("closed", NOW, NOW + HOUR, HOUR)
    assert (mine.entry_lane, mine.exit_lane, mine.entry_device_id, mine.exit_device_id) == ("entry", "exit", 101, 103)
    assert (mine.card_id, mine.credential, mine.manual, mine.clock_trusted) == (7, "0042", False, True)
    assert mine.id >= 2_000_000_000


@pytest.mark.parametrize(
    ("came", "left"),
    [
        ({"card_id": 7, "credential": "0042"}, {"card_id": 7, "credential": "AB1", "plate": "AB1"}),
        ({"credential": "AB1", "plate": "AB1"}, {"credential": "AB1", "plate": "AB1"}),
        ({"credential": "0042"}, {"card_id": 7, "credential": "0042"}),
    ],
)
async def test_card_then_reading_then_plate_say_who_left(passes, entries, came, left):
    await passes(NOW, **came)
    await passes(NOW + HOUR, "exit", **left)
    (only,) = await entries()
    assert only.status is EntryStatus.CLOSED


async def test_the_card_counts_before_the_plate(passes, entries):
    await passes(NOW, card_id=7, credential="0042")
    await passes(NOW + 1, credential="AB1", plate="AB1")
    await passes(NOW + 2, "exit", card_id=7, credential="AB1", plate="AB1")
    assert [one.status for one in await entries()] == ["open", "closed"]


async def test_an_exit_that_nobody_saw_come(passes, entries):
    await passes(NOW, "exit", card_id=7, credential="0042")
    await passes(NOW + 1, "exit")
    nobody, mine = await entries()
    assert (mine.status, mine.entry_at, mine.exit_at, mine.exit_lane, mine.entry_lane) == (
        "exit_only", None, NOW, "exit", "",
    )  # fmt: skip
    assert (nobody.status, nobody.card_id, nobody.credential) == ("exit_only", None, "")


async def test_a_second_entry_takes_the_place_of_the_first(passes, entries):
    await passes(NOW, card_id=7, credential="0042")
    await passes(NOW + HOUR, card_id=7, credential="0042")
    await passes(NOW + 2 * HOUR, "exit", card_id=7, credential="0042")
    second, first = await entries()
    assert (first.status, first.exit_at) == (EntryStatus.SUPERSEDED, None)
    assert (second.status, second.stayed) == (EntryStatus.CLOSED, HOUR)


async def test_nobody_known_is_never_taken_for_somebody_else(passes, entries):
    await passes(NOW)
    await passes(NOW + 1)
    await passes(NOW + 2, "exit")
    assert [one.status for one in await entries()] == ["exit_only", "open", "open"]


async def test_an_entry_times_out(passes, entries):
    await passes(NOW, card_id=7, credential="0042")
    later = NOW + LONGEST_STAY + 1
    assert [one.status for one in await entries(now=later)] == [EntryStatus.TIMED_OUT]
    assert [one.status for one in await entries(now=later, statuses=(EntryStatus.TIMED_OUT,))] == ["timed_out"]
    assert await entries(now=later, statuses=(EntryStatus.OPEN,)) == ()
    await passes(later, "exit", card_id=7, credential="0042")
    assert [one.status for one in await entries(now=later)] == ["exit_only", "timed_out"]


async def test_areas_are_apart(passes, entries):
    await passes(NOW, way=IN, card_id=7, credential="0042")
    await passes(NOW + 1, way=Way(leaves="garage", enters="inner"), card_id=7, credential="0042")
    await passes(NOW + 2, "exit", way=Way(leaves="inner", enters="garage"), card_id=7, credential="0042")
    await passes(NOW + HOUR, "exit", way=OUT, card_id=7, credential="0042")
    assert [(one.area, one.status, one.stayed) for one in await entries()] == [
        ("inner", "closed", 1), ("garage", "closed", HOUR),
    ]  # fmt: skip


@pytest.mark.parametrize("outcome", [PassageOutcome.BACKED_OUT, PassageOutcome.NOT_OPENED])
async def test_who_did_not_go_through_is_no_entry(passes, entries, outcome):
    await passes(NOW, outcome=outcome, card_id=7, credential="0042")
    assert await entries() == ()


async def test_one_untrusted_stamp_makes_the_stay_untrusted_and_no_stay_is_negative(passes, entries):
    await passes(NOW, card_id=7, credential="0042")
    await passes(NOW - HOUR, "exit", card_id=7, credential="0042", trusted=False)
    (only,) = await entries()
    assert (only.status, only.clock_trusted, only.stayed) == ("closed", False, 0)


async def test_entries_go_up_in_order_with_the_passages_that_make_them(store, passes, entries):
    await passes(NOW, way=IN, card_id=7, credential="0042")
    await passes(NOW + HOUR, "exit", way=OUT, card_id=7, credential="0042")
    (only,) = await entries()
    (first,) = await outbox(store)
    assert first[:2] == (only.id, "create")
    body = first[2]
    assert {**body, "source_id": site_id_in(body["source_id"])} == {
        "device_id": 101, "type": "entry", "date_at": "2026-01-01T12:00:00.000Z", "plate": "", "credential": "0042",
        "lane": "entry", "area": "garage", "clock_trusted": True, "source_name": "North", "source_id": 1,
        "access_id": 7,
    }  # fmt: skip
    (row,) = await store.outbox.due(now=2**62)
    await store.outbox.delivered(row, central_id=7001)
    (second,) = await outbox(store)
    assert second == (
        only.id,
        "update",
        {"status": "closed", "exit_at": "2026-01-01T13:00:00.000Z", "exit_device_id": 103, "exit_lane": "exit"},
    )
    assert (await store.entries.get(7001, now=NOW)).id == only.id
    assert (await store.entries.get(only.id, now=NOW)).central_id == 7001
    assert (await store.outbox.books()).balance()


async def test_a_card_that_central_does_not_know_yet_is_kept_to_be_named_when_it_goes_up(store, passes):
    await passes(NOW, card_id=2_000_000_001, credential="0042")
    ((_, _, body),) = await outbox(store)
    assert body["access_id"] == 2_000_000_001


async def test_the_id_that_a_grant_has_here_does_not_go_up(store, passes, entries):
    await passes(NOW, card_id=-7, credential="grant 7")
    await passes(NOW + HOUR, "exit", card_id=-7, credential="grant 7")
    (only,) = await entries()
    assert only.status is EntryStatus.CLOSED
    assert all("access_id" not in body for _, _, body in await outbox(store))


async def test_filters_and_totals(store, passes, entries):
    await passes(NOW, card_id=7, credential="0042")
    await passes(NOW + HOUR, "exit", card_id=7, credential="0042")
    await passes(NOW + 2 * HOUR, credential="AB123CD", plate="AB123CD")
    await passes(NOW + 3 * HOUR, "exit", card_id=9, credential="0044")
    gone, plate, card = await entries()
    assert await entries(plates=("ab 123-cd",)) == (plate,)
    assert await entries(search="b123") == (plate,)
    assert await entries(search="_") == ()
    assert await entries(card_ids=(7, 9)) == (gone, card)
    assert await entries(lane_ids=("exit",)) == (gone, card)
    assert await entries(device_ids=(101,)) == (plate, card)
    assert await entries(date_from=NOW + 1, date_until=NOW + 3 * HOUR) == (plate,)
    assert await entries(statuses=(EntryStatus.OPEN, EntryStatus.EXIT_ONLY)) == (gone, plate)
    totals = await store.entries.totals(EntryFilter(), now=NOW)
    assert dict(totals.by_status) == {"open": 1, "closed": 1, "exit_only": 1, "superseded": 0, "timed_out": 0}
    assert (totals.count, totals.stayed_on_average, totals.stayed_longest) == (3, HOUR, HOUR)
    empty = await store.entries.totals(EntryFilter(search="zz"), now=NOW)
    assert (empty.count, empty.stayed_on_average) == (0, None)


async def test_pages_cursors_and_batches(store, passes):
    for number in range(12):
        await passes(NOW + number, card_id=number + 1, credential=str(number))
    every = [one.id for batch in [b async for b in store.entries.batches(EntryFilter(), now=NOW)] for one in batch]
    assert len(every) == 12
    first = await store.entries.page(EntryFilter(), now=NOW, limit=5)
    await passes(NOW + 100, card_id=99, credential="99")
    second = await store.entries.page(EntryFilter(), now=NOW, before=first.next_cursor, limit=7)
    assert [one.id for one in first.entries + second.entries] == every
    assert (first.count, second.count, second.next_cursor) == (12, 13, None)
    third = await store.entries.page(EntryFilter(), now=NOW, offset=13)
    assert third.entries == ()


async def test_a_persons_entry_is_held_changed_and_learned(store, passes):
    body = {
        "device_id": 101,
        "type": "entry",
        "date_at": "2026-01-01T10:00:00.000Z",
        "plate": "ab 12",
        "note": "By hand.",
    }
    held = await store.pending_writes.hold(ENTRY_CREATE, None, body, now=NOW, sends=True)
    made = await store.entries.get(held.record_id, now=NOW)
    assert (made.manual, made.plate, made.entry_at, made.status) == (True, "AB12", NOW - 2 * HOUR, "open")
    assert json.loads(made.record) == {"note": "By hand."}
    await passes(NOW, "exit", way=OUT, credential="AB12", plate="AB12")
    closed = await store.entries.get(held.record_id, now=NOW)
    assert (closed.status, closed.stayed) == (EntryStatus.CLOSED, 2 * HOUR)
    await store.pending_writes.hold(ENTRY_UPDATE, held.record_id, {"exit_at": None}, now=NOW, sends=True)
    assert (await store.entries.get(held.record_id, now=NOW)).status is EntryStatus.OPEN
    assert [action for _, action, _ in await outbox(store)] == ["create"]
    (row,) = await store.outbox.due(now=2**62)
    await store.outbox.delivered(row, central_id=7001, record={"id": 7001, "zone": "B", "note": "By hand."}, now=NOW)
    learned = await store.entries.get(7001, now=NOW)
    assert (learned.id, learned.central_id, learned.plate) == (held.record_id, 7001, "AB12")
    assert json.loads(learned.record) == {"note": "By hand.", "zone": "B"}


async def test_an_entry_that_central_made_first(store):
    record = {"id": 7001, "device_id": 101, "type": "exit", "date_at": "2026-01-01T10:00:00.123Z", "access_id": 5}
    row = await store.pending_writes.ask(ENTRY_CREATE, None, record, now=NOW)
    await store.outbox.delivered(row, central_id=7001, record=record, now=NOW)
    shown = await store.pending_writes.record("entry", row.record_id)
    assert (shown["id"], shown["status"], shown["exit_device_id"]) == (7001, "exit_only", 101)
    known = await store.entries.get(7001, now=NOW)
    assert (known.central_id, known.exit_at, known.entry_at) == (7001, NOW - 2 * HOUR + 123_000, None)


async def test_what_text_cannot_say_of_a_moment_is_not_lost(store, passes, entries):
    await passes(NOW + 123_456, card_id=7, credential="0042")
    (only,) = await entries()
    await store.pending_writes.hold(ENTRY_UPDATE, only.id, {"note": "Seen."}, now=NOW, sends=True)
    (same,) = await entries()
    assert (same.entry_at, same.manual, same.entry_lane) == (NOW + 123_456, False, "entry")
