"""`edge-gateway events`: lists, follows and exports the events of the site."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from gateway.cli.client import RunningGatewayClient, replacing
from gateway.cli.site_now import SiteNow, site_now
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.errors import ConfigError, GatewayError
from gateway.domain.events import EventKind, Severity, without_formula
from gateway.web.answers import EventRecord, EventsAnswer

app = typer.Typer(
    no_args_is_help=True,
    help="List the events of the site, follow them, and export them.\n\nExample: edge-gateway events follow",
)
PAGE = 200
_MOST = 1_000_000_000
_LOOK_SECONDS = 1.0
_COLUMNS = ("id", "date_at", "type", "severity", "name", "lane_id", "device_id", "description", "data")

_Lane = Annotated[str, typer.Option("--lane", help="Only events of the lane with this id or name.")]
_Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="TYPE", help="Only this type, as 103 or access_denied; repeatable."),
]
_Severity = Annotated[
    str, typer.Option("--severity", metavar="LEVEL", help="Only this severe or worse: info, notice, warning or alarm.")
]
_Search = Annotated[str, typer.Option("--search", help="Only events with this text: a plate, a card, a name.")]
_Since = Annotated[str, typer.Option("--since", metavar="DATE", help="From this day or moment on, in the site's time.")]
_Until = Annotated[str, typer.Option("--until", metavar="DATE", help="Until the end of this day, or this moment.")]


@dataclass(frozen=True, slots=True)
class _Filter:
    """A filter of events. `body` is the part that the gateway applies; the lane and severity are applied here."""

    body: dict[str, object]
    lane: str
    least: Severity

    def wants(self, event: EventRecord) -> bool:
        return event.subcategory >= self.least and self.lane in ("", event.lane_id)

    def at(self, site: SiteNow) -> _Filter:
        """Return the filter with the lane's id in place of its name.

        Raises ConfigError for an unknown lane and for a date that is none.
        """
        _check_dates(str(self.body.get("start_date", "")), str(self.body.get("end_date", "")), site.zone)
        return replace(self, lane=site.lane(self.lane).lane_id) if self.lane else self


@app.command("list")
def show(
    *,
    limit: Annotated[int, typer.Option("--limit", min=1, max=_MOST, help="So many at most.")] = 50,
    lane: _Lane = "",
    types: _Types = None,
    severity: _Severity = "info",
    search: _Search = "",
    since: _Since = "",
    until: _Until = "",
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """List events, newest first. With --json one object a line.

    Example: edge-gateway events list --since 2026-01-31 --type access_denied --lane north-entry
    """
    wanted = _filter(lane, types, severity, search, period=(since, until))
    with connected(data, url) as gateway:
        site = site_now(gateway)
        wanted = wanted.at(site)
        show_event = _json_shown if as_json else partial(_shown, site)
        for event in islice(_newest_first(gateway, wanted), limit):
            typer.echo(show_event(event))


@app.command("follow")
def follow(
    *,
    lane: _Lane = "",
    types: _Types = None,
    severity: _Severity = "info",
    search: _Search = "",
    data: Data = USUAL_DATA,
    url: Url = "",
    as_json: JsonWanted = False,
) -> None:
    """Print events as they come, until Ctrl-C.

    Example: edge-gateway events follow --severity warning
    """
    wanted = _filter(lane, types, severity, search, period=("", ""))
    with connected(data, url) as gateway:
        site = site_now(gateway)
        wanted = wanted.at(site)
        show_event = _json_shown if as_json else partial(_shown, site)
        seen = next((event.id for event in _newest_first(gateway, wanted)), 0)
        while True:
            new = []
            for event in _newest_first(gateway, wanted):
                if event.id <= seen:
                    break
                new.append(event)
            for event in reversed(new):
                typer.echo(show_event(event))
                seen = event.id
            time.sleep(_LOOK_SECONDS)  # noqa: TID251 (a program without a loop)


@app.command("export")
def export(
    output: Annotated[Path, typer.Argument(metavar="FILE.csv", help="The file to write.")],
    *,
    lane: _Lane = "",
    types: _Types = None,
    severity: _Severity = "info",
    search: _Search = "",
    since: _Since = "",
    until: _Until = "",
    data: Data = USUAL_DATA,
    url: Url = "",
) -> None:
    """Write events to a CSV file, newest first.

    Example: edge-gateway events export january.csv --since 2026-01-01 --until 2026-01-31
    """
    wanted = _filter(lane, types, severity, search, period=(since, until))
    count = 0
    with (
        connected(data, url) as gateway,
        replacing(output) as draft,
        draft.open("w", newline="", encoding="utf-8-sig") as file,
    ):
        wanted = wanted.at(site_now(gateway))
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for event in _newest_first(gateway, wanted):
            cells = _columns(event).values()
            writer.writerow(without_formula(cell) if isinstance(cell, str) else cell for cell in cells)
            count += 1
            if count % 10_000 == 0:
                typer.echo(f"{count} events …", err=True)
    typer.echo(f"{output}: {count} events")


def _newest_first(gateway: RunningGatewayClient, wanted: _Filter) -> Iterator[EventRecord]:
    """Yield the events that pass the filter, fetching page after page on demand.

    `page` 2 is sent with the cursor, because an account that pulls by cursor alone counts as a consumer, for which
    unread events are kept.
    """
    body = {**wanted.body, "page_limit": PAGE}
    while True:
        page = gateway.answer_of(EventsAnswer, "/v1/event/list", body)
        yield from filter(wanted.wants, page.events)
        if page.next_cursor is None or (page.complete is None and len(page.events) < PAGE):
            return
        body |= {"cursor_id": page.next_cursor, "page": 2}


def _filter(lane: str, types: list[str] | None, severity: str, search: str, *, period: tuple[str, str]) -> _Filter:
    body: dict[str, object] = {"types": [_kind(name) for name in types or ()], "search": search}
    body |= {name: value for name, value in zip(("start_date", "end_date"), period, strict=True) if value}
    try:
        least = Severity[severity.upper()]
    except KeyError as error:
        raise ConfigError("--severity must be info, notice, warning or alarm") from error
    return _Filter(body, lane, least)


def _check_dates(since: str, until: str, zone: ZoneInfo) -> None:
    """Raise ConfigError with the option whose date the gateway would refuse."""
    from gateway.web.http.dates import asked_period  # noqa: PLC0415  # other commands start faster without it

    try:
        asked_period(since, until, zone, names=("--since", "--until"))
    except GatewayError as error:
        raise ConfigError(str(error)) from error


def _kind(name: str) -> int:
    if name.isdecimal():
        return int(name)
    try:
        return EventKind[name.upper().replace("-", "_")]
    except KeyError as error:
        raise ConfigError(f"--type {name}: there is no such type; docs/event-numbers.md has them all") from error


def _shown(site: SiteNow, event: EventRecord) -> str:
    lane = f"  [{event.lane_id}]" if event.lane_id else ""
    when = site.time(event.date_at)
    return f"{event.id}  {when}  {event.subcategory.name:7}  {event.name}{lane}: {event.description}"


def _json_shown(event: EventRecord) -> str:
    return json.dumps(_columns(event), ensure_ascii=False)


def _columns(event: EventRecord) -> dict[str, object]:
    known = {**event.model_dump(), "severity": event.subcategory.name.lower()}
    return {name: known[name] for name in _COLUMNS}
