"""Parking entries: handlers of lists, reports, Excel files, and manual entries."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from gateway.domain.errors import NotFoundError
from gateway.domain.passages import ParkingEntry
from gateway.domain.writes import (
    ENTRY_CREATE,
    ENTRY_UPDATE,
    FIRST_PROVISIONAL_ID,
    JsonObject,
    WaitingWrite,
)
from gateway.runtime.clock import iso_utc
from gateway.site.models import LaneSection
from gateway.store import EntryFilter, EntryTotals
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.bodies import SentChange
from gateway.web.http.dates import asked_period
from gateway.web.http.envelope import success, success_listed
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import EDIT_ENTRIES, VIEW_ENTRIES, XLSX, needs
from gateway.web.operations.entries.models import (
    ChangedEntry,
    EntriesAnswer,
    EntryAnswer,
    EntryListBody,
    EntryReportAnswer,
    EntryWhich,
    NewEntry,
)
from gateway.web.operations.entries.records import COLUMNS, entry_record, entry_row, totals_record, totals_rows
from gateway.web.operations.records import Record, Standing, standings, sync_state
from gateway.web.spreadsheets import Cell

_KIND: Final = "entry"


@dataclass(frozen=True, slots=True)
class _Place:
    """The lane of a device, and the area behind it ("" for none)."""

    lane_id: str
    area: str


class EntriesFamily(Family):
    """The handlers of `/v1/entry`. An entry's id may be the site's or central's; cursors are the site's ids."""

    def __init__(self, context: InterfaceContext) -> None:
        super().__init__(context)
        lanes = context.site.lanes
        self._lanes: Mapping[str, str] = {lane.id: lane.name for lane in lanes}
        self._places: Mapping[int, _Place] = {
            number: _Place(lane.id, lane.inside or "") for lane in reversed(lanes) for number in _devices_of(lane)
        }

    @operation(
        "POST",
        "/v1/entry/list",
        VIEW_ENTRIES,
        "entries",
        purpose="List parking entries, newest first",
        answer=EntriesAnswer,
        reads=True,
    )
    async def _list(self, wanted: EntryListBody, request: web.Request) -> web.StreamResponse:
        return await self._listed(request, wanted)

    @operation(
        "POST",
        "/v1/entry/report",
        VIEW_ENTRIES,
        "entries",
        purpose="Entries for the report view, with totals",
        answer=EntryReportAnswer,
        reads=True,
    )
    async def _report(self, wanted: EntryListBody, request: web.Request) -> web.StreamResponse:
        return await self._listed(request, wanted, totals=totals_record(await self._totals(wanted)))

    @operation(
        "POST", "/v1/entry/excel", VIEW_ENTRIES, "entries", purpose="Entries as Excel", answer_type=XLSX, reads=True
    )
    async def _as_excel(self, wanted: EntryWhich, request: web.Request) -> web.StreamResponse:
        return await self._sheet(request, "entries", self._rows(await self._filter(wanted)))

    @operation(
        "POST",
        "/v1/entry/reportExcel",
        VIEW_ENTRIES,
        "entries",
        purpose="Entry report as Excel",
        answer_type=XLSX,
        reads=True,
    )
    async def _report_as_excel(self, wanted: EntryWhich, request: web.Request) -> web.StreamResponse:
        """Return the entries as Excel, with their totals in the last rows."""
        totals = totals_rows(await self._totals(wanted))
        return await self._sheet(request, "entry-report", self._rows(await self._filter(wanted), below=totals))

    async def _sheet(
        self, request: web.Request, name: str, rows: AsyncIterator[list[list[Cell]]]
    ) -> web.StreamResponse:
        return await self.context.spreadsheets.answer(
            request, name=name, sheet="Entries", columns=COLUMNS, rows=rows, zone=self.context.zone
        )

    @operation(
        "PUT",
        "/v1/entry",
        needs("can_add_entries"),
        "entry",
        purpose="Create a manual parking entry",
        answer=EntryAnswer,
    )
    async def _create(self, wanted: NewEntry) -> web.StreamResponse:
        sent = wanted.fields
        body = self._moments(sent, said=sent.keys())
        if wanted.type == "exit" and body.get("exit_at") is not None:
            raise _moment_of_an_exit()
        if "date_at" not in body:
            _refuse_trust_without_moment(wanted)
            now = self.context.clock.wall()
            body |= {"date_at": iso_utc(now.micros), "clock_trusted": now.trusted}
        body = {**await self._placed(body, wanted, said=body.keys()), "type": wanted.type}
        _refuse_exit_before(body.get("date_at"), body.get("exit_at"))
        written = await self.context.writes.write(ENTRY_CREATE, body)
        if written.record_id is None:
            return success(entry=written.record)
        return success(entry=await self._shown(await self._known(written.record_id)))

    @operation("PATCH", "/v1/entry", EDIT_ENTRIES, "entry", purpose="Update a parking entry", answer=EntryAnswer)
    async def _change(self, change: SentChange[ChangedEntry]) -> web.StreamResponse:
        known = await self._known(change.id)
        shown = await self._shown(known)
        wanted = change.to(shown)
        sent = wanted.fields
        said = {name for name in sent if not change.leaves(name, shown)}
        body = await self._placed(self._moments(sent, said=said), wanted, said=said)
        if "date_at" not in body:
            _refuse_trust_without_moment(wanted)
        elif "date_at" in said:
            body.setdefault("clock_trusted", True)  # a person's moment does not depend on the clock
        if known.entry_at is None:
            if body.pop("exit_at", None) is not None and "exit_at" in said:
                raise _moment_of_an_exit()
        elif said & {"date_at", "exit_at"}:
            left = None if known.exit_at is None else iso_utc(known.exit_at)
            _refuse_exit_before(body.get("date_at", iso_utc(known.entry_at)), body.get("exit_at", left))
        await self.context.writes.write(ENTRY_UPDATE, {**body, "id": known.id})
        return success(entry=await self._shown(await self._known(known.id)))

    def _moments(self, sent: JsonObject, *, said: AbstractSet[str]) -> JsonObject:
        """Return the body with its moments in central's form. Raises RequestRefused.

        A blank `date_at` is dropped, a blank `exit_at` becomes None.

        `said` are the fields that differ from the record; only they are checked. `status` is left out, because it
        follows from the moments. If no clock can tell whether a moment is past, `clock_trusted` becomes false, unless
        the request itself sets it.
        """
        body = {name: value for name, value in sent.items() if name != "status"}
        for name in ("date_at", "exit_at"):
            text = body.get(name)
            if isinstance(text, str) and text.strip():
                body[name] = iso_utc(self._moment(name, text, body, said=said))
            elif name == "date_at":
                body.pop(name, None)
            elif name in body:
                body[name] = None
        return body

    def _moment(self, name: str, text: str, body: JsonObject, *, said: AbstractSet[str]) -> int:
        if name not in said:
            return self.context.moments.read(name, text)
        moment = self.context.moments.past(name, text)
        if not moment.is_proven and "clock_trusted" not in said:
            body["clock_trusted"] = False
        return moment.micros

    async def _placed(self, body: JsonObject, wanted: NewEntry | ChangedEntry, *, said: AbstractSet[str]) -> JsonObject:
        """Return the body with present ids of devices and card, and the devices' lanes and area unless `said` has them.

        Raises RequestRefused (400) for an unknown card or device.
        """
        placed: JsonObject = {}
        if wanted.access_id is not None:
            body["access_id"] = await self._card(wanted.access_id)
        if wanted.device_id is not None:
            body["device_id"] = await self._device("device_id", wanted.device_id)
            if (place := self._places.get(wanted.device_id)) is not None:
                placed |= {"lane": place.lane_id, "area": place.area}
        if wanted.exit_device_id is not None:
            body["exit_device_id"] = await self._device("exit_device_id", wanted.exit_device_id)
            if (place := self._places.get(wanted.exit_device_id)) is not None:
                placed["exit_lane"] = place.lane_id
        return {**body, **{name: value for name, value in placed.items() if name not in said}}

    async def _card(self, number: int) -> int:
        """Return a card's present id. Raises RequestRefused for a provisional id that no card has.

        Ids of central are not checked, because this site need not know every card.
        """
        known = await self.context.store.pending_writes.site_id("access_card", number)
        if known >= FIRST_PROVISIONAL_ID and await self.context.store.cards.get(known) is None:
            raise RequestRefused(400, f"access_id: there is no access card {number}")
        return known

    async def _device(self, name: str, number: int) -> int:
        """Return a device's present id. Raises RequestRefused for an unknown device; `name` is the field."""
        known = await self.context.store.pending_writes.site_id("device", number)
        if await self.context.store.devices.get(known) is None:
            raise RequestRefused(400, f"{name}: there is no device {number}")
        return known

    async def _known(self, entry_id: int) -> ParkingEntry:
        known = await self.context.store.entries.get(entry_id, now=self._now)
        if known is None:
            raise NotFoundError(f"there is no entry {entry_id}")
        return known

    @property
    def _now(self) -> int:
        return self.context.clock.wall().micros

    async def _listed(self, request: web.Request, wanted: EntryListBody, **more: object) -> web.StreamResponse:
        before = wanted.cursor_id
        if 0 < before < FIRST_PROVISIONAL_ID:  # an id of central
            known = await self.context.store.entries.get(before, now=self._now)
            before = known.id if known is not None else before
        page = await self.context.store.entries.page(
            await self._filter(wanted), now=self._now, before=before, offset=wanted.offset, limit=wanted.limit
        )
        waiting = (
            await self.context.store.pending_writes.arriving(_KIND, [entry.id for entry in page.entries])
        ).waiting
        standing = await self._standings(page.entries, waiting)
        shown = (self._record(entry, waiting.get(entry.id, ()), standing) for entry in page.entries)
        cursor = {"next_cursor": page.entries[-1].id} if page.entries else {}
        return await success_listed(request, "entries", shown, count=page.count, **cursor, **more)

    async def _totals(self, wanted: EntryWhich) -> EntryTotals:
        return await self.context.store.entries.totals(await self._filter(wanted), now=self._now)

    async def _filter(self, wanted: EntryWhich) -> EntryFilter:
        start, end = asked_period(wanted.start_date, wanted.end_date, self.context.zone)
        return EntryFilter(
            date_from=start,
            date_until=end,
            device_ids=await self._present("device", wanted.device_ids),
            lane_ids=wanted.lane_ids,
            card_ids=await self._present("access_card", wanted.access_ids),
            plates=wanted.plates,
            statuses=wanted.status,
            search=wanted.search,
        )

    async def _present(self, kind: str, asked: tuple[int, ...]) -> tuple[int, ...]:
        """Return the present ids of records: the provisional id of a record that was made here keeps working."""
        return tuple(
            [
                await self.context.store.pending_writes.site_id(kind, number)
                if number >= FIRST_PROVISIONAL_ID
                else number
                for number in asked
            ]
        )

    async def _shown(self, entry: ParkingEntry) -> Record:
        waiting = await self.context.store.pending_writes.waiting(_KIND, entry.id)
        return self._record(entry, waiting, await self._standings((entry,), {entry.id: waiting}))

    async def _standings(
        self, entries: Iterable[ParkingEntry], waiting: Mapping[int, Sequence[WaitingWrite]]
    ) -> Mapping[int, Standing]:
        records = () if self.context.writes.alone else ((entry.id, entry.central_id) for entry in entries)
        return await standings(self.context.store.pending_writes, _KIND, records, waiting)

    def _record(self, entry: ParkingEntry, waiting: Sequence[WaitingWrite], standing: Mapping[int, Standing]) -> Record:
        names = {
            "lane_name": self._lanes.get(entry.entry_lane, ""),
            "exit_lane_name": self._lanes.get(entry.exit_lane, ""),
        }
        return {**entry_record(entry), **names, **sync_state(waiting, standing.get(entry.id, "in_step"))}

    async def _rows(self, wanted: EntryFilter, *, below: Sequence[list[Cell]] = ()) -> AsyncIterator[list[list[Cell]]]:
        async for batch in self.context.store.entries.batches(wanted, now=self._now):
            yield [entry_row(entry, self._lanes) for entry in batch]
        if below:
            yield [row + [None] * (len(COLUMNS) - len(row)) for row in ([], *below)]


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
