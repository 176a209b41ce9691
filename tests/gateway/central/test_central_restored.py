"""Central is restored from a backup: the site notices, keeps what it made, and sends again what central lacks."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
from waiting import until
from wired import central_of, down_sync, sync_loop

from gateway.central.central_link import CentralLink
from gateway.central.client.client import CentralClient
from gateway.central.client.session import GatewayAccount
from gateway.central.pull.pull import DownSync
from gateway.central.push.evidence import EvidenceSender
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.reconcile import Reconcile
from gateway.central.push.writes import CentralWrites
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import Evidence, KeptAs
from gateway.domain.passages import Moment, Passage, PassageOutcome
from gateway.domain.writes import CARD_CREATE, CARD_DELETE, CARD_LIFECYCLE, CARD_UPDATE, DEVICE_CREATE, ENTRY_CREATE
from gateway.recording.evidence_files import LostEvidence
from gateway.runtime.clock import SystemClock, WallTimes, iso_utc
from gateway.runtime.supervision import Backoff
from gateway.store import Entry, EventFilter
from simulation.far_ends.central import Central, CentralAccount, Faults, seed_site

LOST = {"number": "8801", "holder_name": "Lena", "uid": "04AABB"}
NEWER = {"number": "8802", "holder_name": "Nora", "status": "active"}
SOON = Backoff(first=0.02, longest=0.1)
SECOND = 1_000_000


class Site:
    """A site whose central can be restored from a backup."""

    def __init__(self, store, folder):
        self.clock = SystemClock()
        self.store, self.folder = store, folder
        self.now = self.clock.wall().micros
        self.central = None
        self.made = 0

    async def start_central(self, data, port=0):
        self.central = Central(
            clock=self.clock, accounts=(CentralAccount("gateway", "right horse"),), data=data, page_cap=25
        )
        if not data.exists():
            seed_site(
                self.central.tables,
                now=self.clock.wall(),
                devices={101: "Gate", 102: "Reader"},
                cameras={201: "Camera"},
                cards=30,
            )
        else:
            self.central.tables.load(data)
        await self.central.start(port=port)

    async def begin(self):
        await self.start_central(self.folder / "central.json")
        clock, store = self.clock, self.store
        self.client = CentralClient(url=self.central.url, account=GatewayAccount("gateway", "right horse"), clock=clock)
        central = central_of(client=self.client, store=store, clock=clock, may_take=0)
        self.down = DownSync(central)
        self.sender = OutboxSender(central, row_backoff=SOON, away_backoff=SOON)
        self.writes = CentralWrites(central.cards, sender=self.sender)
        files = LostEvidence(
            rows=store.evidence, journal=store.journal, clock=clock, folder=self.folder, ready=lambda: None
        )
        self.evidence = EvidenceSender(central, files=files, backoff=SOON, spread_seconds=0)
        self.reconcile = Reconcile(central, backoff=SOON)
        self.sync = sync_loop(
            client=self.client, down=self.down, sender=self.sender, store=store, clock=clock, pull_seconds=0.5,
            evidence=self.evidence, reconcile=self.reconcile,
        )  # fmt: skip

    async def backup(self):
        """Stop central, so that all of it is on its disk, and copy its file."""
        port = self.central.port
        await self.central.stop()
        shutil.copy(self.folder / "central.json", self.folder / "backup.json")
        await self.start_central(self.folder / "central.json", port)

    async def restore(self):
        port = self.central.port
        await self.central.stop()
        shutil.copy(self.folder / "backup.json", self.folder / "central.json")
        await self.start_central(self.folder / "central.json", port)

    async def passes(self, *, direction="entry", card_id=None):
        """A vehicle passes, with footage; returns the camera event's id."""
        self.made += 1
        at = self.now - 3600 * SECOND + self.made * SECOND
        event = Event(
            EventKind.VEHICLE_PASSED, at, clock_trusted=True, text=f"{self.made}", device_id=101, lane_id="north"
        )
        passage = Passage(
            lane_id="north", direction=direction, outcome=PassageOutcome.PASSED, started_at=at - 5, ended_at=at,
            clock_trusted=True, card_id=card_id, credential=f"text:{self.made}", reason="", plate="",
        )  # fmt: skip
        moment = Moment(201, f"passage {self.made}", "", at - 5, at + 5, clock_trusted=True)
        recorded = await self.store.journal.record(Entry(events=(event,), passage=passage, moments=(moment,)))
        return recorded.camera_event_ids[0]

    async def enters(self):
        """A vehicle enters by a lane without a camera."""
        self.made += 1
        at = self.now - 3600 * SECOND + self.made * SECOND
        event = Event(EventKind.VEHICLE_PASSED, at, clock_trusted=True, text=f"{self.made}", device_id=101)
        passage = Passage(
            lane_id="north", direction="entry", outcome=PassageOutcome.PASSED, started_at=at - 5, ended_at=at,
            clock_trusted=True, card_id=None, credential=f"text:{self.made}", reason="", plate="",
        )  # fmt: skip
        await self.store.journal.record(Entry(events=(event,), passage=passage))

    async def add_file(self, camera_event_id, content):
        digest = hashlib.sha256(content).hexdigest()
        (self.folder / digest).write_bytes(content)
        draft = Evidence(
            id=0, camera_event_id=camera_event_id, name="scene.jpg", description="", kept_as=KeptAs.INCIDENT,
            media_type="image/jpeg", size=len(content), sha256=digest, file=digest, created_at=self.now,
            clock_trusted=True, username="chief",
        )  # fmt: skip
        told = Event(EventKind.EVIDENCE_ADDED, self.now, clock_trusted=True, text="Evidence came.")
        await self.store.evidence.add(draft, event=told, most=9)

    async def go_up(self):
        async def sent():
            await self.store.outbox.retry_now()
            await self.sender.send_due()
            await self.evidence.send_due()
            return not (await self.store.outbox.books()).waiting

        await until(sent)
        books = await self.store.outbox.books()
        assert (books.waiting, books.parked, books.balance()) == (0, 0, True)

    async def told(self, kind):
        return [event.description for event in (await self.store.events.page(EventFilter(types=(int(kind),)))).events]

    async def told_in_doubt(self):
        """Return the site's ids of camera events, and ids of cards, that central may have lost."""
        events = {event.central_id: event.id for event in (await self.store.camera_events.page(limit=500)).events}
        doubted = await self.store.pending_writes.in_doubt("camera_event", events)
        cards = await self.store.pending_writes.in_doubt("access_card", await self.store.cards.central_ids())
        return {events[number] for number in doubted} | cards

    def notices(self):
        link = CentralLink(
            client=self.client,
            down=self.down,
            sync=self.sync,
            made_at=0.0,
            wall_times=WallTimes(SystemClock()),
            password_in="",
        )
        return tuple(str(notice.text) for notice in link.snapshot().notices)

    async def has_all_once(self):
        """Central holds every camera event, entry and file of the site, each once."""
        books = self.central.record_counts()
        assert books.doubles() == ()
        events = await self.store.camera_events.page(limit=1)
        assert len(books.camera_events) == events.count == self.made
        with_passage = {number for _, number in books.entries}
        assert len(with_passage) == len(books.entries)
        return books


