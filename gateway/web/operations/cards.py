"""Access cards: rules, models and handlers.

Changes go through the writer of central's records, and count in the lanes at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, ClassVar
from weakref import WeakValueDictionary
from zoneinfo import ZoneInfo

import structlog
from aiohttp import web
from pydantic import AfterValidator, Field, JsonValue

from drivers.settings import following
from gateway.domain.credentials import Card, CardStatus, near_alias
from gateway.domain.errors import CommandRefused, NotFoundError, StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.writes import (
    CARD_CREATE,
    CARD_DELETE,
    CARD_LIFECYCLE,
    CARD_UPDATE,
    JsonObject,
    WaitingWrite,
    WriteResult,
)
from gateway.runtime.clock import iso_utc
from gateway.site import Site
from gateway.site.reader_numbers import doubts_of_number
from gateway.store import Entry, StoredCard
from gateway.store.cards.cards import Cards
from gateway.texts import text
from gateway.web.answers import CardAnswer, CardsAnswer
from gateway.web.auth.callers import Caller
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.bodies import (
    LARGEST_ID,
    Body,
    ById,
    Id,
    Line,
    Number,
    Paged,
    Plain,
    SentChange,
    Text,
    Word,
    WriteBody,
    Yes,
)
from gateway.web.http.dates import asked_period
from gateway.web.http.errors import RequestRefused, success, success_listed
from gateway.web.operation import ADD_CARDS, CONTROL_DEVICES, DELETE_CARDS, EDIT_CARDS, VIEW_CARDS, XLSX, needs
from gateway.web.operations.records import Record, sync_state
from gateway.web.spreadsheets import Cell, Column


def _moment(value: str) -> str:
    """Check that a bound is an ISO 8601 moment or day, or "" for no bound. Raises ValueError."""
    if value:
        try:
            datetime.fromisoformat(value)
        except ValueError as error:
            raise ValueError("must be an ISO 8601 date or date and time") from error
    return value


def _as_text(value: str | int) -> str | None:
    """Return a bound in the form that is stored: text as sent, numbers as ISO 8601; None for 0 and ""."""
    if isinstance(value, str):
        return value.strip() or None
    return iso_utc(value * (1_000 if value >= _MILLISECONDS_FROM else 1_000_000)) if value else None


def _as_number(value: str) -> int:
    """Convert digits to a number. Raises ValueError for other text."""
    if not (value.isascii() and value.isdigit()):
        raise ValueError("must be a number, or its digits")
    return int(value)


_MILLISECONDS_FROM = 100_000_000_000  # as seconds that would be the year 5138
_LATEST = int(datetime(9999, 1, 1, tzinfo=UTC).timestamp()) * 1_000
_MOST_NAMES = 200

Moment = Annotated[Plain, Field(max_length=40), AfterValidator(_moment)]
Seconds = Annotated[int, Field(strict=True, ge=0, le=_LATEST)]
Bound = Annotated[Moment | Seconds, AfterValidator(_as_text)]
"""An ISO 8601 date or moment, or seconds or milliseconds since 1970."""
Whole = Annotated[int, Field(strict=True, ge=0, le=2**63 - 1)]
Digits = Annotated[
    str,
    Field(strict=True, max_length=18, json_schema_extra={"pattern": "^[0-9]{1,18}$"}),
    AfterValidator(_as_number),
]
NumberOrDigits = Whole | Digits
Named = Number | Word
Names = Annotated[tuple[Named, ...], Field(max_length=_MOST_NAMES, fail_fast=True)]
_PIN = "^([0-9]{4,8})?$"
Pin = Annotated[
    str, Field(strict=True, json_schema_extra={"pattern": _PIN}), following(_PIN, "must be 4 to 8 digits, or empty")
]
_TEXTS = (
    "number", "card_format", "uid", "plate", "type", "username", "holder_name", "pin", "note",
)  # fmt: skip
_VALUES = ("facility_code", "card_number", "customer_id", "company_id", "valid_from", "valid_until")


class CardListBody(Paged):
    """A filter of access cards; `search` looks in number, holder, username and plate."""

    search: Text = ""


class CardSheetBody(Body):
    """A filter of access cards; all without a search."""

    search: Text = ""


class UsernameBody(Body):
    """The holder of an access card."""

    username: Annotated[str, Field(strict=True, min_length=1, max_length=120)]


class CardFields(WriteBody):
    """The fields of a card that can be written; others are ignored. null removes a value, but never a state."""

    null_means: ClassVar[Mapping[str, JsonValue]] = MappingProxyType(
        {
            **dict.fromkeys(_TEXTS, ""),
            **dict.fromkeys(_VALUES),
            "zones": [],
            "schedules": [],
            "first_person": False,
            "duress": False,
        }
    )

    number: Word | None = None
    facility_code: NumberOrDigits | None = None
    card_number: NumberOrDigits | None = None
    card_format: Word | None = None
    uid: Word | None = None
    plate: Word | None = None
    type: Number | Word | None = None
    status: CardStatus | None = None
    enabled: Yes | None = None
    username: Word | None = None
    holder_name: Word | None = None
    customer_id: Number | None = None
    company_id: Number | None = None
    valid_from: Bound | None = None
    valid_until: Bound | None = None
    pin: Pin | None = Field(default=None, repr=False)
    zones: Names | None = None
    schedules: Names | None = None
    first_person: Yes | None = None
    duress: Yes | None = None
    note: Line | None = None


class NewCardBody(CardFields):
    """An access card to be created."""


class CardBody(CardFields):
    """Changed fields of an access card."""

    id: Id


class LifecycleBody(Body):
    """The new state of an access card. Any state may follow any other."""

    id: Id
    status: CardStatus
    reason: Line | None = None


class CardToDeviceBody(Body):
    """An access card and the device to send it to."""

    id: Id
    device_id: Id


log = structlog.get_logger(__name__)

_PATH = "/v1/access"
_CARD = KIND = "access_card"
_BOUNDS = ("valid_from", "valid_until")
SECRETS = ("pin", "pin_code")
"""Fields of a card's record that are never shown."""
_TAGGED = tuple(name for name in CardFields.model_fields if name not in SECRETS)
_IF_MATCH = "If-Match"
_ETAG_DIGITS = 16


