"""All events of the store for the page: filtered by day, lane, kind, severity and text, and exported as a file."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from drivers.plate_text import plain_plate
from gateway.domain.errors import NotFoundError
from gateway.domain.events import EventKind, RecordedEvent, Severity, without_formula
from gateway.runtime.clock import iso_utc
from gateway.store import EventFilter, StoredCard
from gateway.texts import text
from gateway.web.answers import Answer
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.dates import asked_period
from gateway.web.operation import VIEW_CARDS, VIEW_EVENTS, XLSX
from gateway.web.spreadsheets import Cell, Column
from gateway.web.status.snapshot import EventState, user_state, visible_events

_CSV = "text/csv"
PAGE = 200
MOST_SCANNED = 2_000
_MOST_CARDS = 200
_STRETCH = 100
_About = Literal["plate", "card", "person"]


class EventQuery(BaseModel):
    """A filter of events as a query. `types` are numbers separated by commas; dates are as in `/v1/event/list`.

    `of`: what `search` names: a plate, a card or a person, whose cards' readings are found too; "" for any text.
    """

    model_config = ConfigDict(frozen=True)

    lane: Annotated[str, Field(max_length=120)] = ""
    severity: Literal["info", "notice", "warning", "alarm"] = "info"
    types: Annotated[str, Field(pattern=r"^[0-9]{1,6}(,[0-9]{1,6}){0,99}$|^$")] = ""
    search: Annotated[str, Field(max_length=200)] = ""
    of: Literal["", "plate", "card", "person"] = ""
    start_date: Annotated[str, Field(max_length=40)] = ""
    end_date: Annotated[str, Field(max_length=40)] = ""
    before: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    limit: Annotated[int, Field(ge=1, le=PAGE)] = 50


_COLUMNS = (
    Column("Id", "number", 10),
    Column("Time", "moment", 20),
    Column("Type", "number", 8),
    Column("Severity", width=10),
    Column("Event", width=28),
    Column("Lane", width=20),
    Column("Description", width=80),
    Column("Data", width=60),
)


class EventsShown(Answer):
    """A page of events. `next` is the cursor of the next page, null at the end.

    At most about 2,000 events are scanned, so that a page may be short or empty although more follow.
    """

    events: tuple[EventState, ...]
    next: int | None


class OneEvent(Answer):
    """One event."""

    event: EventState


class EventHistory(Family):
    """The handlers of `/status/event/…`: events older than those in the snapshot, and exports as CSV and Excel."""

    @operation("GET", "/status/event/list", VIEW_EVENTS, "events")
    async def _list(self, asked: EventQuery, caller: Caller) -> EventsShown:
        wanted = await self._wanted(asked, caller)
        found: list[RecordedEvent] = []
        before: int | None = asked.before
        scanned = 0
        while before is not None and len(found) < asked.limit and scanned < MOST_SCANNED:
            page = await self.context.store.events.page(wanted.stored, before=before, limit=PAGE)
            scanned += len(page.events)
            found += filter(wanted.passes, page.events)
            before = page.next_cursor
        if len(found) > asked.limit:
            found = found[: asked.limit]
            before = found[-1].id
        shown = visible_events(await self.context.event_states.of(found), user_state(caller))
        return EventsShown(events=shown, next=before)

    @operation("GET", "/status/event/one/{id}", VIEW_EVENTS, "event")
    async def _one(self, event_id: int, caller: Caller) -> OneEvent:
        event = await self.context.store.events.get(event_id)
        if event is None:
            raise NotFoundError(text("refused.event_unknown", event=str(event_id)))
        (shown,) = visible_events(await self.context.event_states.of((event,)), user_state(caller))
        return OneEvent(event=shown)

    async def _wanted(self, asked: EventQuery, caller: Caller) -> _Wanted:
        """Return the filter. For callers who may not see cards, only the event's own text identifies its subject."""
        who = None
        if asked.of and asked.search.strip():
            known: tuple[StoredCard, ...] = ()
            if caller.may(VIEW_CARDS):
                known, _count = await self.context.store.cards.page(search=asked.search, limit=_MOST_CARDS)
            who = _Subject.of(asked.of, asked.search, known)
        return _Wanted.of(asked, self.context.zone, who)

    @operation("GET", "/status/event/csv", VIEW_EVENTS, "events", answer_type=_CSV)
    async def _csv(self, asked: EventQuery, request: web.Request, caller: Caller) -> web.StreamResponse:
        rows = self._rows(await self._wanted(asked, caller))
        answer = web.StreamResponse(headers={"Content-Disposition": 'attachment; filename="events.csv"'})
        answer.content_type, answer.charset = _CSV, "utf-8"
        await answer.prepare(request)
        await answer.write(b"\xef\xbb\xbf" + _csv_lines([[column.title for column in _COLUMNS]]))
        async for stretch in rows:
            await answer.write(_csv_lines([list(map(_written, row, _COLUMNS)) for row in stretch]))
        return answer

    @operation("GET", "/status/event/xlsx", VIEW_EVENTS, "events", answer_type=XLSX)
    async def _xlsx(self, asked: EventQuery, request: web.Request, caller: Caller) -> web.StreamResponse:
        return await self.context.spreadsheets.answer(
            request,
            name="events",
            sheet="Events",
            columns=_COLUMNS,
            rows=self._rows(await self._wanted(asked, caller)),
            zone=self.context.zone,
        )

    async def _rows(self, wanted: _Wanted) -> AsyncIterator[list[list[Cell]]]:
        """Yield rows in batches of at most 100, so that lanes get their turn in between."""
        before: int | None = 0
        while before is not None:
            page = await self.context.store.events.page(wanted.stored, before=before, limit=PAGE)
            before = page.next_cursor
            passing = [event for event in page.events if wanted.passes(event)]
            for start in range(0, len(passing), _STRETCH):
                yield [self._row(event) for event in passing[start : start + _STRETCH]]

    def _row(self, event: RecordedEvent) -> list[Cell]:
        severity = Severity(event.subcategory).name.lower()
        lane = self.context.places.lanes.get(event.lane_id, event.lane_id)
        return [event.id, event.date_at, event.type, severity, event.name, lane, event.description, event.data]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A filter of events: the part that the store applies, and the lane and subject, for which it has no index."""

    stored: EventFilter
    lane: str
    who: _Subject | None

    @classmethod
    def of(cls, asked: EventQuery, zone: ZoneInfo, who: _Subject | None) -> _Wanted:
        start, end = asked_period(asked.start_date, asked.end_date, zone)
        types = {int(number) for number in asked.types.split(",") if number}
        least = Severity[asked.severity.upper()]
        if least:
            grave = {int(kind) for kind in EventKind if kind.severity >= least}
            types = (types & grave or {0}) if types else grave
        search = "" if who else asked.search
        stored = EventFilter(types=tuple(sorted(types)), search=search, date_from=start, date_until=end)
        return cls(stored, asked.lane, who)

    def passes(self, event: RecordedEvent) -> bool:
        return self.lane in ("", event.lane_id) and (self.who is None or self.who.is_of(event))


@dataclass(frozen=True, slots=True)
class _Subject:
    """A plate, a card or a person to search for.

    Attributes:
        about: the kind of subject.
        text: the text that was typed, normalised for comparison.
        card_ids: the cards that match the text. Readers often send other numbers than the printed ones, so events are
            found by the card's id too.
    """

    about: _About
    text: str
    card_ids: frozenset[int]

    @classmethod
    def of(cls, about: _About, search: str, known: Collection[StoredCard]) -> _Subject:
        """Return the subject of a search, with those of the `known` cards whose own field for it matches."""
        text = _compared(about, search)
        found = (one.card.card_id for one in known if text in _compared(about, _field(about, one)))
        return cls(about, text, frozenset(found))

    def is_of(self, event: RecordedEvent) -> bool:
        """Return whether the event is about this subject."""
        data = json.loads(event.data) if '"card_id"' in event.data or '"credential"' in event.data else {}
        if data.get("card_id") in self.card_ids:
            return True
        said = str(data.get("credential") or "") if self.about != "person" else event.description
        return bool(self.text) and self.text in _compared(self.about, said)


def _csv_lines(rows: list[list[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def _written(cell: Cell, column: Column) -> str:
    """Return a cell as text for CSV."""
    if column.kind == "moment" and isinstance(cell, int):
        return iso_utc(cell)
    text = "" if cell is None else str(cell)
    return without_formula(text) if column.kind == "text" else text


def _compared(about: _About, text: str) -> str:
    return plain_plate(text) if about == "plate" else text.strip().casefold()


def _field(about: _About, known: StoredCard) -> str:
    if about == "card":
        return known.card.number
    record = json.loads(known.record)
    if about == "plate":
        return str(record.get("plate") or "")
    return f"{known.card.holder} {record.get('username') or ''}"