@pytest.fixture
async def site(store, tmp_path):
    folder = tmp_path / "beside"
    folder.mkdir()
    made = Site(store, folder)
    await made.begin()
    yield made
    await made.client.close()
    await made.central.stop()


async def reconcile(site, running, days=30):
    async with running(site.reconcile.run()):
        await site.sync.reconcile(days=days)
        await until(lambda: not site.sync.reconciling)
    return site.sync.reconciled


async def make_card(site, number):
    written = await site.writes.write(CARD_CREATE, {"number": number, "status": "active", "holder_name": f"H{number}"})
    return written.record_id


async def test_what_central_lost_with_a_restore_is_sent_again_once(site, running):
    store = site.store
    old_card = await make_card(site, "8800")
    for _ in range(12):
        await site.passes()
    kept = await site.passes(card_id=old_card)
    await site.go_up()
    await site.down.pull()
    await site.backup()
    before = len(site.central.record_counts().camera_events)
    new_card = await make_card(site, "8801")
    lost = [await site.passes() for _ in range(20)]
    lost.append(await site.passes(direction="exit", card_id=old_card))  # the end of an entry that the backup has
    inside = await site.passes(card_id=new_card)
    await site.add_file(kept, b"of an event that the backup has")
    await site.add_file(lost[0], b"of an event that it lacks")
    await site.go_up()
    await site.down.pull()
    assert await site.told(EventKind.CENTRAL_SET_BACK) == []
    assert site.notices() == ()
    whole = await site.has_all_once()
    assert not await site.told_in_doubt()

    await site.restore()
    others = [
        site.central.tables.camera_events.add({"camera_id": 9, "date_at": "2026-01-01T00:00:00Z", "source_name": "B"})
        for _ in range(5)
    ]
    other_card = site.central.tables.cards.add({"number": "4711", "status": "active", "holder_name": "Other"})
    assert other_card["id"] == new_card, "central gives the card's id again"
    for _ in range(2):
        await site.down.pull()
        assert await store.cards.matching(["text:8801"])
        assert {*lost, inside, new_card} <= await site.told_in_doubt(), "nothing that is lost is told as in step"
    assert len(site.central.record_counts().camera_events) < before + len(others)
    (told,) = await site.told(EventKind.CENTRAL_SET_BACK)
    assert "sync reconcile" in told
    assert "older state" in site.notices()[0]
    assert json.loads((await store.cards.get(new_card)).record)["number"] == "8801", "the card that was made here stays"
    assert await store.cards.matching(["text:8801"])

    said = await reconcile(site, running)
    assert f"{len(lost) + 1} camera events" in said
    assert "1 access cards" in said
    await site.go_up()
    await site.down.pull()
    books = await site.has_all_once()
    assert books.camera_events.keys() == whole.camera_events.keys()
    assert books.entries.keys() == whole.entries.keys()
    assert len(books.evidence) == len(whole.evidence) == 2
    assert site.central.record_counts().doubles() == ()
    numbers = [card.get("number") for card in site.central.cards.values()]
    assert [numbers.count(number) for number in ("8800", "8801", "4711")] == [1, 1, 1]
    assert not await site.told_in_doubt()
    (again,) = await store.cards.matching(["text:8801"])
    assert json.loads((await store.cards.get(other_card["id"])).record)["number"] == "4711"
    ended = [entry for entry in site.central.entries if entry.get("access_id") == old_card]
    assert [bool(entry["exit_at"]) for entry in ended] == [True]
    (entered,) = [entry for entry in site.central.entries if entry.get("access_id") == again.card_id]
    assert entered["source_id"], inside
    assert site.notices() == ()
    assert len(await site.told(EventKind.CENTRAL_SET_BACK)) == 1
    assert len(await site.told(EventKind.CENTRAL_RECONCILED)) == 1

    accepted = (await store.outbox.books()).accepted
    said = await reconcile(site, running)
    assert "sent again: nothing" in said
    assert (await store.outbox.books()).accepted == accepted
    await site.down.pull()
    assert site.notices() == ()