_IDS = 2000
_STRETCH = 40  # about 1 ms of work, so that lanes come first
_FIELDS = (
    Column("Username"),
    Column("Plate", width=12),
    Column("Facility code", "number", 12),
    Column("Card number", width=14),
    Column("Card format", width=12),
    Column("UID"),
    Column("Type", width=12),
    Column("Customer id", "number", 12),
    Column("Company id", "number", 12),
    Column("Note", width=40),
)
_NAMES = tuple(column.title.lower().replace(" ", "_") for column in _FIELDS)
COLUMNS = (
    Column("Id", "number", 12),
    Column("Number"),
    Column("Status", width=12),
    Column("Holder", width=28),
    Column("Valid from", "moment", 20),
    Column("Valid until", "moment", 20),
    *_FIELDS,
)


async def card_rows(cards: Cards, search: str) -> AsyncIterator[list[list[Cell]]]:
    """Yield the rows of all cards that pass the search, newest first, without PINs."""
    below = LARGEST_ID
    while ids := await cards.ids_below(below, search=search, limit=_IDS):
        below = ids[-1]
        for start in range(0, len(ids), _STRETCH):
            yield [_row(item) for item in await cards.of_ids(ids[start : start + _STRETCH])]


def _row(item: StoredCard) -> list[Cell]:
    card, record = item.card, json.loads(item.record)
    stated: list[Cell] = [card.card_id, card.number, card.status.value, card.holder, card.valid_from, card.valid_until]
    return stated + [_cell(record.get(name)) for name in _NAMES]


def _cell(value: JsonValue) -> Cell:
    return None if isinstance(value, dict | list | bool) else value


