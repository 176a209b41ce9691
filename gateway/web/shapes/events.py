"""Events: what is asked and what is told."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.events import Category, EventKind, Severity
from gateway.web.http.bodies import Cursored, Id, Text
from gateway.web.shapes.answers import Answer, CursorListed

_Ids = Annotated[tuple[Id, ...], Field(max_length=1000, fail_fast=True)]


class EventListBody(Cursored):
    """Which events. `types` and `event_types` are two filters: where both are sent, an event passes both."""

    device_ids: _Ids = ()
    types: _Ids = ()
    event_types: _Ids = ()
    start_date: Text = ""
    end_date: Text = ""


class EventRecord(BaseModel):
    """An event. `data` is JSON text, as the document has it; what follows it is the gateway's own.

    A `late` one was recorded more than a minute after its `date_at`, at `recorded_at`: after an outage of the disk,
    once the clock was set, or because somebody told of it later. It says what was, never how things stand now.
    """

    model_config = ConfigDict(frozen=True)

    id: int
    device_id: int
    type: EventKind
    category: Category
    subcategory: Severity
    name: str
    description: str
    date_at: str
    data: str
    lane_id: str
    clock_trusted: bool
    late: bool
    recorded_at: str | None = None


class EventAnswer(Answer):
    """One event."""

    event: EventRecord


class EventsAnswer(CursorListed):
    """Events, newest first.

    A search among very many events ends after a while: then `complete` is there and false, `count` is of the events
    that were looked at, and `next_cursor` goes on behind them, also when nothing was found.
    """

    events: tuple[EventRecord, ...]
    complete: Literal[False] | None = None