async def test_reconciling_a_central_that_lacks_nothing_sends_nothing(site, running):
    for _ in range(30):
        await site.passes()
    await make_card(site, "8800")
    await site.go_up()
    accepted = (await site.store.outbox.books()).accepted
    said = await reconcile(site, running)
    assert said == "61 records compared with central; sent again: nothing"
    assert (await site.store.outbox.books()).accepted == accepted


async def test_a_restore_is_noticed_without_cameras_and_across_a_restart(site, store):
    site_of_gates = [Passage(
        lane_id="north", direction="entry", outcome=PassageOutcome.PASSED, started_at=site.now - 5, ended_at=site.now,
        clock_trusted=True, card_id=None, credential=f"text:{number}", reason="", plate="",
    ) for number in range(4)]  # fmt: skip
    await site.backup()
    for passage in site_of_gates:
        event = Event(EventKind.VEHICLE_PASSED, site.now, clock_trusted=True, text="", device_id=101)
        await store.journal.record(Entry(events=(event,), passage=passage))
    await site.go_up()
    await site.down.pull()
    assert site.notices() == ()
    await site.restore()
    for _ in range(2):
        await site.down.pull()
    assert len(site.notices()) == 1
    site.down = down_sync(client=site.client, store=store, clock=site.clock)
    await site.down.pull()
    assert len(site.notices()) == 1
    assert len(await site.told(EventKind.CENTRAL_SET_BACK)) == 1


