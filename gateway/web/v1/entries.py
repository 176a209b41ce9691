"""Parking entries: who came in and went out, listed, reported, as Excel, and by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from aiohttp import web

from gateway.clock import Clock, iso_utc
from gateway.domain.errors import NotFoundError
from gateway.domain.parking import ParkingEntry
from gateway.domain.reading import PageTold
from gateway.domain.writes import ENTRY_CREATE, ENTRY_UPDATE, FIRST_PROVISIONAL_ID, JsonObject, WaitingWrite
from gateway.site.models import LaneSection, Site
from gateway.store import EntryFilter, EntryTotals, Reader, Store
from gateway.web.admission import Route
from gateway.web.bodies import read_body, read_change, read_new
from gateway.web.catalogue.entries import (
    ENTRY_EXCEL,
    ENTRY_LIST,
    ENTRY_PATCH,
    ENTRY_PUT,
    ENTRY_REPORT,
    ENTRY_REPORT_EXCEL,
)
from gateway.web.dates import asked_period, from_micros
from gateway.web.envelope import success, success_listed
from gateway.web.errors import RequestRefused
from gateway.web.reading import Readers
from gateway.web.rooms import CentralWrites
from gateway.web.sessions import Caller
from gateway.web.shapes.entries import ChangedEntry, EntryListBody, EntryWhich, NewEntry
from gateway.web.spreadsheets import Cell, Column, Spreadsheets
from gateway.web.v1.entry_records import access_id, entry_record, minutes, totals_record, totals_rows
from gateway.web.v1.records import Record, standing_with_central

_KIND: Final = "entry"
_MINUTE = 60_000_000
_SLACK = _MINUTE  # whoever asks may have a clock that is a little ahead
_DOUBTED = 10 * 365 * 24 * 60 * _MINUTE  # how far behind a clock may be that nothing has set
_COLUMNS = (
    Column("Id", "number", 20),
    Column("Status", width=12),
    Column("Entered", "moment", 20),
    Column("Left", "moment", 20),
    Column("Minutes", "number", 10),
    Column("Lane in", width=20),
    Column("Lane out", width=20),
    Column("Area", width=14),
    Column("Access card", "number", 12),
    Column("Credential", width=20),
    Column("Plate", width=14),
    Column("By hand", width=9),
    Column("Clock trusted", width=13),
    Column("Note", width=40),
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A device's lane."""

    lane_id: str
    area: str


