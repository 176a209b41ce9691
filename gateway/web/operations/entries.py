"""Parking entries: rules, models and handlers of lists, reports, Excel files, and manual entries."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

from aiohttp import web
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from gateway.domain.errors import NotFoundError
from gateway.domain.passages import EntryStatus, ParkingEntry
from gateway.domain.writes import ENTRY_CREATE, ENTRY_UPDATE, FIRST_PROVISIONAL_ID, JsonObject, WaitingWrite
from gateway.runtime.clock import iso_utc
from gateway.site.models import LaneSection
from gateway.store import EntryFilter, EntryTotals
from gateway.web.answers import Answer, CursorListed
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Cursored, Id, Plain, SentChange, Text, WriteBody
from gateway.web.http.dates import asked_period
from gateway.web.http.errors import RequestRefused, success, success_listed
from gateway.web.operation import EDIT_ENTRIES, VIEW_ENTRIES, XLSX, needs
from gateway.web.operations.records import Record, Standing, standings, sync_state
from gateway.web.spreadsheets import Cell, Column

_KIND: Final = "entry"

_MINUTE = 60_000_000
COLUMNS = (
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
"""The columns of a sheet of entries."""

_Ids = Annotated[tuple[Id, ...], Field(max_length=1000, fail_fast=True)]
_Texts = Annotated[tuple[Text, ...], Field(max_length=1000, fail_fast=True)]
_Statuses = Annotated[tuple[EntryStatus, ...], Field(fail_fast=True)]
_Data = Annotated[Plain, Field(max_length=20_000)]


@dataclass(frozen=True, slots=True)
class _Place:
    """The lane of a device, and the area behind it ("" for none)."""

    lane_id: str
    area: str


def entry_record(entry: ParkingEntry) -> Record:
    """Return an entry as a record of the interface, without lane names and `sync`, which the caller adds."""
    is_exit = entry.entry_at is None
    moments = [None if micros is None else iso_utc(micros) for micros in (entry.entry_at, entry.exit_at)]
    return {
        **json.loads(entry.record),
        "id": entry.central_id or entry.id,
        "site_id": entry.id,
        "central_id": entry.central_id,
        "type": "exit" if is_exit else "entry",
        "status": entry.status.value,
        "date_at": moments[1] if is_exit else moments[0],
        "entry_at": moments[0],
        "exit_at": moments[1],
        "duration_minutes": _minutes(entry.stayed),
        "device_id": entry.exit_device_id if is_exit else entry.entry_device_id,
        "exit_device_id": entry.exit_device_id,
        "lane_id": entry.entry_lane,
        "exit_lane_id": entry.exit_lane,
        "area": entry.area,
        "access_id": _access_id(entry),
        "credential": entry.credential,
        "plate": entry.plate,
        "manual": entry.manual,
        "clock_trusted": entry.clock_trusted,
    }


def _as_many(value: object) -> object:
    """Wrap a single status in a tuple, so that it need not be sent as a list."""
    return (value,) if isinstance(value, str) else value


class EntryWhich(Body):
    """A filter of entries; an absent field does not filter. Dates are of the entry, or of an exit without entry."""

    search: Text = ""
    start_date: Text = ""
    end_date: Text = ""
    device_ids: _Ids = ()
    lane_ids: _Texts = ()
    access_ids: _Ids = ()
    plates: _Texts = ()
    status: Annotated[_Statuses, BeforeValidator(_as_many), Field(max_length=20)] = ()


class EntryListBody(Cursored, EntryWhich):
    """A filter of entries, and the page of the list."""


class _EntryFields(WriteBody):
    """The fields of an entry that a person may write; others are ignored.

    Lanes and area default to those of the devices. A `status` that is sent is ignored, since it follows from the
    moments. `clock_trusted` is accepted only together with `date_at`.
    """

    null_means: ClassVar[Mapping[str, JsonValue]] = MappingProxyType(
        {
            **dict.fromkeys(("access_id", "exit_at", "exit_device_id")),
            **dict.fromkeys(("plate", "credential", "lane", "exit_lane", "area", "note", "data"), ""),
        }
    )

    access_id: Id | None = None
    plate: Text | None = None
    credential: Text | None = None
    lane: Text | None = None
    exit_lane: Text | None = None
    area: Text | None = None
    status: EntryStatus | None = None
    clock_trusted: Annotated[bool, Field(strict=True)] | None = None
    exit_at: Text | None = None
    exit_device_id: Id | None = None
    note: Text | None = None
    data: _Data | None = None


class NewEntry(_EntryFields):
    """A manual entry, or an exit without an entry. `date_at` is its moment, by default now."""

    device_id: Id
    type: Literal["entry", "exit"] = "entry"
    date_at: Text = ""


class ChangedEntry(_EntryFields):
    """Changed fields of an entry. `exit_at` closes the entry."""

    id: Id
    device_id: Id | None = None
    date_at: Text = ""


class EntryRecord(BaseModel):
    """A parking entry: a stay from its entry to its exit.

    `id` is central's once central has given one; `site_id` is the site's own; requests may use either. `date_at` is
    `entry_at`, or `exit_at` when only the exit is known. Further fields that central or a person wrote are there too.
    """

    model_config = ConfigDict(frozen=True, extra="allow")

    id: int
    site_id: int
    central_id: int | None
    type: Literal["entry", "exit"]
    status: EntryStatus
    date_at: str
    entry_at: str | None
    exit_at: str | None
    duration_minutes: float | None
    device_id: int | None
    exit_device_id: int | None
    lane_id: str
    lane_name: str
    exit_lane_id: str
    exit_lane_name: str
    area: str
    access_id: int | None
    credential: str
    plate: str
    manual: bool
    clock_trusted: bool
    sync: Literal["in_step", "waiting", "refused", "site_only", "in_doubt"]


class EntryTotalsRecord(BaseModel):
    """Totals of entries."""

    model_config = ConfigDict(frozen=True)

    count: int
    open: int
    closed: int
    exit_only: int
    superseded: int
    timed_out: int
    average_minutes: float | None
    longest_minutes: float | None


class EntryAnswer(Answer):
    """One entry."""

    entry: EntryRecord


class EntriesAnswer(CursorListed):
    """Entries, newest first."""

    entries: tuple[EntryRecord, ...]


class EntryReportAnswer(EntriesAnswer):
    """One page of the entries, and the totals of all entries that pass the filter."""

    totals: EntryTotalsRecord


def totals_record(totals: EntryTotals) -> EntryTotalsRecord:
    """Return totals as the interface's model."""
    return EntryTotalsRecord(
        count=totals.count,
        **{status.value: count for status, count in totals.by_status},
        average_minutes=_minutes(totals.stayed_on_average),
        longest_minutes=_minutes(totals.stayed_longest),
    )