async def test_an_id_that_falls_back_shows_a_restore_before_the_next_pull(site):
    for _ in range(3):
        await site.passes()
    await site.go_up()
    await site.down.pull()
    await site.backup()
    for _ in range(5):  # another site's records: their ids are the first that central gives again
        site.central.tables.camera_events.add({"camera_id": 9, "date_at": "2026-01-01T00:00:00Z", "source_name": "B"})
        site.central.tables.entries.add({"device_id": 9, "type": "entry", "date_at": "2026-01-01T00:00:00Z"})
    lost = {await site.passes() for _ in range(4)}
    await site.go_up()
    await site.down.pull()
    await site.restore()
    assert not await site.told_in_doubt()
    await site.passes()
    await site.go_up()
    assert await site.told(EventKind.ID_GIVEN_TWICE) == []
    assert lost <= await site.told_in_doubt()
    assert await site.told(EventKind.CENTRAL_SET_BACK) == [], "a second search has to miss them too"
    await site.down.pull()
    assert len(await site.told(EventKind.CENTRAL_SET_BACK)) == 1


def others_take(table, ids, **fields):
    """Another site's records get these ids."""
    table.next_id = min(ids)
    for _ in ids:
        table.add({"source_name": "B", "date_at": "2026-01-01T00:00:00Z", **fields})


async def noticed(site):
    """Pull as often as a restore needs to be noticed; return whether it was."""
    for _ in range(3):
        await site.down.pull()
    return any("older state" in notice for notice in site.notices())


@pytest.mark.parametrize("lost", [2, 5])
@pytest.mark.parametrize("kind", ["camera_event", "entry"])
async def test_lost_ids_that_others_have_by_now_are_noticed_below_newer_records(site, kind, lost):
    lane_alone = kind == "entry"
    for _ in range(5):
        await (site.enters() if lane_alone else site.passes())
    await site.go_up()
    await site.backup()
    events, entries = site.central.tables.camera_events, site.central.tables.entries
    before = set(events), set(entries)
    for _ in range(lost):
        await (site.enters() if lane_alone else site.passes())
    await site.go_up()
    await site.down.pull()
    gone = set(site.central.tables.camera_events) - before[0], set(site.central.tables.entries) - before[1]
    await site.restore()
    if gone[0]:
        others_take(site.central.tables.camera_events, gone[0], camera_id=9)
    others_take(site.central.tables.entries, gone[1], device_id=9, type="entry")
    for _ in range(4):
        await (site.enters() if lane_alone else site.passes())
    await site.go_up()
    assert await site.told(EventKind.ID_GIVEN_TWICE) == []
    assert await noticed(site)
    assert len(await site.told(EventKind.CENTRAL_SET_BACK)) == 1


def central_tells(site, text):
    site.made += 1
    site.central.tables.events.add(
        {"device_id": 101, "type": 1, "category": 1, "subcategory": 0, "name": text, "description": "", "data": "",
         "date_at": iso_utc(site.now + site.made * SECOND)}
    )  # fmt: skip