class CardsFamily(Family):
    """The handlers of `/v1/access`. A card is found by any id that it ever had.

    A change with `If-Match` is refused if the card is not as its caller saw it.
    """

    def __init__(self, context: InterfaceContext) -> None:
        super().__init__(context)
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    @operation("POST", _PATH, VIEW_CARDS, _CARD, purpose="One access card by its id", answer=CardAnswer, reads=True)
    async def _get(self, wanted: ById) -> web.StreamResponse:
        return await self._answer(await self._known(wanted.id))

    @operation(
        "POST",
        f"{_PATH}/username",
        VIEW_CARDS,
        _CARD,
        purpose="One access card by its username",
        answer=CardAnswer,
        reads=True,
    )
    async def _of_username(self, wanted: UsernameBody) -> web.StreamResponse:
        known = await self.context.store.cards.of_username(wanted.username)
        if known is None:
            raise NotFoundError(text("refused.card_of_username_unknown"))
        return await self._answer(known)

    @operation(
        "POST", f"{_PATH}/list", VIEW_CARDS, "access_cards", purpose="List access cards", answer=CardsAnswer, reads=True
    )
    async def _list(self, wanted: CardListBody, request: web.Request) -> web.StreamResponse:
        known, count = await self.context.store.cards.page(
            search=wanted.search, offset=wanted.offset, limit=wanted.limit
        )
        ids = [item.card.card_id for item in known]
        waiting = (await self.context.store.pending_writes.arriving(KIND, ids)).waiting
        doubted = await self.context.store.pending_writes.in_doubt(KIND, ids)
        shown = (
            card_record(item, waiting.get(number, ()), in_doubt=number in doubted)
            for number, item in zip(ids, known, strict=True)
        )
        return await success_listed(request, "access_cards", shown, count=count)

    @operation(
        "POST",
        f"{_PATH}/excel",
        VIEW_CARDS,
        "access_cards",
        purpose="Access cards as Excel",
        answer_type=XLSX,
        reads=True,
    )
    async def _sheet(self, wanted: CardSheetBody, request: web.Request) -> web.StreamResponse:
        return await self.context.spreadsheets.answer(
            request,
            name="access-cards",
            sheet="Access cards",
            columns=COLUMNS,
            rows=card_rows(self.context.store.cards, wanted.search),
            zone=self._zone,
        )

    @operation("PUT", _PATH, ADD_CARDS, _CARD, purpose="Create an access card", answer=CardAnswer)
    async def _create(self, wanted: NewCardBody, caller: Caller) -> web.StreamResponse:
        """Add a card. A card that no reading can match is accepted, with a warning: its number may be added later."""
        body = wanted.fields
        if all(value in (None, "") for value in body.values()):
            raise RequestRefused(400, text("refused.card_empty"))
        self._refuse_never_valid(body)
        written = await self.context.writes.write(CARD_CREATE, body)
        await self._tell(caller, "made", written.record_id)
        return await self._written(written)

    @operation("PATCH", _PATH, EDIT_CARDS, _CARD, purpose="Update an access card", answer=CardAnswer)
    async def _update(self, change: SentChange[CardBody], request: web.Request, caller: Caller) -> web.StreamResponse:
        async with self._turn(request, change.id) as known:
            shown = card_record(known, ())
            body = change.to(shown).fields
            if not all(change.leaves(name, shown) for name in _BOUNDS if name in body):
                self._refuse_never_valid(body)
            written = await self.context.writes.write(CARD_UPDATE, {**body, "id": known.card.card_id})
        await self._tell(caller, "changed", written.record_id)
        return await self._written(written)

    def _refuse_never_valid(self, body: JsonObject) -> None:
        """Refuse two bounds that leave no time between them. For one bound alone, the answer carries a warning."""
        begin, end = (body.get(name) for name in _BOUNDS)
        if isinstance(begin, str) and isinstance(end, str):
            period = asked_period(begin, end, self._zone, names=_BOUNDS)
            if period[0] is not None and period[1] is not None and period[0] >= period[1]:
                raise RequestRefused(400, text("refused.validity_reversed"))

    @operation(
        "PATCH",
        f"{_PATH}/lifecycle",
        needs("can_edit_access_cards"),
        _CARD,
        purpose="Update the lifecycle of an access card",
        answer=CardAnswer,
    )
    async def _lifecycle(self, wanted: LifecycleBody, request: web.Request, caller: Caller) -> web.StreamResponse:
        """Set a card's state. Any state may follow any other: the interface's specification has no transitions."""
        async with self._turn(request, wanted.id) as known:
            body: JsonObject = {"id": known.card.card_id, "status": wanted.status.value}
            if wanted.reason is not None:
                body["reason"] = wanted.reason
            written = await self.context.writes.write(CARD_LIFECYCLE, body)
        await self._tell(caller, "set", written.record_id, status=wanted.status.value)
        return await self._written(written)

    @operation("DELETE", _PATH, DELETE_CARDS, _CARD, purpose="Delete an access card", answer=CardAnswer)
    async def _delete(self, wanted: ById, request: web.Request, caller: Caller) -> web.StreamResponse:
        """Delete a card; answer with the card as it was."""
        async with self._turn(request, wanted.id) as known:
            written = await self.context.writes.write(CARD_DELETE, {"id": known.card.card_id})
        await self._tell(caller, "deleted", known.card.card_id)
        shown = {**card_record(known, ()), "sync": written.sync_of_deleted}
        return success(access_card=shown, warnings=())

    @operation(
        "POST",
        f"{_PATH}/device",
        VIEW_CARDS & CONTROL_DEVICES,
        _CARD,
        purpose="Send an access card to a device",
        answer=CardAnswer,
    )
    async def _to_device(self, wanted: CardToDeviceBody) -> web.StreamResponse:
        """Refuse to send a card to a device (409): no driver stores cards, since the gateway decides."""
        known = await self._known(wanted.id)
        device = await self.context.store.devices.get(
            await self.context.store.pending_writes.site_id("device", wanted.device_id)
        )
        if device is None:
            raise NotFoundError(text("refused.device_id_unknown", device=str(wanted.device_id)))
        if not device.at_site:
            raise CommandRefused(
                text("refused.card_to_foreign_device", card=str(known.card.card_id), device=str(device.id))
            )
        raise CommandRefused(
            text("refused.card_to_device", card=str(known.card.card_id), driver=device.kind, device=str(device.id))
        )

    @property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.context.running_site().site.timezone)

    async def _tell(self, caller: Caller, change: str, card_id: int | None, *, status: str = "") -> None:
        """Record the change and the caller as an event; `status`: what the card was set to."""
        stamp, card = self.context.clock.wall(), str(card_id)
        what = f"set to {status}" if status else change
        if status:
            said = text("event.card.set", card=card, status=status, who=caller.username)
        else:
            said = text(f"event.card_was.{change}", card=card, who=caller.username)
        event = Event(
            kind=EventKind.CARDS_CHANGED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=said,
            data={"card_id": card_id, "change": what, "by": caller.username},
        )
        try:
            await self.context.store.journal.record(Entry(events=(event,)))
        except StoreError as error:
            log.warning("card_change_not_recorded", error=str(error))  # the change itself stands

    @asynccontextmanager
    async def _turn(self, request: web.Request, card_id: int) -> AsyncIterator[StoredCard]:
        """Change a card while nobody else does. Raises RequestRefused (412) if it is not as the caller saw it."""
        number = await self.context.store.pending_writes.site_id(KIND, card_id)
        async with self._turns.setdefault(number, asyncio.Lock()):
            known = await self._known(card_id)
            refuse_changed(request, str(card_record(known, ())["etag"]))
            yield known

    async def _known(self, card_id: int) -> StoredCard:
        known = await self.context.store.cards.get(await self.context.store.pending_writes.site_id(KIND, card_id))
        if known is None:
            raise NotFoundError(text("refused.card_unknown", card=str(card_id)))
        return known

    async def _written(self, written: WriteResult) -> web.StreamResponse:
        known = None if written.record_id is None else await self.context.store.cards.get(written.record_id)
        if known is not None:
            return await self._answer(known)
        return success(access_card=_without_secrets({"id": None, **written.record}), warnings=())

    async def _answer(self, known: StoredCard) -> web.StreamResponse:
        number = known.card.card_id
        waiting = await self.context.store.pending_writes.waiting(KIND, number)
        in_doubt = bool(await self.context.store.pending_writes.in_doubt(KIND, (number,)))
        warnings = _warnings(known.card, self.context.running_site()) + await self._spelled_alike(known.card)
        return success(access_card=card_record(known, waiting, in_doubt=in_doubt), warnings=warnings)

    async def _spelled_alike(self, card: Card) -> tuple[str, ...]:
        """Return a warning if other cards answer to the same reading, which would open for none of them."""
        near = near_alias("")
        aliases = [alias for alias in card.aliases if not alias.startswith(near)]
        others = [
            str(one.card_id) for one in await self.context.store.cards.matching(aliases) if one.card_id != card.card_id
        ]
        if not others:
            return ()
        return (f"one reading means this card and card {', '.join(others)} too, so it opens for neither",)