class EntriesFamily:
    """`/v1/entry`. An entry's id may be the site's or central's; cursors are the site's ids."""

    def __init__(
        self,
        *,
        site: Site,
        store: Store,
        writes: CentralWrites,
        clock: Clock,
        spreadsheets: Spreadsheets,
        readers: Readers,
    ) -> None:
        self._store = store
        self._readers = readers
        self._writes = writes
        self._clock = clock
        self._spreadsheets = spreadsheets
        self._zone = ZoneInfo(site.site.timezone)
        self._lanes: Mapping[str, str] = {lane.id: lane.name for lane in site.lanes}
        self._places: Mapping[int, _Place] = {
            number: _Place(lane.id, lane.inside or "") for lane in reversed(site.lanes) for number in _devices_of(lane)
        }

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (
            Route(ENTRY_LIST, self._list),
            Route(ENTRY_REPORT, self._report),
            Route(ENTRY_EXCEL, self._as_excel),
            Route(ENTRY_REPORT_EXCEL, self._report_as_excel),
            Route(ENTRY_PUT, self._create),
            Route(ENTRY_PATCH, self._change),
        )

    async def _list(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, EntryListBody)
        whole = self._filter(wanted) == EntryFilter()
        return await self._listed(wanted, Reader(caller.username, _KIND) if wanted.by_cursor and whole else None)

    async def _report(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, EntryListBody)
        return await self._listed(wanted, None, totals=totals_record(await self._totals(wanted)))

    async def _as_excel(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, EntryWhich)
        return await self._sheet(request, "entries", self._rows(self._filter(wanted)))

    async def _report_as_excel(self, request: web.Request, _: Caller) -> web.StreamResponse:
        """The same with the totals below."""
        wanted = await read_body(request, EntryWhich)
        totals = totals_rows(await self._totals(wanted))
        return await self._sheet(request, "entry-report", self._rows(self._filter(wanted), below=totals))

    async def _sheet(
        self, request: web.Request, name: str, rows: AsyncIterator[list[list[Cell]]]
    ) -> web.StreamResponse:
        return await self._spreadsheets.answer(
            request, name=name, sheet="Entries", columns=_COLUMNS, rows=rows, zone=self._zone
        )

    async def _create(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted, sent = await read_new(request, NewEntry)
        body = self._moments(sent, said=sent.keys())
        if wanted.type == "exit" and body.get("exit_at") is not None:
            raise _moment_of_an_exit()
        if "date_at" not in body:
            _refuse_trust_without_moment(wanted)
            now = self._clock.wall()
            body |= {"date_at": iso_utc(now.micros), "clock_trusted": now.trusted}
        body = {**await self._placed(body, wanted, said=body.keys()), "type": wanted.type}
        _refuse_exit_before(body.get("date_at"), body.get("exit_at"))
        written = await self._writes.write(ENTRY_CREATE, body)
        if written.record_id is None:
            return success(entry=written.record)
        return success(entry=await self._shown(await self._known(written.record_id)))

    async def _change(self, request: web.Request, _: Caller) -> web.StreamResponse:
        change = await read_change(request, ChangedEntry)
        known = await self._known(change.id)
        shown = await self._shown(known)
        wanted, sent = change.to(shown, ChangedEntry)
        said = {name for name in sent if not change.leaves(name, shown)}
        body = await self._placed(self._moments(sent, said=said), wanted, said=said)
        if "date_at" not in body:
            _refuse_trust_without_moment(wanted)
        elif "date_at" in said:
            body.setdefault("clock_trusted", True)  # what a person says is not the clock's
        if known.entry_at is None:
            if body.pop("exit_at", None) is not None and "exit_at" in said:
                raise _moment_of_an_exit()
        elif said & {"date_at", "exit_at"}:
            left = None if known.exit_at is None else iso_utc(known.exit_at)
            _refuse_exit_before(body.get("date_at", iso_utc(known.entry_at)), body.get("exit_at", left))
        await self._writes.write(ENTRY_UPDATE, {**body, "id": known.id})
        return success(entry=await self._shown(await self._known(known.id)))

    def _moments(self, sent: JsonObject, *, said: AbstractSet[str]) -> JsonObject:
        """The body with its moments as central takes them; an empty one is none. Raises RequestRefused.

        A status follows from the moments, so it is not among what is written.
        """
        body = {name: value for name, value in sent.items() if name != "status"}
        for name in ("date_at", "exit_at"):
            text = body.get(name)
            if isinstance(text, str) and text.strip():
                body[name] = iso_utc(self._moment(name, text, has_been=name in said))
            elif name == "date_at":
                body.pop(name, None)
            elif name in body:
                body[name] = None
        return body

    def _moment(self, name: str, text: str, *, has_been: bool) -> int:
        try:
            moment = from_micros(text, self._zone)
        except (ValueError, OverflowError) as error:
            raise RequestRefused(400, f"{name}: {error}") from error
        now = self._clock.wall()
        if has_been and not 0 <= moment <= now.micros + (_SLACK if now.trusted else _DOUBTED):
            raise RequestRefused(400, f"{name}: must be a moment that has been")
        return moment

    async def _placed(self, body: JsonObject, wanted: NewEntry | ChangedEntry, *, said: AbstractSet[str]) -> JsonObject:
        """The body with devices and the card as they are known now, and the devices' lanes unless others are said."""
        placed: JsonObject = {}
        if wanted.access_id is not None:
            body["access_id"] = await self._store.held.site_id("access_card", wanted.access_id)
        if wanted.device_id is not None:
            body["device_id"] = await self._device("device_id", wanted.device_id)
            if (place := self._places.get(wanted.device_id)) is not None:
                placed |= {"lane": place.lane_id, "area": place.area}
        if wanted.exit_device_id is not None:
            body["exit_device_id"] = await self._device("exit_device_id", wanted.exit_device_id)
            if (place := self._places.get(wanted.exit_device_id)) is not None:
                placed["exit_lane"] = place.lane_id
        return {**body, **{name: value for name, value in placed.items() if name not in said}}

    async def _device(self, name: str, number: int) -> int:
        """The id by which a device is known now. Raises RequestRefused for none."""
        known = await self._store.held.site_id("device", number)
        if await self._store.devices.get(known) is None:
            raise RequestRefused(400, f"{name}: there is no device {number}")
        return known

    async def _known(self, entry_id: int) -> ParkingEntry:
        known = await self._store.entries.get(entry_id, now=self._now)
        if known is None:
            raise NotFoundError(f"there is no entry {entry_id}")
        return known

    @property
    def _now(self) -> int:
        return self._clock.wall().micros

    async def _listed(self, wanted: EntryListBody, reader: Reader | None, **more: object) -> web.StreamResponse:
        before = wanted.cursor_id
        if reader is not None:
            self._readers.asks(reader, before)
        if 0 < before < FIRST_PROVISIONAL_ID:  # central's id of one
            known = await self._store.entries.get(before, now=self._now)
            before = known.id if known is not None else before
        page = await self._store.entries.page(
            self._filter(wanted), now=self._now, before=before, offset=wanted.offset, limit=wanted.limit
        )
        waiting = (await self._store.held.arriving(_KIND, [entry.id for entry in page.entries])).waiting
        shown = (self._record(entry, waiting.get(entry.id, ())) for entry in page.entries)
        cursor = {"next_cursor": page.entries[-1].id} if page.entries else {}
        answer = await success_listed("entries", shown, count=page.count, **cursor, **more)
        if reader is None:
            return answer
        following = cursor.get("next_cursor")
        told = PageTold(wanted.cursor_id, page.newest, following, is_end=page.next_cursor is None)
        return await self._readers.told(reader, told, answer)

    async def _totals(self, wanted: EntryWhich) -> EntryTotals:
        return await self._store.entries.totals(self._filter(wanted), now=self._now)

    def _filter(self, wanted: EntryWhich) -> EntryFilter:
        start, end = asked_period(wanted.start_date, wanted.end_date, self._zone)
        return EntryFilter(
            date_from=start,
            date_until=end,
            device_ids=wanted.device_ids,
            lane_ids=wanted.lane_ids,
            card_ids=wanted.access_ids,
            plates=wanted.plates,
            statuses=wanted.status,
            search=wanted.search,
        )

    async def _shown(self, entry: ParkingEntry) -> Record:
        return self._record(entry, await self._store.held.waiting(_KIND, entry.id))

    def _record(self, entry: ParkingEntry, waiting: Sequence[WaitingWrite]) -> Record:
        names = {
            "lane_name": self._lanes.get(entry.entry_lane, ""),
            "exit_lane_name": self._lanes.get(entry.exit_lane, ""),
        }
        return {**entry_record(entry), **names, **standing_with_central(waiting)}

    async def _rows(self, wanted: EntryFilter, *, below: Sequence[list[Cell]] = ()) -> AsyncIterator[list[list[Cell]]]:
        async for batch in self._store.entries.batches(wanted, now=self._now):
            yield [self._row(entry) for entry in batch]
        if below:
            yield [row + [None] * (len(_COLUMNS) - len(row)) for row in ([], *below)]

    def _row(self, entry: ParkingEntry) -> list[Cell]:
        note = json.loads(entry.record).get("note", "")
        return [
            entry.central_id or entry.id,
            entry.status.value,
            entry.entry_at,
            entry.exit_at,
            minutes(entry.stayed),
            self._lanes.get(entry.entry_lane, entry.entry_lane),
            self._lanes.get(entry.exit_lane, entry.exit_lane),
            entry.area,
            access_id(entry),
            entry.credential,
            entry.plate,
            "yes" if entry.manual else "",
            "" if entry.clock_trusted else "no",
            note if isinstance(note, str) else "",
        ]


def _moment_of_an_exit() -> RequestRefused:
    return RequestRefused(400, "exit_at: the moment of an exit is its date_at")


def _refuse_trust_without_moment(wanted: NewEntry | ChangedEntry) -> None:
    if wanted.clock_trusted is not None:
        raise RequestRefused(400, "clock_trusted: is said of a date_at that is sent along")


def _refuse_exit_before(came: object, left: object) -> None:
    if isinstance(came, str) and isinstance(left, str) and left < came:  # both are UTC, to the millisecond
        raise RequestRefused(400, "exit_at: is before the entry")


def _devices_of(lane: LaneSection) -> tuple[int, ...]:
    return (lane.gate, *lane.readers)