@pytest.mark.parametrize("taken", [False, True], ids=["ids are free", "others have the ids"])
async def test_a_restore_is_noticed_where_there_are_cards_alone(site, store, running, taken):
    central_tells(site, "before")
    await site.backup()
    central_tells(site, "after")
    made = {await make_card(site, number) for number in ("8801", "8802")}
    await site.down.pull()
    assert not await noticed(site)
    await site.restore()
    if taken:
        central_tells(site, "of a new life")
        central_tells(site, "and one more")
        others_take(site.central.tables.cards, made, number="4711", status="active")
    assert await noticed(site)
    for number in ("8801", "8802"):
        assert await store.cards.matching([f"text:{number}"])
    assert "2 access cards" in await reconcile(site, running)
    await site.go_up()
    assert not await noticed(site)
    numbers = [card.get("number") for card in site.central.cards.values()]
    assert [numbers.count(number) for number in ("8801", "8802")] == [1, 1]


@pytest.mark.parametrize("filmed", [False, True], ids=["entries alone", "camera events too"])
async def test_a_single_lost_entry_is_enough_and_its_card_stays(site, store, running, filmed):
    """The interface has no operation that removes an entry: one that is gone went with all that came after it."""
    for _ in range(3):
        await (site.passes() if filmed else site.enters())
    await site.go_up()
    await site.down.pull()
    await site.backup()
    card = await make_card(site, "8801")
    await site.passes(card_id=card)
    await site.go_up()
    await site.down.pull()
    await site.restore()
    for _ in range(3):
        await site.down.pull()
        assert await store.cards.matching(["text:8801"])
    assert "older state" in site.notices()[0]
    assert "1 access cards" in await reconcile(site, running)
    await site.go_up()
    await site.down.pull()
    (again,) = await store.cards.matching(["text:8801"])
    assert [one["access_id"] for one in site.central.entries if one.get("access_id")] == [again.card_id]
    assert site.central.cards[again.card_id]["number"] == "8801"
    assert site.notices() == ()


@pytest.mark.parametrize("deny", ["", "can_view_events"])
async def test_cards_that_a_person_deleted_at_central_go_here_too(site, store, deny):
    central_tells(site, "before")
    made = [await make_card(site, number) for number in ("8801", "8802")]
    await site.down.pull()
    site.central.faults = Faults(deny=deny)
    central_tells(site, "a person was here")
    for number in made:
        site.central.tables.cards.remove(number)
    assert not await noticed(site)
    assert await site.told(EventKind.CENTRAL_SET_BACK) == []
    assert not await store.cards.matching(["text:8801", "text:8802"])


async def test_looking_for_lost_records_takes_two_requests_at_most(site, monkeypatch):
    for _ in range(5):
        await site.passes()
    await site.go_up()
    await site.down.restore.check()
    asked = []
    call = site.client.call

    async def counted(method, path, *args, **more):
        asked.append(path)
        return await call(method, path, *args, **more)

    monkeypatch.setattr(site.client, "call", counted)
    await site.down.restore.check()
    assert len(asked) == 1
    for _ in range(5):
        await site.passes()
    await site.go_up()
    asked.clear()
    await site.down.restore.check()
    assert len(asked) == 2


async def test_one_record_that_was_deleted_at_central_is_no_restore(site):
    for _ in range(5):
        await site.passes()
    await site.go_up()
    site.central.tables.camera_events.remove(max(site.central.tables.camera_events))
    for _ in range(3):
        await site.down.pull()
    assert site.notices() == ()


async def test_what_went_at_central_for_its_age_is_not_sent_again(site, running):
    for _ in range(10):
        await site.passes()
    await site.go_up()
    for table in (site.central.tables.camera_events, site.central.tables.entries):
        for number in sorted(table)[:4]:
            table.remove(number)
    assert "sent again: nothing" in await reconcile(site, running)


async def test_comparing_goes_on_after_central_was_away(site, store, running):
    for _ in range(5):
        await site.passes()
    await site.backup()
    await site.go_up()
    await site.restore()
    port = site.central.port
    await site.central.stop()
    async with running(site.reconcile.run()):
        await site.sync.reconcile(days=30)
        await until(lambda: "waits for central" in site.reconcile.progress)
        assert site.sync.reconciling
        await site.start_central(site.folder / "central.json", port)
        await until(lambda: not site.sync.reconciling)
    await site.go_up()
    await site.has_all_once()


