"""Evidence goes up from the disk: after its camera event, whole, once, and beside the outbox."""

from __future__ import annotations

import errno
import hashlib
import os
from dataclasses import dataclass

import pytest
from fresh_ids import fresh_ids
from wired import evidence_sender, outbox_sender, parked_rows

from gateway.central.client.connections import SentFile, Upload
from gateway.central.push.evidence import EvidenceSender
from gateway.central.push.outbox import OutboxSender
from gateway.domain.errors import CameraUnavailable, CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import Evidence, KeptAs
from gateway.domain.passages import Moment
from gateway.recording.evidence_files import LostEvidence
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Backoff
from gateway.store import Entry, EventFilter
from gateway.store.outbox.outbox import take_out
from simulation.far_ends.central import ErrorKind, Faults

AT = 1_767_268_800_000_000
LONG = Backoff(first=3600.0, longest=3600.0)


@dataclass
class House:
    """A camera event with files beside it, and what sends them."""

    store: object
    folder: object
    evidence: EvidenceSender
    outbox: OutboxSender
    files: LostEvidence
    camera_event_id: int
    fault: str = ""

    def ready(self):
        if self.fault:
            raise CameraUnavailable(self.fault)

    async def upload(self, content, name="scene.jpg"):
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / digest).write_bytes(content)
        draft = Evidence(
            id=0, camera_event_id=self.camera_event_id, name=name, description="Left door", kept_as=KeptAs.INCIDENT,
            media_type="image/jpeg", size=len(content), sha256=digest, file=digest, created_at=AT, clock_trusted=True,
            username="chief",
        )  # fmt: skip
        told = Event(EventKind.EVIDENCE_ADDED, AT, clock_trusted=True, text="Evidence came.")
        return await self.store.evidence.add(draft, event=told, most=99)

    async def send(self, turns=3):
        for _ in range(turns):
            await self.store.outbox.retry_now()
            await self.evidence.send_due()

    async def at_central(self, central):
        known = await self.store.camera_events.get(self.camera_event_id)
        return central.tables.camera_events[known.central_id]["evidence"] if known.central_id else []


async def waiting_files(store):
    row = await store.evidence.due(now=2**62)
    return [] if row is None else [row]


@pytest.fixture
async def house(store, client, tmp_path):
    folder = tmp_path / "evidence"
    folder.mkdir()
    event = Event(EventKind.VEHICLE_PASSED, AT, clock_trusted=True, text="A vehicle passed.")
    moment = Moment(201, "Vehicle passed", "", AT - 5, AT + 5, clock_trusted=True)
    recorded = await store.journal.record(Entry(events=(event,), moments=(moment,)))
    made = House(store, folder, None, None, None, recorded.camera_event_ids[0])
    backoff = Backoff(first=60.0, longest=60.0)
    made.files = LostEvidence(
        rows=store.evidence, journal=store.journal, clock=SystemClock(), folder=folder, ready=made.ready
    )
    made.evidence = evidence_sender(
        client=client,
        store=store,
        clock=SystemClock(),
        files=made.files,
        backoff=backoff,
        spread_seconds=0,
        ask_after=0,
    )
    made.outbox = outbox_sender(client=client, newest=fresh_ids(client), store=store, clock=SystemClock())
    return made


async def test_a_file_waits_for_its_camera_event_and_arrives_whole(house, central):
    content = os.urandom(3_000_000)
    evidence = await house.upload(content, name='Tür "links".jpg')
    await house.send()
    assert await house.at_central(central) == []
    assert (await house.store.outbox.books()).waiting == 2
    await house.outbox.send_due()
    await house.send()
    (record,) = await house.at_central(central)
    assert (record["sha256"], record["size"], record["name"]) == (evidence.sha256, 3_000_000, 'Tür "links".jpg')
    assert record["idempotency_key"]
    kept = await house.store.evidence.get(evidence.id)
    assert (kept.delivered, kept.central_id) == (True, record["id"])
    books = await house.store.outbox.books()
    assert (books.waiting, books.parked, books.balance()) == (0, 0, True)


async def test_the_outbox_does_not_see_files(house):
    await house.outbox.send_due()
    await house.upload(b"x")
    assert await house.store.outbox.due(now=2**62) == ()
    assert await house.store.outbox.next_due() is None
    assert (await house.store.outbox.books()).waiting == 1


