"""Comparison of delivered records with central's. Records that central lacks are sent again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

import structlog

from gateway.central.client.lists import ListReader, PageOrder, PageSize, Tally
from gateway.central.push.delivered_record import RecordState, record_state
from gateway.central.push.upstream import Upstream
from gateway.central.site_cards import KIND
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.events import Event, EventKind
from gateway.domain.record_match import is_still, lookup_of, marks_of, names_source
from gateway.domain.writes import JsonObject
from gateway.runtime.supervision import Backoff
from gateway.store import Entry
from gateway.store.cards.rows import batches
from gateway.store.outbox.delivered_records import Kind

log = structlog.get_logger(__name__)

_NOTE = "to_reconcile"
_DAY = 86_400 * 1_000_000
_SIZES = ((500, 250, 100, 25), (400, 200, 80, 25))
"""Page sizes of two walks: a record that one walk skips between two pages is inside a page of the other."""
_AT_ONCE = 100


@dataclass(slots=True)
class _SentAgain:
    """Counts of what was sent again."""

    compared: int = 0
    cards: int = 0
    camera_events: int = 0
    entries: int = 0
    changes: int = 0
    files: int = 0

    def sentence(self) -> str:
        """Describe the counts in a sentence."""
        again = (
            (self.cards, "access cards"),
            (self.camera_events, "camera events"),
            (self.entries, "entries"),
            (self.changes, "changes of entries"),
            (self.files, "files"),
        )
        named = ", ".join(f"{count:,} {noun}" for count, noun in again if count)
        return f"{self.compared:,} records compared with central; sent again: {named or 'nothing'}"


@dataclass(slots=True)
class _Compared:
    """Records of one kind that central should have, and what its list showed. Ids are central's, if not said otherwise.

    Attributes:
        marks: each record's marks, by its id.
        site_ids: the site's id of each record, by central's.
        exits: the exit time of entries that have ended, by their ids.
        disowned: the site's ids of records whose id central gave to others.
        present: ids of records that central has.
        bare: those of them of which central showed no mark at all.
        names_sources: whether central tells the sources of records, so that a bare record is another one.
        open_there: ids of entries whose exit central lacks.
        files: the SHA-256 of the files that central shows with camera events, by the events' ids.
        oldest: the lowest id that central has at all; records below it were removed for their age.
    """

    marks: dict[int, JsonObject] = field(default_factory=dict)
    site_ids: dict[int, int] = field(default_factory=dict)
    exits: dict[int, str] = field(default_factory=dict)
    disowned: list[int] = field(default_factory=list)
    present: set[int] = field(default_factory=set)
    bare: set[int] = field(default_factory=set)
    names_sources: bool = False
    open_there: set[int] = field(default_factory=set)
    files: dict[int, frozenset[str]] = field(default_factory=dict)
    oldest: int = 0

    def missing(self) -> list[int]:
        """Return the ids of records that this site sent and central's list did not show, ascending."""
        present = self.present - self.bare if self.names_sources else self.present
        return sorted(number for number in self.marks.keys() - present if number >= self.oldest)

    def see(self, kind: str, central_id: int, record: JsonObject) -> None:
        """Note a record of central's list, if it is still the one that this site sent."""
        self.names_sources = self.names_sources or names_source(record)
        if central_id not in self.marks or not is_still(kind, self.marks[central_id], record):
            return
        self.present.add(central_id)
        if not is_still(kind, self.marks[central_id], record, names_sources=True):
            self.bare.add(central_id)
        if central_id in self.exits and record.get("exit_at") in (None, ""):
            self.open_there.add(central_id)
        files = record.get("evidence")
        if isinstance(files, list):
            self.files[central_id] = frozenset(str(item.get("sha256")) for item in files if isinstance(item, dict))


