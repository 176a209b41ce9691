"""The request bodies that the simulated central takes; unknown fields are refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator


class RequestBody(BaseModel):
    """The base of request bodies, which refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SignIn(RequestBody):
    """POST /v1/auth/login."""

    username: str
    password: str = Field(repr=False)


class Code(RequestBody):
    """POST /v1/auth/mfa."""

    token: str | None = None
    code: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.token is None) == (self.code is None):
            raise ValueError("one of token and code")
        return self


class Empty(RequestBody):
    """An operation without fields."""


class RecordId(RequestBody):
    """One record by id."""

    id: int


class PagesWithoutSearch(RequestBody):
    """A list by pages, without a search."""

    page: int = Field(default=1, ge=1)
    page_limit: int = Field(default=25, ge=1)


class Pages(PagesWithoutSearch):
    """A list by pages."""

    search: str = ""


class Cursor(Pages):
    """A list by pages or by cursor; cursor 0 starts at the newest record."""

    cursor_id: int | None = Field(default=None, ge=0)


class Events(Cursor):
    """POST /v1/event/list."""

    device_ids: list[int] = []
    types: list[int] = []
    event_types: list[int] = []
    start_date: str | None = None
    end_date: str | None = None

    @field_validator("start_date", "end_date")
    @classmethod
    def _dated(cls, value: str | None) -> str | None:
        return value if value is None else _moment(value)


class NewCard(RequestBody):
    """PUT /v1/access."""

    number: str = Field(default="", max_length=120)
    facility_code: int | None = Field(default=None, ge=0)
    card_number: int | None = Field(default=None, ge=0)
    card_format: str = ""
    uid: str = ""
    plate: str = ""
    username: str = ""
    type: int | str = ""
    pin: str = Field(default="", repr=False)
    zones: list[int | str] = []
    schedules: list[int | str] = []
    first_person: bool = False
    duress: bool = False
    enabled: bool = True
    status: Literal["active", "suspended", "lost", "blocked", "expired"] = "active"
    holder_name: str = ""
    customer_id: int | None = None
    company_id: int | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    note: str = ""

    @field_validator("valid_from", "valid_until")
    @classmethod
    def _dated(cls, value: str | None) -> str | None:
        return value if value is None else _moment(value)


class ChangedCard(NewCard):
    """PATCH /v1/access: only the fields that are sent change."""

    id: int


class NewCameraEvent(RequestBody):
    """PUT /v1/camera/event: the event, its time, and the source of the record."""

    camera_id: int
    name: str = Field(min_length=1, max_length=200)
    description: str = ""
    date_at: str
    start_date: str | None = None
    end_date: str | None = None
    clock_trusted: bool = True
    lane: str = ""
    source_name: str = ""
    source_id: int | None = None
    source_event_id: int | None = None
    device_id: int | None = None
    type: int = 0
    category: int = 0
    subcategory: int = 0
    data: str = Field(default="", description="a string, not a parsed object")

    @field_validator("date_at", "start_date", "end_date")
    @classmethod
    def _dated(cls, value: str | None) -> str | None:
        return value if value is None else _moment(value)


def _moment(value: str) -> str:
    """Check that a value is ISO 8601; otherwise raise ValueError."""
    datetime.fromisoformat(value)
    return value


def moment_of(value: str) -> datetime:
    """Parse ISO 8601 as an aware moment; without an offset it is UTC."""
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