async def test_while_central_is_away_a_file_waits(house, central, client):
    await house.outbox.send_due()
    await house.upload(b"x" * 1000)
    await central.stop()
    assert await house.evidence.send_due() == 0.0
    assert not client.state.reachable, "its camera event could not be asked for"
    assert 5 <= await house.evidence.send_due() <= 60
    await central.start()
    await house.send()
    assert await house.at_central(central) == [], "others find out whether central answers again"
    await client.look()
    assert await house.evidence.send_due() == 0.0
    assert len(await house.at_central(central)) == 1


async def lost_and_back(central, client):
    await central.stop()
    with pytest.raises(CentralUnavailable):
        await client.look()
    await central.start()
    await client.look()


async def test_a_file_that_waits_for_the_line_goes_when_central_answers_again(house, central, client):
    await house.outbox.send_due()
    await house.upload(b"x" * 1000)
    await central.stop()
    assert await house.evidence.send_due() == 0.0
    await central.start()
    assert await house.evidence.send_due() >= 5, "others find out whether central answers again"
    await lost_and_back(central, client)
    assert await house.evidence.send_due() == 0.0
    assert len(await house.at_central(central)) == 1


async def test_sites_do_not_all_come_back_with_their_files_at_once(house, central, client, store):
    house.evidence = evidence_sender(
        client=client,
        store=store,
        clock=SystemClock(),
        files=house.files,
        backoff=LONG,
        spread_seconds=1000,
    )
    await house.outbox.send_due()
    await house.upload(b"x" * 1000)
    await central.stop()
    await house.evidence.send_due()
    await lost_and_back(central, client)
    await house.evidence.send_due()
    due_in = await store.evidence.next_due() - SystemClock().wall().micros
    assert due_in < 1000 * 1_000_000


async def test_a_file_that_central_failed_with_waits_out_its_own_time(house, central, client, store):
    await house.outbox.send_due()
    await house.upload(b"x" * 1000)
    central.faults = Faults(paths="/v1/camera/event/evidence", error=ErrorKind.JSON, error_times=1)
    assert await house.evidence.send_due() == 0.0
    before = await store.evidence.next_due()
    await lost_and_back(central, client)
    assert await house.evidence.send_due() > 5
    assert await store.evidence.next_due() == before
    assert await house.at_central(central) == []


async def test_a_file_goes_as_soon_as_its_camera_event_is_there(house, central):
    await house.upload(b"x" * 1000)
    assert await house.evidence.send_due() == 0.0
    assert await house.evidence.send_due() > 5
    await house.outbox.send_due()
    assert await house.evidence.send_due() == 0.0
    assert len(await house.at_central(central)) == 1


async def test_a_clock_that_stepped_back_keeps_no_file_waiting(house, central):
    await house.outbox.send_due()
    await house.upload(b"x" * 1000)
    (row,) = await waiting_files(house.store)
    year = 365 * 86_400 * 1_000_000
    await house.store.outbox.failed(row, error="away", next_at=SystemClock().wall().micros + year)
    assert await house.evidence.send_due() == 0.0
    await house.evidence.send_due()
    assert len(await house.at_central(central)) == 1


async def test_a_file_that_a_clock_ahead_put_off_does_not_wait_behind_one_that_is_soon_due(house, central):
    await house.outbox.send_due()
    await house.upload(b"far off")
    (far,) = await waiting_files(house.store)
    now = SystemClock().wall().micros
    await house.store.outbox.failed(far, error="away", next_at=now + 365 * 86_400_000_000, at_central=False)
    await house.upload(b"near")
    near = await house.store.evidence.due(now=now + 10_000_000)
    await house.store.outbox.failed(near, error="failed", next_at=now + 50_000_000, at_central=False)
    for _ in range(3):
        await house.evidence.send_due()
    assert [record["size"] for record in await house.at_central(central)] == [7]


async def test_a_refused_file_is_parked_and_told(house, central):
    await house.outbox.send_due()
    evidence = await house.upload(b"x")
    (house.folder / evidence.file).write_bytes(b"y")  # another hash than the row says
    await house.send(1)
    books = await house.store.outbox.books()
    assert (books.parked, books.balance()) == (1, True)
    told = await house.store.events.page(EventFilter(types=(int(EventKind.RECORD_PARKED),)))
    assert "sha256" in told.events[0].description
    await house.send()
    assert await house.at_central(central) == []