def card_record(known: StoredCard, waiting: Sequence[WaitingWrite], *, in_doubt: bool = False) -> Record:
    """Return a card as a record of the interface, without its PIN. `in_doubt`: central may have lost it."""
    record = json.loads(known.record)
    shown: Record = _without_secrets(record if isinstance(record, dict) else {})
    tag = etag(shown, _TAGGED)
    shown |= {"id": known.card.card_id, "decided_as": known.card.status.value, "has_pin": bool(known.card.pin)}
    shown |= {"etag": tag}
    return shown | sync_state(waiting, "in_doubt" if in_doubt else "in_step")


def _without_secrets(record: Record) -> Record:
    return {name: value for name, value in record.items() if name not in SECRETS}


def _warnings(card: Card, site: Site) -> tuple[str, ...]:
    """Return the reasons why a card opens no gate, as far as they lie in the card itself and the site's readers."""
    told = [*doubts_of_number(card, site)]
    if not card.aliases:
        told.append("no reader can match this card: it has no number, UID or plate that can be read")
    if card.valid_from is not None and card.valid_until is not None and card.valid_until <= card.valid_from:
        told.append("the card is never valid: valid_until is before valid_from")
    if card.unread:
        told.append(f"{card.unread}: cannot be understood, so the card counts as {card.status.value}")
    elif card.status is not CardStatus.ACTIVE:
        told.append(f"the card counts as {card.status.value} and opens nothing")
    return tuple(told)


def etag(record: Mapping[str, JsonValue], names: Iterable[str]) -> str:
    """Return the tag of these fields of a record, which people and programs write: equal tags mean equal fields."""
    told = json.dumps({name: record.get(name) for name in names}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:_ETAG_DIGITS]


def refuse_changed(request: web.Request, present: str) -> None:
    """Refuse a change (412) whose `If-Match` is not the present tag of the record; without one, do nothing."""
    seen = request.headers.get(_IF_MATCH)
    if seen is not None and seen.strip().strip('"') not in {present, "*"}:
        raise RequestRefused(
            412,
            text("refused.changed_meanwhile"),
        )