async def test_cards_that_go_up_again_take_no_ids_from_those_that_are_still_to_go(site, running):
    await site.backup()
    numbers = [f"88{number:02}" for number in range(12)]
    for number in numbers:
        await make_card(site, number)
    await site.restore()
    for number in range(5):  # so that the first card that goes up gets the id of the sixth
        site.central.tables.cards.add({"number": f"47{number}", "status": "active"})
    site.central.faults = Faults(paths="/v1/access", latency_seconds=0.05)

    async def told(_):
        pass

    async with running(site.sender.run(told)):
        assert "12 access cards" in await reconcile(site, running)
    await site.go_up()
    assert await site.told(EventKind.ID_GIVEN_TWICE) == []
    at_central = [card.get("number") for card in site.central.cards.values()]
    assert [at_central.count(number) for number in numbers] == [1] * 12
    for number in numbers:
        assert await site.store.cards.matching([f"text:{number}"])


async def test_an_entry_that_goes_up_again_names_its_card_by_whichever_id_it_has_it(site, running):
    await site.backup()
    held = await site.store.pending_writes.hold(CARD_CREATE, None, {"number": "8800"}, now=site.now, sends=True)
    await site.go_up()
    came = {
        "device_id": 101,
        "type": "entry",
        "date_at": iso_utc(site.now - 3600 * SECOND),
        "access_id": held.record_id,
    }
    await site.store.pending_writes.hold(ENTRY_CREATE, None, came, now=site.now, sends=True)
    await site.go_up()
    # As when the entry was on its way to the disk while its card got central's id.
    kept = "UPDATE parking_entry SET card_id = ?"
    await site.store.database.write(lambda connection: connection.execute(kept, (held.record_id,)))
    await site.restore()
    for number in range(5):
        site.central.tables.cards.add({"number": f"47{number}", "status": "active"})
    await reconcile(site, running)
    await site.go_up()
    (card,) = [number for number, card in site.central.cards.items() if card.get("number") == "8800"]
    assert [entry["access_id"] for entry in site.central.entries] == [card]


@pytest.mark.parametrize("through", [True, False])
async def test_a_new_card_that_gets_a_lost_ones_id_leaves_both_whole(site, store, through):
    await site.backup()
    lost = (await site.writes.write(CARD_CREATE, {**LOST, "status": "active"})).record_id
    await site.passes(card_id=lost)
    await site.restore()
    if not through:
        site.central.faults = Faults(down=True)
        with pytest.raises(CentralUnavailable):
            await site.client.look()
    made = await site.writes.write(CARD_CREATE, NEWER)
    if not through:
        await site.writes.write(CARD_UPDATE, {"id": lost, "note": "of the lost one"})
    site.central.faults = Faults()
    assert made.waits is not through
    await site.go_up()
    assert await store.pending_writes.site_id("access_card", made.record_id) == lost
    at_central = {card["number"]: card for card in site.central.cards.values()}
    assert at_central["8801"].items() >= LOST.items()
    assert at_central["8802"]["id"] == lost
    assert not at_central["8802"].get("uid")
    (ours,) = await store.cards.matching(["text:8801"])
    assert json.loads((await store.cards.get(ours.card_id)).record).items() >= LOST.items()
    assert ours.card_id == at_central["8801"]["id"]
    assert through or at_central["8801"]["note"] == "of the lost one"
    (newer,) = await store.cards.matching(["text:8802"])
    record = json.loads((await store.cards.get(newer.card_id)).record)
    assert (newer.card_id, record["holder_name"]) == (lost, "Nora")
    assert not record.get("uid")
    assert not record.get("note")
    (told,) = await site.told(EventKind.ID_GIVEN_TWICE)
    assert f"the id {lost}" in told
    await site.down.pull()
    assert await store.cards.count() == len(site.central.cards)


