"""Central gives an id that it gave before, as one does that was set back to an older state: nothing new is lost."""

from __future__ import annotations

import hashlib

import pytest
from fresh_ids import fresh_ids
from wired import down_sync, evidence_sender, outbox_sender

from gateway.domain.errors import CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import Evidence, KeptAs
from gateway.domain.passages import Moment
from gateway.domain.writes import (
    CAMERA_EVENT_UPDATE,
    CARD_CREATE,
    CARD_UPDATE,
    DEVICE_CONFIG,
    DEVICE_CREATE,
    ENTRY_CREATE,
)
from gateway.recording.evidence_files import LostEvidence
from gateway.runtime.clock import SystemClock
from gateway.store import Entry, EventFilter, OutboxDelivery

AT = 1_767_268_800_000_000


@pytest.fixture
def go_up(client, store):
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)

    async def send():
        for _ in range(20):
            await store.outbox.retry_now()
            await sender.send_due()
        books = await store.outbox.books()
        assert (books.waiting, books.parked, books.balance()) == (0, 0, True)

    return send


async def told(store):
    page = await store.events.page(EventFilter(types=(int(EventKind.ID_GIVEN_TWICE),)))
    return [event.description for event in page.events]


def set_back(table):
    """The newest record is gone, and its id is given again."""
    newest = max(table)
    table.remove(newest)
    table.next_id = newest
    return newest


async def happened(store, text):
    event = Event(EventKind.VEHICLE_PASSED, AT, clock_trusted=True, text=text, device_id=101)
    moment = Moment(201, text, "", AT - 5, AT + 5, clock_trusted=True)
    return (await store.journal.record(Entry(events=(event,), moments=(moment,)))).camera_event_ids[0]


async def added(store, folder, camera_event_id):
    content = str(camera_event_id).encode()
    digest = hashlib.sha256(content).hexdigest()
    (folder / digest).write_bytes(content)
    draft = Evidence(
        id=0, camera_event_id=camera_event_id, name="scene.jpg", description="", kept_as=KeptAs.INCIDENT,
        media_type="image/jpeg", size=len(content), sha256=digest, file=digest, created_at=AT, clock_trusted=True,
        username="chief",
    )  # fmt: skip
    event = Event(EventKind.EVIDENCE_ADDED, AT, clock_trusted=True, text="Evidence came.")
    await store.evidence.add(draft, event=event, most=9)


async def test_a_camera_event_that_gets_an_older_ones_id_takes_its_files_and_changes_there(
    central, client, store, writes, go_up, tmp_path
):
    older = await happened(store, "older")
    await go_up()
    number = set_back(central.tables.camera_events)
    newer = await happened(store, "newer")
    await added(store, tmp_path, newer)
    files = LostEvidence(
        rows=store.evidence, journal=store.journal, clock=SystemClock(), folder=tmp_path, ready=lambda: None
    )
    evidence = evidence_sender(client=client, store=store, clock=SystemClock(), files=files)
    sender = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock(), may_take=0)
    await sender.send_due()
    await evidence.send_due()
    record = central.tables.camera_events[number]
    assert (record["name"], len(record["evidence"])) == ("newer", 1)
    await writes.write(CAMERA_EVENT_UPDATE, {"id": newer, "description": "seen"})
    await writes.write(CAMERA_EVENT_UPDATE, {"id": older, "description": "of another"})
    assert central.tables.camera_events[number]["description"] == "seen"
    (text,) = await told(store)
    assert f"camera event {older} now counts as not at central" in text
    await go_up()


async def test_of_two_in_one_commit_with_one_id_the_later_one_has_it(central, client, store):
    ids = [await happened(store, f"{number}") for number in range(2)]
    rows = await store.outbox.due(now=2**62)
    await store.outbox.delivered_together([OutboxDelivery(row, 5000) for row in rows], now=AT, trusted=True)
    known = [(await store.camera_events.get(number)).central_id for number in ids]
    assert known == [None, 5000]
    assert len(await told(store)) == 1


@pytest.mark.parametrize(
    ("create", "one", "other", "change"),
    [
        (CARD_CREATE, {"number": "771", "status": "active"}, {"number": "772", "status": "active"}, CARD_UPDATE),
        (DEVICE_CREATE, {"name": "Kiosk"}, {"name": "Booth"}, DEVICE_CONFIG),
    ],
)
async def test_a_record_made_here_leads_to_its_own_at_central_and_no_other_does(
    central, client, store, writes, go_up, create, one, other, change
):
    await down_sync(client=client, store=store, clock=SystemClock()).pull()
    table = central.tables.cards if create is CARD_CREATE else central.tables.devices
    held = []
    for body in (one, other):
        await central.stop()
        with pytest.raises(CentralUnavailable):
            await client.look()
        held.append((await writes.write(create, body)).record_id)
        await central.start()
        await go_up()
        if body is one:
            number = set_back(table)
    assert await store.pending_writes.site_id(create.kind, held[1]) == number
    assert await store.pending_writes.site_id(create.kind, held[0]) == held[0]
    text = {"note" if create is CARD_CREATE else "description": "of the other"}
    await writes.write(change, {"id": held[1], **text})
    assert table[number].items() >= {**other, **text}.items()
    if create is DEVICE_CREATE:
        assert "Booth" in (await store.devices.get(number)).record
    assert len(await told(store)) == 1


async def test_an_entry_that_a_person_makes_does_not_overwrite_an_older_one_with_its_id(central, store, writes):
    body = {"device_id": 101, "type": "entry", "date_at": "2026-01-01T12:00:00Z"}
    first = await writes.write(ENTRY_CREATE, {**body, "plate": "OLDER1"})
    number = set_back(central.tables.entries)
    assert first.record_id == number
    second = await writes.write(ENTRY_CREATE, {**body, "plate": "NEWER1"})
    assert second.record_id == number
    rows = await store.database.read(
        lambda connection: connection.execute("SELECT plate, central_id FROM parking_entry ORDER BY id").fetchall()
    )
    assert rows == [("OLDER1", None), ("NEWER1", number)]
