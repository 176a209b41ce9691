"""`edge-gateway outbox`: records that wait for central, and actions on those that central refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.client import RunningGatewayClient
from gateway.cli.printing import print_answers, print_value
from gateway.cli.site_now import SiteNow, site_now
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.errors import GatewayError
from gateway.web.answers import BooksAnswer, WaitingReason, WaitingRow, WaitingRows

app = typer.Typer(
    no_args_is_help=True,
    help="Show what waits for central or was refused. Send it again, edit it, or drop it.\n\n"
    "Example: edge-gateway outbox list",
)
_PAGE = 500
_UNTRIED = "not tried yet"
_Number = Annotated[int, typer.Argument(metavar="NUMBER", min=1, help="The number that `outbox list` shows.")]


@app.command("list")
def show(
    data: Data = USUAL_DATA,
    url: Url = "",
    waiting: Annotated[bool, typer.Option("--all", help="Include records that wait, not only refused ones.")] = False,
    as_json: JsonWanted = False,
) -> None:
    """List refused records, oldest first, with central's message, and why other records wait.

    Files that were lost at the site before they were sent are listed too.

    Example: edge-gateway outbox list
    """
    found = False
    with connected(data, url) as gateway:
        if as_json:
            print_answers(_rows(gateway, waiting=waiting))
            return
        site = site_now(gateway)
        for row in _rows(gateway, waiting=waiting):
            found = True
            typer.echo("\n".join(_lines(site, row)))
        answer = gateway.answer_of(BooksAnswer, "/status/outbox/books", {})
    if not found:
        typer.echo("nothing waits for central" if waiting else "central refused nothing")
    typer.echo("".join(f"{line}\n" for line in _why(site, answer.books.waiting, answer.reasons)), nl=False)


@app.command("show")
def one(number: _Number, data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """Show one record with all its fields, a line each.

    Example: edge-gateway outbox show 17
    """
    with connected(data, url) as gateway:
        row = gateway.answer_of(WaitingRows, "/status/outbox/list", {"id": number}).waiting[0]
        site = site_now(gateway)
    if as_json:
        print_value(row.model_dump(mode="json"))
        return
    for name, value in {**row.model_dump(mode="json"), "since": site.time(row.since)}.items():
        typer.echo(f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")


@app.command("retry")
def retry(number: _Number, data: Data = USUAL_DATA, url: Url = "") -> None:
    """Send a record again unchanged, after its problem was solved at central.

    Example: edge-gateway outbox retry 17
    """
    _act(data, url, "retry", {"id": number})
    typer.echo(f"{number} is sent again")


@app.command("edit")
def edit(
    number: _Number,
    fields: Annotated[list[str], typer.Argument(metavar="FIELD=VALUE...", help="The new value, as JSON or text.")],
    data: Data = USUAL_DATA,
    url: Url = "",
) -> None:
    """Change fields of a record and send it again. null removes a field. The site uses the result too.

    Example: edge-gateway outbox edit 17 number=00199573 note=null
    """
    _act(data, url, "edit", {"id": number, "fields": dict(map(_field, fields))})
    typer.echo(f"{number} is changed and sent again")


@app.command("settle")
def settle(
    number: _Number,
    data: Data = USUAL_DATA,
    url: Url = "",
    central_id: Annotated[int | None, typer.Option(min=1, help="Central has the record under this id.")] = None,
    not_there: Annotated[
        bool, typer.Option("--not-there", help="Central does not have the record: send it again.")
    ] = False,
) -> None:
    """Settle a record of unknown outcome, after you looked for it at central.

    Example: edge-gateway outbox settle 17 --central-id 5012
    """
    if (central_id is None) is not not_there:
        raise GatewayError("say either --central-id ID or --not-there")
    _act(data, url, "settle", {"id": number, "central_id": central_id, "not_there": not_there})
    typer.echo(
        f"{number} is sent again" if not_there else f"{number} counts as delivered; central has it as {central_id}"
    )


@app.command("drop")
def drop(
    number: _Number,
    data: Data = USUAL_DATA,
    url: Url = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Drop a record: central never gets it. An event records who did it.

    A changed record becomes central's again with the next pull. A record made here that central never had is deleted.

    Example: edge-gateway outbox drop 17 --yes
    """
    with connected(data, url) as gateway:
        row = gateway.answer_of(WaitingRows, "/status/outbox/list", {"id": number}).waiting[0]
        if not yes:
            typer.echo("\n".join(_lines(site_now(gateway), row)))
            typer.confirm("Drop it?", abort=True)
        gateway.asked("/status/outbox/drop", {"id": number})
    typer.echo(f"{number} is dropped; central will never get it")


def _rows(gateway: RunningGatewayClient, *, waiting: bool) -> Iterator[WaitingRow]:
    after: int | None = 0
    while after is not None:
        body = {"after": after, "limit": _PAGE, "all": waiting}
        answer = gateway.answer_of(WaitingRows, "/status/outbox/list", body)
        yield from answer.waiting
        after = answer.next


def _act(data: Path, url: str, what: str, body: dict[str, object]) -> None:
    with connected(data, url) as gateway:
        gateway.asked(f"/status/outbox/{what}", body)


def _field(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise GatewayError(f"{text!r} is not FIELD=VALUE")
    try:
        parsed: object = json.loads(value)
    except ValueError:
        parsed = value
    # A number that JSON writes differently, as with a leading zero, is meant as text.
    return name, parsed if not isinstance(parsed, int | float) or json.dumps(parsed) == value else value


def _why(site: SiteNow, waiting: int, reasons: Sequence[WaitingReason]) -> list[str]:
    """Return lines that say how many records wait, and how their last attempts ended."""
    if not waiting:
        return []
    return [
        "1 record waits, and is sent once nothing below stands in its way:"
        if waiting == 1
        else f"{waiting} records wait, and are sent once nothing below stands in their way:",
        *(
            f"    {one.count} x {one.kind} {one.action}, since {site.time(one.since)}: {one.error or _UNTRIED}"
            for one in reasons
        ),
    ]


def _lines(site: SiteNow, row: WaitingRow) -> list[str]:
    tries = "1 try" if row.tries == 1 else f"{row.tries} tries"
    fields = json.dumps(row.fields, ensure_ascii=False)
    how = "nobody knows whether central has it" if row.unknown else "refused" if row.refused else "waits"
    if row.lost:
        how = "its file is lost at the site"
    state = f"{how}, since {site.time(row.since)}, {tries}"
    return [
        f"{row.id}  {row.kind} {row.record_id}: {row.action}  ({state})",
        *([f"    {'here' if row.lost else 'central'}: {row.error}"] if row.error else []),
        f"    {fields if len(fields) <= 160 else fields[:159] + '…'}",
    ]
