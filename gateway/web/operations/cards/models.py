"""Operations on access cards: rules and models."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, JsonValue

from drivers.settings import following
from gateway.domain.credentials import CardStatus
from gateway.runtime.clock import iso_utc
from gateway.web.http.bodies import Body, Id, Line, Number, Paged, Plain, Text, Word, WriteBody, Yes


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