async def test_a_missing_permission_or_an_expired_session_does_not_park(house, central):
    await house.outbox.send_due()
    await house.upload(b"x")
    central.faults = Faults(deny="can_add_camera_events")
    await house.send(1)
    assert (await house.store.outbox.books()).waiting == 1
    central.faults = Faults()
    central.expire_sessions()
    await house.send(1)
    assert len(await house.at_central(central)) == 1


async def test_what_was_let_go_of_is_not_sent_and_what_is_away_waits(house, central):
    await house.outbox.send_due()
    await house.upload(b"first")
    house.fault = "the media folder has lost its marker"
    await house.send(1)
    house.fault = ""
    aside = house.folder.rename(house.folder.with_name("aside"))
    await house.send(1)
    books = await house.store.outbox.books()
    assert (books.waiting, books.parked) == (1, 0)
    assert not (await house.store.events.page(EventFilter(types=(int(EventKind.EVIDENCE_MISSING),)))).events
    aside.rename(house.folder)
    await house.store.evidence.let_go(now=AT, transactions_before=0, incidents_before=0)
    await house.store.database.write(lambda connection: connection.execute("UPDATE evidence SET garbage = 1"))
    await house.send(1)
    books = await house.store.outbox.books()
    assert (books.waiting, books.dropped, books.balance()) == (0, 1, True)
    assert await house.at_central(central) == []


async def test_a_file_whose_answer_was_lost_is_not_there_twice(house, central):
    """Central heeds no keys: it is asked whether it has the file."""
    await house.outbox.send_due()
    evidence = await house.upload(b"x" * 1000)
    central.faults = Faults(paths="/v1/camera/event/evidence", lost_answers=1)
    await house.send(3)
    (record,) = await house.at_central(central)
    kept = await house.store.evidence.get(evidence.id)
    assert (kept.delivered, kept.central_id) == (True, record["id"])


async def test_a_file_of_an_event_that_central_is_never_to_have_is_let_go_of(house, central):
    """Somebody dropped the camera event from the outbox: what hangs on it waits for nothing."""
    evidence = await house.upload(b"x")
    (row,) = await house.store.outbox.due(now=2**62)
    await house.store.outbox.drop(row)
    await house.send(1)
    books = await house.store.outbox.books()
    assert (books.waiting, books.dropped, books.balance()) == (0, 2, True)
    after = {"now": AT + 10, "transactions_before": AT + 10, "incidents_before": AT + 10}
    assert await house.store.evidence.let_go(**after) == 1
    assert await house.store.evidence.get(evidence.id) is None


async def test_a_refused_file_is_kept_until_somebody_drops_it(house, central):
    await house.outbox.send_due()
    evidence = await house.upload(b"x")
    (house.folder / evidence.file).write_bytes(b"y")
    await house.send(1)
    after = {"now": AT + 10, "transactions_before": AT + 10, "incidents_before": AT + 10}
    assert await house.store.evidence.let_go(**after) == 0
    await house.store.database.write(lambda connection: take_out(connection, (2,), "dropped"))
    assert await house.store.evidence.let_go(**after) == 1


async def test_not_found_by_what_stands_before_central_neither_parks_nor_doubles_a_file(house, central):
    await house.outbox.send_due()
    await house.upload(b"never sent")
    central.faults = Faults(error=ErrorKind.UNROUTED)
    await house.send(1)
    central.faults = Faults(paths="/v1/camera/event/evidence", lost_answers=1)
    await house.send(1)
    central.faults = Faults(error=ErrorKind.UNROUTED)
    await house.send(2)
    books = await house.store.outbox.books()
    assert (books.waiting, books.parked) == (1, 0)
    central.faults = Faults()
    await house.send(3)
    assert len(await house.at_central(central)) == 1


async def test_a_file_that_may_be_at_central_and_cannot_be_looked_for_is_not_sent_again_unseen(house, central):
    await house.outbox.send_due()
    await house.upload(b"x")
    central.faults = Faults(paths="/v1/camera/event/evidence", lost_answers=1)
    await house.send(1)
    known = await house.store.camera_events.get(house.camera_event_id)
    central.tables.camera_events.remove(known.central_id)
    await house.send(1)
    (row,) = await house.store.refused.page()
    assert row.begun


