"""Records that central has once although it knows no idempotency keys, which the interface does not promise."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest
from fresh_ids import fresh_ids
from set_machine import PushedClock
from wired import central_writes, evidence_sender, outbox_sender, parked_rows

from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import Evidence, KeptAs
from gateway.domain.passages import Moment, Passage, PassageOutcome
from gateway.domain.writes import CARD_CREATE, CARD_DELETE, CARD_UPDATE, ENTRY_CREATE
from gateway.recording.evidence_files import LostEvidence
from gateway.runtime.clock import SystemClock
from gateway.store import Entry, EventFilter
from simulation.far_ends.central import CentralAccount, Chances, Faults

AT = 1_767_268_800_000_000
EVENT = Event(EventKind.VEHICLE_PASSED, AT, clock_trusted=True, text="A vehicle passed.", device_id=101)
MOMENT = Moment(201, "Vehicle passed", "", AT - 5, AT + 5, clock_trusted=True)


def passage(credential: str) -> Passage:
    return Passage(
        lane_id="entry",
        direction="entry",
        outcome=PassageOutcome.PASSED,
        started_at=AT,
        ended_at=AT + 9,
        clock_trusted=True,
        credential=credential,
    )


async def send_all(store, sender):
    for _ in range(4):
        await store.outbox.retry_now()
        await sender.send_due()
    assert (await store.outbox.books()).waiting == 0


async def test_a_camera_event_whose_answer_was_lost_is_not_made_again(store, client, central):
    await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)
    central.faults = Faults(paths="/v1/camera/event", lost_answers=1)
    await send_all(store, sender)
    assert central.record_counts().doubles() == ()


async def test_records_of_which_central_does_not_say_the_id_are_known_by_it_all_the_same(store, sender, central):
    central.faults = Faults(unnamed=True)
    for number in range(12):
        at = AT + number * 1_000_000
        moment = Moment(201, "Vehicle passed", "", at - 5, at + 5, clock_trusted=True)
        await store.journal.record(Entry(events=(EVENT,), moments=(moment,), passage=passage(f"{number}")))
    card = (await store.pending_writes.hold(CARD_CREATE, None, {"number": "77123"}, now=AT, sends=True)).record_id
    await store.pending_writes.hold(CARD_UPDATE, card, {"note": "kept"}, now=AT, sends=True)
    await send_all(store, sender)
    books = await store.outbox.books()
    assert (books.delivered, books.parked) == (26, 0)
    assert (len(central.camera_events), len(central.entries), central.record_counts().doubles()) == (12, 12, ())
    assert [record["note"] for record in central.cards.values() if record["number"] == "77123"] == ["kept"]
    for kind, made in (("camera_event", central.camera_events), ("entry", central.entries)):
        given = await store.delivered_records.newest(kind, 0, most=50)
        assert {record.central_id for record in given} == {record["id"] for record in made}


@pytest.mark.parametrize("deny", ["", "can_view_entries"])
async def test_a_record_that_goes_straight_through_is_kept_though_central_does_not_say_its_id(
    store, writes, central, deny
):
    central.tables.entries.add({"device_id": 102, "type": "entry", "date_at": "2025-12-31T12:00:00Z"})
    central.faults = Faults(unnamed=True, deny=deny)
    body = {"device_id": 101, "type": "entry", "date_at": "2026-01-01T12:00:00Z", "plate": "UNNAMED1"}
    made = await writes.write(ENTRY_CREATE, body)
    card = await writes.write(CARD_CREATE, {"number": "77123", "status": "active"})
    assert (made.waits, card.waits) == (False, False)
    assert central.cards[card.record_id]["number"] == "77123"
    assert (await store.cards.get(card.record_id)) is not None
    there = max(central.entries, key=lambda entry: entry["id"])
    known = await store.pending_writes.site_id("entry", made.record_id)
    central_id = await store.pending_writes.central_id("entry", known)
    assert central_id == (None if deny else there["id"])
    assert (await store.pending_writes.record("entry", known))["plate"] == "UNNAMED1"
    books = await store.outbox.books()
    assert (books.accepted, books.delivered, books.balance()) == (2, 2, True)


async def test_entries_that_are_alike_and_go_straight_through_at_once_get_an_id_each(store, writes, central):
    older = central.tables.entries.add({"device_id": 102, "type": "entry", "date_at": "2025-12-31T12:00:00Z"})
    central.faults = Faults(unnamed=True)
    body = {"device_id": 101, "type": "entry", "date_at": "2026-01-01T12:00:00Z", "plate": "UNNAMED1"}
    made = await asyncio.gather(*(writes.write(ENTRY_CREATE, body) for _ in range(6)))
    assert {one.record_id for one in made} == {entry["id"] for entry in central.entries} - {older["id"]}
    rows = await store.delivered_records.newest("entry", 0, most=9)
    assert {record.central_id for record in rows} == {one.record_id for one in made}
    assert len(rows) == 6


async def test_a_list_that_does_not_come_in_time_is_looked_through_in_smaller_pages(store, connect, central):
    client = connect(timeout_seconds=0.4)
    await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)
    central.faults = Faults(paths="/v1/camera/event", lost_answers=1)
    await sender.send_due()
    central.faults = Faults(paths="/v1/camera/event/list", record_seconds=0.004)
    for _ in range(20):
        await store.outbox.retry_now()
        await sender.send_due()
        if not (await store.outbox.books()).waiting:
            break
    assert (await store.outbox.books()).delivered == 1
    assert len(central.camera_events) == 1


async def test_an_entry_that_a_bad_page_hides_is_not_made_again(store, client, central):
    await store.journal.record(Entry(events=(EVENT,), passage=passage("7")))
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)
    central.faults = Faults(paths="/v1/entry", lost_answers=1)
    await sender.send_due()
    assert len(central.entries) == 1
    central.faults = Faults(paths="/v1/entry/list", chances=Chances(missing_records=1))
    await store.outbox.retry_now()
    await sender.send_due()
    central.faults = Faults()
    await send_all(store, sender)
    assert central.record_counts().doubles() == ()


async def test_an_entry_whose_answer_was_lost_is_not_made_again(store, client, central):
    await store.journal.record(Entry(events=(EVENT,), passage=passage("7")))
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)
    central.faults = Faults(paths="/v1/entry", lost_answers=1)
    await send_all(store, sender)
    assert len(central.entries) == 1


async def test_a_file_whose_answer_was_lost_is_not_kept_twice(store, client, central, tmp_path):
    recorded = await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    content = b"\xff\xd8\xff" + b"picture" * 100
    (tmp_path / "file").write_bytes(content)
    draft = Evidence(
        id=0,
        camera_event_id=recorded.camera_event_ids[0],
        name="scene.jpg",
        description="",
        kept_as=KeptAs.INCIDENT,
        media_type="image/jpeg",
        size=len(content),
        sha256=hashlib.sha256(content).hexdigest(),
        file="file",
        created_at=AT,
        clock_trusted=True,
        username="chief",
    )
    await store.evidence.add(draft, event=EVENT, most=9)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)
    evidence = evidence_sender(
        client=client,
        store=store,
        clock=SystemClock(),
        files=LostEvidence(
            rows=store.evidence, journal=store.journal, clock=SystemClock(), folder=tmp_path, ready=lambda: None
        ),
    )
    await sender.send_due()
    central.faults = Faults(paths="/v1/camera/event/evidence", lost_answers=1)
    for _ in range(4):
        await store.outbox.retry_now()
        await evidence.send_due()
    assert (await store.outbox.books()).waiting == 0
    assert central.record_counts().doubles() == ()


async def lose(store, client, central, *, arrives, clock=None, may_take=0, ask_after=0):
    """A camera event whose answer was lost; gives the sender that sent it."""
    await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    sender = outbox_sender(
        client=client,
        newest=fresh_ids(client),
        store=store,
        clock=clock or SystemClock(),
        may_take=may_take,
        ask_after=ask_after,
    )
    chances = Chances(lost_answers=1) if arrives else Chances(lost_requests=1)
    central.faults = Faults(paths="/v1/camera/event", chances=chances)
    await sender.send_due()
    central.faults = Faults()
    assert len(central.camera_events) == arrives
    return sender


async def look(store, sender):
    await store.outbox.retry_now()
    await sender.send_due()
    books = await store.outbox.books()
    assert books.balance()
    return books


async def test_what_central_carries_out_late_is_not_made_again(store, client, central):
    clock = PushedClock()
    sender = await lose(store, client, central, arrives=False, clock=clock, may_take=60, ask_after=86_400)
    for _ in range(4):
        clock.pushed += 15
        assert (await look(store, sender)).waiting == 1
        assert central.camera_events == []
    (request,) = [seen for seen in central.requests if seen.method == "PUT"]
    made = central.tables.camera_events.add(json.loads(request.body))  # the request lay about on the way
    clock.pushed += 15
    assert (await look(store, sender)).delivered == 1
    assert [event["id"] for event in central.camera_events] == [made["id"]]


async def test_what_two_clean_looks_do_not_find_is_made_again(store, client, central):
    clock = PushedClock()
    sender = await lose(store, client, central, arrives=False, clock=clock, may_take=60, ask_after=86_400)
    await look(store, sender)
    central.faults = Faults(paths="/v1/camera/event/list", count_off_by=1)
    clock.pushed += 61
    assert (await look(store, sender)).waiting == 1
    assert central.camera_events == []
    central.faults = Faults()
    assert (await look(store, sender)).delivered == 1
    assert len(central.camera_events) == 1


async def test_a_connection_that_never_came_about_leaves_nothing_unknown(store, client, central):
    await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock())
    await central.stop()
    await sender.send_due()
    await central.start()
    assert (await look(store, sender)).delivered == 1
    assert not [seen for seen in central.requests if seen.path.endswith("/list")]


@pytest.mark.parametrize("how", ["may not look", "changed at central", "shows nothing", "never a clean list"])
async def test_what_cannot_be_told_waits_for_a_person_who_says_it(store, client, central, how):
    sender = await lose(store, client, central, arrives=True)
    (event,) = central.camera_events
    if how == "may not look":
        central.faults = Faults(deny="can_view_camera_events")
    elif how == "changed at central":
        central.tables.camera_events.change(event["id"], {"source_id": None, "name": "Somebody wrote this"})
    elif how == "shows nothing":
        central.tables.camera_events.put({"id": event["id"], "state": "new"})
    else:
        central.tables.camera_events.remove(event["id"])
        central.faults = Faults(paths="/v1/camera/event/list", count_off_by=3)
    for _ in range(40):
        books = await look(store, sender)
        if books.parked:
            break
    assert (books.parked, books.waiting) == (1, 0)
    (row,) = await store.refused.page()
    assert row.error.startswith("it may be at central: ")
    (told,) = (await store.events.page(EventFilter(types=(int(EventKind.RECORD_PARKED),)))).events
    assert "it is not known whether central has it" in told.description
    assert sum(seen.method == "PUT" for seen in central.requests) == 1

    central.faults = Faults()
    parked = parked_rows(store=store, clock=SystemClock())
    with pytest.raises(CommandRefused, match="not known whether central already has it"):
        await parked.edit(row.id, {"name": "x"}, by="tess")
    if how == "never a clean list":
        await parked.settle(row.id, None, by="tess")
    else:
        await parked.settle(row.id, event["id"], by="tess")
    assert (await look(store, sender)).delivered == 1
    (held,) = central.camera_events
    assert (await store.camera_events.get(row.record_id)).central_id == held["id"]
    with pytest.raises(NotFoundError):
        await parked.settle(row.id, None, by="tess")


async def test_a_person_cannot_give_one_record_of_centrals_to_two_of_the_site(store, client, central):
    sender = await lose(store, client, central, arrives=True)
    await look(store, sender)
    (first,) = central.camera_events
    sender = await lose_another(store, client, central, sender)
    (row,) = await store.refused.page()
    parked = parked_rows(store=store, clock=SystemClock())
    with pytest.raises(CommandRefused, match="another one of this site"):
        await parked.settle(row.id, first["id"], by="tess")
    await parked.retry(row.id, by="tess")
    assert (await look(store, sender)).delivered == 2  # central lets itself be looked at again


async def lose_another(store, client, central, sender):
    await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    central.faults = Faults(paths="/v1/camera/event", lost_answers=1)
    await sender.send_due()
    central.faults = Faults(deny="can_view_camera_events")
    assert (await look(store, sender)).parked == 1
    central.faults = Faults()
    return sender


async def test_rows_of_one_turn_share_their_looks(store, client, central):
    """A gateway that was killed in the middle of many leaves many unknown; each gets the record that is its own."""
    for _ in range(20):
        await store.journal.record(Entry(events=(EVENT,), moments=(MOMENT,)))
    rows = await store.outbox.due(now=AT * 2)
    for row in rows:
        await store.outbox.begin(row)
    for row in rows[::2]:
        central.tables.camera_events.add(json.loads(row.body))
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)
    while (books := await look(store, sender)).waiting:
        pass
    assert (books.delivered, books.parked) == (20, 0)
    assert central.record_counts().doubles() == ()
    assert len(central.camera_events) == 20
    assert sum(seen.path.endswith("/list") for seen in central.requests) <= 4


@pytest.mark.parametrize("alike", [2, 3])
async def test_creates_that_are_alike_each_get_a_record_of_their_own(store, client, central, alike):
    """The records stand so far apart in central's list that one page shows one of them."""
    body = {"device_id": 101, "type": "entry", "date_at": "2026-01-01T12:00:00Z", "plate": "SAME1"}
    for number in range(alike):
        await store.pending_writes.hold(ENTRY_CREATE, None, body, now=AT, sends=True)
        central.tables.entries.add(body)
        for other in range(600):
            central.tables.entries.add({**body, "plate": f"N{number}O{other}"})
    for row in await store.outbox.due(now=AT * 2):
        await store.outbox.begin(row)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)
    assert (await look(store, sender)).delivered == alike
    assert sum(seen.method == "PUT" for seen in central.requests) == 0
    given = await store.delivered_records.newest("entry", 0, most=10)
    assert {record.central_id for record in given} == {
        entry["id"] for entry in central.entries if entry["plate"] == "SAME1"
    }


async def test_a_card_whose_create_is_unknown_is_neither_taken_back_nor_amended_unseen(store, client, central):
    writes = central_writes(client=client, store=store, clock=SystemClock())
    sender = outbox_sender(
        client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0, ask_after=0
    )
    central.faults = Faults(paths="/v1/access", lost_answers=1)
    made = await writes.write(CARD_CREATE, {"number": "77123", "status": "active"})
    central.faults = Faults(deny="can_view_access_cards")
    central.put_account(CentralAccount("gateway", "right horse", permissions=frozenset({"can_add_access_cards"})))
    assert (await look(store, sender)).parked == 1
    await writes.write(CARD_UPDATE, {"id": made.record_id, "note": "newer"})
    assert (await writes.write(CARD_DELETE, {"id": made.record_id})).waits
    assert (await look(store, sender)).parked == 1
    central.faults = Faults()
    central.put_account(CentralAccount("gateway", "right horse"))
    (row,) = await store.refused.page()
    await parked_rows(store=store, clock=SystemClock()).retry(row.id, by="tess")
    while (books := await look(store, sender)).waiting:
        pass
    assert books.parked == 0
    assert "77123" not in {card["number"] for card in central.cards.values()}