async def lose_answer(site, operation, body):
    """Create a record at central whose answer is lost."""
    await site.client.call("POST", "/v1/device/list", {"page": 1, "page_limit": 1})  # signs in
    site.central.faults = Faults(paths=operation.path, lost_answers=1)
    made = await site.writes.write(operation, body)
    assert made.waits
    site.central.faults = Faults()
    return made.record_id


@pytest.mark.parametrize("pulled", [False, True])
async def test_a_create_whose_answer_is_lost_is_found_under_a_lost_cards_id(site, store, pulled):
    await site.backup()
    lost = (await site.writes.write(CARD_CREATE, {**LOST, "status": "active"})).record_id
    await site.restore()
    made = await lose_answer(site, CARD_CREATE, NEWER)
    assert site.central.cards[lost]["number"] == "8802"
    if pulled:
        await site.down.pull()
    await site.go_up()
    assert await store.pending_writes.site_id("access_card", made) == lost
    at_central = [card.get("number") for card in site.central.cards.values()]
    assert [at_central.count(number) for number in ("8801", "8802")] == [1, 1]
    for number in ("8801", "8802"):
        assert await store.cards.matching([f"text:{number}"])


@pytest.mark.parametrize("newest", [True, False])
async def test_a_device_whose_answer_is_lost_is_found_under_a_lost_ones_id(site, store, newest):
    await site.backup()
    lost = (await site.writes.write(DEVICE_CREATE, {"name": "Kiosk"})).record_id
    await site.restore()
    made = await lose_answer(site, DEVICE_CREATE, {"name": "Booth"})
    assert site.central.tables.devices[lost]["name"] == "Booth"
    if not newest:
        site.central.tables.devices.add({"name": "Of another"})
    await site.go_up()
    assert await store.pending_writes.site_id("device", made) == lost
    assert [device["name"] for device in site.central.tables.devices.values()].count("Booth") == 1


@pytest.mark.parametrize("waits", [True, False])
async def test_a_change_of_a_lost_card_lets_the_card_go_up_again(site, store, waits):
    await site.backup()
    lost = (await site.writes.write(CARD_CREATE, {**LOST, "status": "active"})).record_id
    for _ in range(3):
        await site.passes()
    await site.go_up()
    await site.down.pull()
    if waits:
        site.central.faults = Faults(down=True)
        with pytest.raises(CentralUnavailable):
            await site.client.look()
    else:
        await site.restore()
    changed = await site.writes.write(CARD_UPDATE, {"id": lost, "note": "of the lost one"})
    assert changed.waits
    if waits:
        site.central.faults = Faults()
        await site.restore()
    await site.go_up()
    (there,) = [card for card in site.central.cards.values() if card.get("number") == "8801"]
    assert there.items() >= {**LOST, "note": "of the lost one"}.items()
    (ours,) = await store.cards.matching(["text:8801"])
    assert ours.card_id == there["id"]


async def test_a_change_of_a_card_that_was_deleted_at_central_is_dropped(site, store):
    card = await make_card(site, "8801")
    for _ in range(3):
        await site.passes()
    await site.go_up()
    site.central.tables.cards.remove(card)
    with pytest.raises(CentralRefused):
        await site.writes.write(CARD_UPDATE, {"id": card, "note": "too late"})
    assert not await store.cards.matching(["text:8801"])


def others_cards(site, count):
    """Somebody else's cards get the ids that central gives next."""
    made = [
        site.central.tables.cards.add(
            {"number": f"70{number:03d}", "status": "active", "holder_name": f"Other {number}"}
        )
        for number in range(count)
    ]
    return {card["id"]: dict(card) for card in made}


async def settle_down(site):
    """Send what is due until nothing is, whatever waits for a person or for a reconciliation."""
    for _ in range(10):
        await site.store.outbox.retry_now()
        await site.sender.send_due()
        await site.evidence.send_due()


