"""Search for records that this site has sent, and that a central restored from a backup lacks.

The search looks at the site's newest records, and at those that were newest at the last search: since then, other
records may have taken the lost ids, and newer records of this site may be above them. Camera events are used; if there
are none of late, entries; if there are none either, cards that were made here. A camera event or a card may be missing
because a person deleted it: then entries must be missing too, or central's log of events must be older. The interface
has no operation that removes an entry, so a single missing entry is enough.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from gateway.central.client.answers import CentralFailed
from gateway.central.client.client import CentralClient
from gateway.central.client.lists import NoList, PageOrder, page_of, read_page
from gateway.central.client.not_found import NOT_FOUND, doubt
from gateway.central.client.values import whole_of
from gateway.central.push.delivered_record import RecordState, record_state
from gateway.central.push.requests import answered_record
from gateway.domain.errors import CentralRefused
from gateway.domain.record_match import is_still, lookup_of, marks_of, names_source
from gateway.domain.writes import JsonObject, alike
from gateway.runtime.clock import Clock
from gateway.store import Store
from gateway.store.cards.rows import Notes
from gateway.store.outbox.delivered_records import DeliveredRecord, Kind

_NEWEST = 3
_FEWEST = 2
"""The fewest missing camera events or cards that count: a single one may have been deleted at central."""
_RECENT = 7 * 86_400 * 1_000_000
_PAGE = 100
_CARDS_LOOKED_AT = 100
_KINDS: Final[tuple[Kind, ...]] = ("camera_event", "entry")
_NOTE = "newest_event_of_central"
_TOLD_BY = ("id", "device_id", "type", "category", "subcategory", "date_at")


@dataclass(frozen=True, slots=True)
class _Look:
    """Result for some records: which are lost, in words ("" for none), and how many of the newest are missing."""

    lost: str
    missing: int


class LostRecords:
    """Search for lost records, with few requests: one or two while central has everything."""

    def __init__(self, *, client: CentralClient, store: Store, clock: Clock) -> None:
        self._client = client
        self._delivered_records = store.delivered_records
        self._cards = store.cards
        self._notes = store.notes
        self._clock = clock
        self._event_log = EventLog(client=client, notes=store.notes)

    async def search(self) -> str:
        """Return lost records in words; "" for none, or if central does not show it.

        Raises CentralUnavailable, StoreError.
        """
        kind, newest = await self._witnesses()
        if kind is None:
            return ""
        look = await self._look(kind, newest)
        if kind == "access_card":
            return look.lost if look.lost and await self._event_log.is_older() else ""
        if not look.lost and look.missing and kind == "camera_event":
            look = await self._look("entry", await self._newest("entry"))
        noted = int(await self._notes.remembered(_note_of(kind)) or 0)
        if look.lost or not noted or noted >= (newest[0].central_id or 0):
            return look.lost
        return (await self._look(kind, await self._newest(kind, up_to=noted))).lost

    async def note_found(self) -> None:
        """Store that central has the newest records of this site. Raises CentralUnavailable, StoreError."""
        kind, newest = await self._witnesses()
        if kind == "access_card":
            await self._event_log.note_newest()
        elif kind is not None:
            name, mark = _note_of(kind), str(newest[0].central_id)
            if await self._notes.remembered(name) != mark:
                await self._notes.remember(name, mark)

    async def _witnesses(self) -> tuple[Kind | Literal["access_card"] | None, tuple[DeliveredRecord, ...]]:
        """Return the most conclusive kind that has enough records, and its newest records, the newest first."""
        for kind in _KINDS:
            newest = await self._newest(kind)
            if len(newest) >= (1 if kind == "entry" else _FEWEST):
                return kind, newest
        ids = await self._delivered_records.cards()
        if len(ids) < _FEWEST:
            return None, ()
        known = await self._cards.records_of(ids[-_CARDS_LOOKED_AT:])
        cards = tuple(DeliveredRecord(one, one, json.loads(known[one])) for one in sorted(known)[-_NEWEST:][::-1])
        return ("access_card", cards) if len(cards) >= _FEWEST else (None, ())

    async def _newest(self, kind: Kind, *, up_to: int | None = None) -> tuple[DeliveredRecord, ...]:
        since = self._clock.wall().micros - _RECENT
        return await self._delivered_records.newest(kind, since, most=_NEWEST, up_to=up_to)

    async def _look(self, kind: str, records: Sequence[DeliveredRecord]) -> _Look:
        """Check these records at central, newest first, until one is there or unknown."""
        missing = others = 0
        async for state in self._states(kind, records):
            if state not in (RecordState.GONE, RecordState.OTHER):
                break
            missing += 1
            others += state is RecordState.OTHER
        is_lost = others >= _FEWEST or (missing >= _FEWEST and missing == len(records))
        if kind == "entry":
            is_lost = is_lost or missing > others
        names = ", ".join(str(record.central_id) for record in records)
        return _Look(f"{kind.replace('_', ' ')} {names}" if is_lost else "", missing)

    async def _states(self, kind: str, records: Sequence[DeliveredRecord]) -> AsyncIterator[RecordState]:
        if kind == "entry":  # there is no operation that reads one
            for state in await self._listed(records):
                yield state
            return
        for record in records:
            yield await record_state(self._client, kind, record.central_id or 0, marks_of(kind, record.body))

    async def _listed(self, entries: Sequence[DeliveredRecord]) -> list[RecordState]:
        """Return the states of entries by the first page of the list, which has the newest."""
        lookup, unknown = lookup_of("entry"), [RecordState.UNKNOWN] * len(entries)
        try:
            page = await read_page(self._client, lookup, 1, _PAGE)
        except (CentralRefused, NoList):
            return unknown
        if None in page.ids:
            return unknown
        sources = any(map(names_source, page.records.values()))
        falls, whole = page.order is PageOrder.NEWEST_FIRST, page.count == len(page.ids)
        states: list[RecordState] = []
        for entry in entries:
            number = entry.central_id or 0
            if number in page.records:
                marks, record = marks_of("entry", entry.body), page.records[number]
                same = is_still("entry", marks, record, names_sources=sources)
                states.append(RecordState.PRESENT if same else RecordState.OTHER)
            else:
                covered = not page.ids or (falls and (whole or min(page.records) <= number))
                states.append(RecordState.GONE if covered else RecordState.UNKNOWN)
        return states


def _note_of(kind: str) -> str:
    return f"newest_{kind}_at_central"


class EventLog:
    """Central's log of events, by whose newest event a central that was set back to an older state is recognised.

    Events are numbered upwards, and the interface has no operation that removes one. So a log that no longer has the
    newest event that was seen there comes from an older state. If the gateway's account may not read the log, it never
    counts as older.
    """

    def __init__(self, *, client: CentralClient, notes: Notes) -> None:
        self._client = client
        self._notes = notes

    async def note_newest(self) -> None:
        """Store the marks of the newest event. Raises CentralUnavailable, StoreError."""
        newest = await self._newest()
        if newest is None:
            return
        mark = json.dumps({name: newest[name] for name in _TOLD_BY if name in newest}, sort_keys=True)
        if mark != await self._notes.remembered(_NOTE):
            await self._notes.remember(_NOTE, mark)

    async def is_older(self) -> bool:
        """Return whether the log lacks the event that `note_newest` stored. Raises CentralUnavailable, StoreError."""
        noted = await self._notes.remembered(_NOTE)
        newest = await self._newest() if noted else None
        if not noted or newest is None:
            return False
        mark: JsonObject = json.loads(noted)
        if (whole_of(newest["id"]) or 0) <= (whole_of(mark["id"]) or 0):
            return not _is_same(mark, newest)
        try:
            event = answered_record(await self._client.call("POST", "/v1/event", {"id": mark["id"]}), ("event",))
        except CentralFailed:
            return False
        except CentralRefused as error:
            if (doubtful := await doubt(self._client, error)) is not None:
                raise doubtful from error
            return error.status == NOT_FOUND
        return event is not None and not _is_same(mark, event)

    async def _newest(self) -> JsonObject | None:
        asked: JsonObject = {"page": 1, "page_limit": 1, "cursor_id": 0}
        try:
            page = page_of(await self._client.call("POST", "/v1/event/list", asked), "events")
        except (CentralRefused, CentralFailed):
            return None
        return page.records[max(page.records)] if page.records else None


def _is_same(mark: JsonObject, event: JsonObject) -> bool:
    return all(alike(value, event.get(name)) for name, value in mark.items())
