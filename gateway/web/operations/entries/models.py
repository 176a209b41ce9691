"""Operations on parking entries: rules and models."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from gateway.domain.passages import EntryStatus
from gateway.web.answers import Answer, CursorListed
from gateway.web.http.bodies import Body, Cursored, Id, Plain, Text, WriteBody

_Ids = Annotated[tuple[Id, ...], Field(max_length=1000, fail_fast=True)]
_Texts = Annotated[tuple[Text, ...], Field(max_length=1000, fail_fast=True)]
_Statuses = Annotated[tuple[EntryStatus, ...], Field(fail_fast=True)]
_Data = Annotated[Plain, Field(max_length=20_000)]


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