@pytest.mark.parametrize("when", ["waited for central", "made after the restore"])
async def test_no_change_of_a_lost_card_reaches_the_card_that_has_its_id_now(site, store, running, when):
    for _ in range(3):
        await site.passes()
    await site.go_up()
    await site.backup()
    lost, deleted, renamed, untouched = [await make_card(site, f"99{number:03d}") for number in range(4)]
    for _ in range(3):
        await site.passes()
    await site.go_up()
    await site.down.pull()

    async def change():
        await site.writes.write(CARD_LIFECYCLE, {"id": lost, "status": "lost"})
        await site.writes.write(CARD_DELETE, {"id": deleted})
        await site.writes.write(CARD_UPDATE, {"id": renamed, "holder_name": "Renamed", "number": "88888"})

    if when == "waited for central":
        port = site.central.port
        await site.central.stop()
        await change()
        await site.central.start(port=port)
    await site.restore()
    others = others_cards(site, 4)
    assert set(others) == {lost, deleted, renamed, untouched}
    for _ in range(3):
        await site.passes()  # and camera events take the ids of lost ones again
    if when == "made after the restore":
        await noticed(site)
        await change()
    await settle_down(site)
    await noticed(site)
    await reconcile(site, running)
    await site.go_up()
    await site.down.pull()
    cards = site.central.cards
    assert {number: cards.get(number) for number in others} == others, "the cards of others are as they were"
    own = {card["number"]: card for card in cards.values() if card["number"][:2] in ("99", "88")}
    assert sorted(own) == ["88888", "99000", "99003"]
    assert own["99000"]["status"] == "lost"
    assert own["88888"]["holder_name"] == "Renamed"
    for number, there in (("99000", 1), ("99001", 0), ("88888", 1), ("99003", 1)):
        assert len(await store.cards.matching([f"text:{number}"])) == there, number


@pytest.mark.parametrize("ids", ["given to others", "free"])
async def test_an_exit_of_a_lost_entry_reaches_no_other_and_comes_with_the_entry(site, running, ids):
    for _ in range(3):
        await site.enters()
    await site.go_up()
    await site.backup()
    card = await make_card(site, "99000")
    for _ in range(3):
        await site.passes(card_id=card)
    await site.go_up()
    await site.down.pull()
    newest = max(site.central.tables.entries)
    port = site.central.port
    await site.central.stop()
    await site.passes(direction="exit", card_id=card)
    await site.central.start(port=port)
    await site.restore()
    if ids == "given to others":
        while max(site.central.tables.entries) < newest:
            entry = {"device_id": 9, "type": "entry", "plate": "OTHER", "date_at": "2026-01-01T00:00:00Z"}
            site.central.tables.entries.add(entry)
    await settle_down(site)
    await noticed(site)
    others = [entry for entry in site.central.entries if entry.get("plate") == "OTHER"]
    assert [entry.get("exit_at") for entry in others] == [None] * len(others)
    await reconcile(site, running)
    await site.go_up()
    others = [entry for entry in site.central.entries if entry.get("plate") == "OTHER"]
    assert [entry.get("exit_at") for entry in others] == [None] * len(others)
    assert site.central.record_counts().doubles() == ()
    own = [entry for entry in site.central.entries if entry.get("source_id")]
    assert len(own) == 6
    assert sum(bool(entry.get("exit_at")) for entry in own) == 1


@pytest.mark.parametrize("others", [{"type": "entry", "plate": "OTHER"}, {"type": "entry", "device_id": 9}])
async def test_lost_entries_whose_ids_bare_records_of_others_have_go_up_again(site, store, running, others):
    for _ in range(3):
        await site.enters()
    await site.go_up()
    await site.backup()
    before = set(site.central.tables.entries)
    for _ in range(4):
        await site.enters()
    await site.go_up()
    gone = set(site.central.tables.entries) - before
    await site.restore()
    others_take(site.central.tables.entries, gone, **others)
    assert await noticed(site)
    await reconcile(site, running)
    waiting = (await store.outbox.books()).waiting
    assert waiting == len(gone), "none that central lacks counts as there"
    await site.go_up()
    assert len(site.central.record_counts().entries) == site.made