async def told_of_files(store):
    kinds = (int(EventKind.EVIDENCE_MISSING), int(EventKind.EVIDENCE_FOUND))
    page = await store.events.page(EventFilter(types=kinds))
    return [(event.type, event.description) for event in sorted(page.events, key=lambda event: event.id)]


def vanishes(file):
    file.rename(file.with_name("aside"))
    return "is not where it was put"


def breaks(file):
    """Reading it fails as on a bad disk."""
    file.rename(file.with_name("aside"))
    file.symlink_to("/proc/self/mem")
    return "cannot be read: Input/output error"


def is_cut(file):
    file.with_name("aside").write_bytes(file.read_bytes())
    file.write_bytes(b"fi")
    return "has 2 bytes instead of 5"


@pytest.mark.parametrize("happens", [vanishes, breaks, is_cut])
async def test_a_file_that_is_lost_while_it_waits_is_told_holds_up_nothing_and_goes_when_it_is_back(
    house, central, happens
):
    await house.outbox.send_due()
    evidence = await house.upload(b"first")
    await house.upload(b"second")
    file = house.folder / evidence.file
    why = happens(file)
    await house.send(3)
    assert [record["size"] for record in await house.at_central(central)] == [6]
    (row,) = await house.store.refused.page()
    assert (row.record_id, row.error, row.lost, row.begun) == (evidence.id, f"its file {why}", True, False)
    text = f"The file of evidence {evidence.id}, scene.jpg, "
    assert await told_of_files(house.store) == [(314, f"{text}{why}.")]
    assert (await house.store.evidence.get(evidence.id)).missing
    parked = parked_rows(store=house.store, clock=SystemClock())
    await parked.retry(row.id, by="chief")
    await house.send(2)
    assert len(await told_of_files(house.store)) == 1
    (house.folder / "aside").replace(file)
    await house.files.find_waiting()
    assert await told_of_files(house.store) == [(314, f"{text}{why}."), (315, f"{text}is back.")]
    await house.send(1)
    assert [record["size"] for record in await house.at_central(central)] == [6, 5]
    books = await house.store.outbox.books()
    assert (books.waiting, books.parked, books.balance()) == (0, 0, True)


async def test_a_lost_file_that_somebody_lets_go_of_was_not_refused_by_central(house, central):
    await house.outbox.send_due()
    evidence = await house.upload(b"first")
    (house.folder / evidence.file).unlink()
    await house.send(1)
    (row,) = await house.store.refused.page()
    await parked_rows(store=house.store, clock=SystemClock()).drop(row.id, by="chief")
    (event,) = (await house.store.events.page(EventFilter(types=(int(EventKind.RECORD_DROPPED),)))).events
    assert "whose file is lost" in event.description
    assert (await house.store.outbox.books()).balance()


async def test_a_lost_file_that_central_has_already_is_not_missed(house, central):
    await house.outbox.send_due()
    evidence = await house.upload(b"first")
    central.faults = Faults(paths="/v1/camera/event/evidence", lost_answers=1)
    await house.send(1)
    (house.folder / evidence.file).unlink()
    await house.send(1)
    assert (await house.store.evidence.get(evidence.id)).delivered
    assert await told_of_files(house.store) == []


async def test_a_file_that_breaks_off_while_it_is_sent_is_not_taken_for_a_fault_of_the_line(house, central, client):
    class Breaking(SentFile):
        def read(self, size=-1, /):
            if self.tell():
                self.fault = OSError(errno.EIO, os.strerror(errno.EIO))
                raise self.fault
            return super().read(size)

    await house.outbox.send_due()
    content = os.urandom(300_000)
    evidence = await house.upload(content)
    upload = Upload({"id": "1"}, house.folder / evidence.file, "a.jpg", "image/jpeg", len(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gateway.central.client.connections.SentFile", Breaking)
        with pytest.raises(OSError, match="Input/output error"):
            await client.upload("/v1/camera/event/evidence", upload, key="k")
        await house.send(1)
    (row,) = await house.store.refused.page()
    assert row.lost
    assert client.state.reachable
    assert await house.at_central(central) == []