def totals_rows(totals: EntryTotals) -> list[list[Cell]]:
    """Return totals as the last rows of a sheet, each with a name and a value."""
    shown = totals_record(totals)
    said: list[tuple[str, object]] = [("Entries", shown.count)]
    said += ((status.value.replace("_", " ").capitalize(), count) for status, count in totals.by_status)
    said += (("Minutes on average", shown.average_minutes), ("Minutes at most", shown.longest_minutes))
    return [[name, "" if value is None else str(value)] for name, value in said]


def entry_row(entry: ParkingEntry, lanes: Mapping[str, str]) -> list[Cell]:
    """Return an entry as a row of a sheet; `lanes` are lane names by id."""
    note = json.loads(entry.record).get("note", "")
    return [
        entry.central_id or entry.id,
        entry.status.value,
        entry.entry_at,
        entry.exit_at,
        _minutes(entry.stayed),
        lanes.get(entry.entry_lane, entry.entry_lane),
        lanes.get(entry.exit_lane, entry.exit_lane),
        entry.area,
        _access_id(entry),
        entry.credential,
        entry.plate,
        "yes" if entry.manual else "",
        "" if entry.clock_trusted else "no",
        note if isinstance(note, str) else "",
    ]


def _access_id(entry: ParkingEntry) -> int | None:
    """Return the id of an entry's card, or None. A grant's code has an id below 0, which is internal."""
    return entry.card_id if entry.card_id is not None and entry.card_id > 0 else None


def _minutes(micros: int | None) -> float | None:
    return None if micros is None else round(micros / _MINUTE, 2)


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