class Reconcile:
    """Comparison of cards made here, camera events with their files, and entries, when a technician asks for it.

    Records that are missing at central are queued again. A camera event or a card is missing if central does not have
    it when asked for it by id; an entry, if two walks over the list do not show it. If the list shows no entry of the
    site at all, the outbox searches for each entry before it sends it.
    """

    def __init__(self, upstream: Upstream, *, backoff: Backoff | None = None) -> None:
        self._client = upstream.client
        self._restore = upstream.restore
        self._store = upstream.store
        self._delivered_records = upstream.store.delivered_records
        self._notes = upstream.store.notes
        self._cards = upstream.cards
        self._clock = upstream.clock
        self._backoff = backoff or Backoff(first=2.0, longest=60.0)
        self._wanted = asyncio.Event()
        self._days = 0
        self.progress = ""
        self.result = ""

    @property
    def under_way(self) -> bool:
        """True while a comparison runs or is due."""
        return self._days > 0

    async def ask(self, days: int) -> None:
        """Order a comparison of the records of the last `days`, for as soon as central answers. Raises StoreError."""
        await self._notes.remember(_NOTE, str(days))
        self._days, self.result = days, ""
        self._wanted.set()
        self._store.changes.bump()

    async def run(self) -> None:
        """Run ordered comparisons, also one from before the last stop, until cancelled. Raises StoreError."""
        noted = await self._notes.remembered(_NOTE) or ""
        if noted.isdecimal() and not self._days:
            self._days = int(noted)
        failures = 0
        while True:
            if not self._days:
                await self._wanted.wait()
            self._wanted.clear()
            try:
                await self._reconcile(self._days)
                failures = 0
            except (CentralUnavailable, CentralRefused) as error:
                failures += 1
                self._report_progress(f"waits for central: {error}")
                await asyncio.sleep(self._backoff.wait(failures))

    async def _reconcile(self, days: int) -> None:
        sent = _SentAgain()
        since = self._clock.wall().micros - days * _DAY
        await self._make_cards_again(sent)
        await self._compare("camera_event", since, sent)
        await self._compare("entry", since, sent)
        await self._restore.on_reconciled()
        now = self._clock.wall()
        event = Event(
            kind=EventKind.CENTRAL_RECONCILED,
            date_at=now.micros,
            clock_trusted=now.trusted,
            text=sent.sentence(),
        )
        await self._store.journal.record(Entry(events=(event,)))
        await self._notes.remember(_NOTE, "")
        self._days, self.result = 0, sent.sentence()
        self._report_progress("")

    async def _make_cards_again(self, sent: _SentAgain) -> None:
        compared = _Compared()
        for some in batches(await self._delivered_records.cards(), _AT_ONCE):
            for number, text in (await self._store.cards.records_of(some)).items():
                compared.marks[number] = marks_of(KIND, json.loads(text))
        sent.compared += len(compared.marks)
        if compared.marks:
            await self._walk(KIND, PageSize(_SIZES[0]), compared)
        compared.oldest = 0  # cards are not removed for their age
        gone = [
            central_id
            for central_id in compared.missing()
            if await record_state(self._client, KIND, central_id, compared.marks[central_id])
            in (RecordState.GONE, RecordState.OTHER)
        ]
        # All at once: central may give the first card that is created again an id that another still has here.
        async with self._cards.turn:
            records = dict[int, JsonObject]()
            for central_id in gone:
                record = await self._cards.record(central_id)
                if record is not None and is_still(KIND, compared.marks[central_id], record):
                    records[central_id] = record
            sent.cards += len(await self._cards.make_again(records))

    async def _compare(self, kind: Kind, since: int, sent: _SentAgain) -> None:
        compared = await self._known(kind, since)
        sent.compared += len(compared.marks) + len(compared.disowned)
        for sizes in _SIZES:
            if compared.missing():
                await self._walk(kind, PageSize(sizes), compared)
        missing = compared.missing()
        proven, doubtful = missing, list[int]()
        if kind == "camera_event":
            proven, doubtful = await self._asked(missing, compared)
        elif missing and not compared.present:
            proven, doubtful = [], missing
        site_ids = compared.site_ids
        again = await self._send(kind, [site_ids[number] for number in proven] + compared.disowned, doubtful=False)
        again += await self._send(kind, [site_ids[number] for number in doubtful], doubtful=True)
        if kind == "camera_event":
            sent.camera_events += again
            sent.files += await self._send_files(compared)
        else:
            sent.entries += again
            for some in batches([site_ids[number] for number in sorted(compared.open_there)], _AT_ONCE):
                records = await self._delivered_records.of(kind, some)
                now = self._clock.wall().micros
                sent.changes += await self._delivered_records.send_changes_again(kind, records, now=now)

    async def _known(self, kind: Kind, since: int) -> _Compared:
        compared, behind = _Compared(), 0
        while records := await self._delivered_records.since(kind, since, behind=behind):
            behind = records[-1].id
            for record in records:
                if record.central_id is None:
                    compared.disowned.append(record.id)
                    continue
                compared.marks[record.central_id] = marks_of(kind, record.body)
                compared.site_ids[record.central_id] = record.id
                ended = next((change["exit_at"] for change in record.changes if "exit_at" in change), None)
                if isinstance(ended, str):
                    compared.exits[record.central_id] = ended
            await asyncio.sleep(0)
        return compared

    async def _walk(self, kind: str, size: PageSize, compared: _Compared) -> None:
        """Read central's list; if the newest come first, only down to the lowest wanted id."""
        lookup, lowest, falling = lookup_of(kind), min(compared.marks), True
        tally = Tally(lookup.resource)
        reader = ListReader(client=self._client, lookup=lookup, tally=tally, size=size)
        async with aclosing(reader.pages()) as pages:
            async for page in pages:
                falling = falling and page.order is PageOrder.NEWEST_FIRST
                for place, (number, record) in enumerate(page.records.items(), start=1):
                    compared.see(kind, number, record)
                    if place % _AT_ONCE == 0:
                        await asyncio.sleep(0)
                self._report_progress(f"{lookup.resource}: {len(tally.ids):,} looked at")
                if falling and min(page.records) < lowest:
                    return
        compared.oldest = min(tally.ids, default=0)

    async def _asked(self, missing: Sequence[int], compared: _Compared) -> tuple[list[int], list[int]]:
        """Ask central for each camera event that the list lacks; return those that are gone, and those unknown."""
        gone, unsaid = list[int](), list[int]()
        for place, number in enumerate(missing, start=1):
            self._report_progress(f"asked for {place:,} of {len(missing):,} that the list lacks")
            marks, sources = compared.marks[number], compared.names_sources
            match await record_state(self._client, "camera_event", number, marks, names_sources=sources):
                case RecordState.GONE | RecordState.OTHER:
                    gone.append(number)
                case RecordState.UNKNOWN:
                    unsaid.append(number)
                case RecordState.PRESENT:
                    compared.present.add(number)
        return gone, unsaid

    async def _send(self, kind: Kind, site_ids: Sequence[int], *, doubtful: bool) -> int:
        again = 0
        for some in batches(sorted(site_ids), _AT_ONCE):
            records = await self._delivered_records.of(kind, some)
            now = self._clock.wall().micros
            again += await self._delivered_records.send_again(kind, records, now=now, doubtful=doubtful)
        return again

    async def _send_files(self, compared: _Compared) -> int:
        """Queue delivered files again that central does not show with their camera event; return their number."""
        again = 0
        for number, shown in compared.files.items():
            delivered = await self._delivered_records.evidence_of(compared.site_ids[number])
            lost = [evidence_id for evidence_id, digest in delivered if digest not in shown]
            if lost:
                again += await self._delivered_records.send_files_again(lost, now=self._clock.wall().micros)
        return again

    def _report_progress(self, text: str) -> None:
        self.progress = text
        self._store.changes.bump()
