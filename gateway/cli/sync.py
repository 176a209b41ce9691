"""`edge-gateway sync`: how the site stands with central, everything fetched anew, and who pulls the site's lists."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.cli.signed_in import PASSWORD, asked, signed_in
from gateway.domain.errors import GatewayError

app = typer.Typer(
    no_args_is_help=True,
    help="See how the site stands with central, and fetch everything anew.\n\n"
    "Example: edge-gateway sync status --site /etc/edge-gateway/site.toml --user technician",
)
_Site = Annotated[
    Path, typer.Option("--site", metavar="SITE.toml", help="The site file of the gateway that runs here.")
]
_User = Annotated[
    str, typer.Option("--user", help=f"An account of the site; its password is asked for, or in {PASSWORD}.")
]
_PARTS = {
    "delivered": "delivered",
    "waiting": "waiting",
    "parked": "refused",
    "replaced": "replaced by newer",
    "dropped": "dropped",
}
_LOOK_SECONDS = 0.5
_MOST_COUNTED = 10_000


@app.command("status")
def status(site: _Site, user: _User) -> None:
    """Whether central answers, what was fetched last, what a technician should know of it, and what became of all
    that was to go up. Exit status 1 when that does not add up.

    Example: edge-gateway sync status --site /etc/edge-gateway/site.toml --user technician
    """
    with signed_in(site, user) as (address, session):
        typer.echo("\n".join(_lines(_state(address, session))))
        books = json.loads(asked(f"{address}/status/outbox/books", {}, session))["books"]
    found = sum(books[name] for name in _PARTS)
    parts = ", ".join(f"{books[name]} {word}" for name, word in _PARTS.items())
    typer.echo(f"{books['accepted']} accepted for central: {parts}")
    if not books["balance"]:
        raise GatewayError(
            f"the books do not balance: {books['accepted']} were accepted for central, {found} are accounted for;"
            " keep the log and the data folder, and tell whoever looks after the gateway"
        )


@app.command("refresh")
def refresh(site: _Site, user: _User) -> None:
    """Fetch devices, cameras and access cards anew, and wait for the end. Exit status 1 when central does not answer.

    The list that is there goes on to count meanwhile; cards go only when central has them no more.

    Example: edge-gateway sync refresh --site /etc/edge-gateway/site.toml --user technician
    """
    with signed_in(site, user) as (address, session):
        asked(f"{address}/status/sync/refresh", {}, session)
        said = ""
        while (state := _state(address, session))["refreshing"]:
            if state["reachable"] is False:
                raise GatewayError(
                    f"central does not answer: {state['error']}; everything is fetched anew as soon as it does"
                )
            if state["progress"] not in ("", said):
                said = state["progress"]
                typer.echo(said)
            time.sleep(_LOOK_SECONDS)  # noqa: TID251 (a program without a loop)
        typer.echo("\n".join(_lines(state)))


@app.command("readers")
def readers(
    site: _Site,
    user: _User,
    forget: Annotated[
        str | None,
        typer.Option("--forget", metavar="ACCOUNT", help="Take this account's marks away: it will not come again."),
    ] = None,
) -> None:
    """Who pulls events, entries or camera events by cursor, how far each has read, and whose marks are waited for.

    Example: edge-gateway sync readers --site /etc/edge-gateway/site.toml --user technician
    """
    if forget is not None and not forget.strip():
        raise GatewayError("--forget needs the name of an account")
    with signed_in(site, user) as (address, session):
        path, body = ("list", {}) if forget is None else ("forget", {"account": forget})
        told = json.loads(asked(f"{address}/status/reader/{path}", body, session))["readers"]
    typer.echo("\n".join(map(_reader_line, told)) or "nobody pulls the site's lists by cursor")


def _reader_line(reader: dict[str, Any]) -> str:
    what = reader["list"].replace("_", " ") + (f" ({reader['filter']})" if reader["filter"] else "")
    left = "10000 or more" if reader["unread"] >= _MOST_COUNTED else reader["unread"]
    waited = "" if reader["holds"] else "; not waited for any more"
    return (
        f"{reader['account']}, {what}: read up to {reader['read_to']}, {left} unread,"
        f" asked last at {reader['read_at']}{waited}"
    )


def _state(address: str, session: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(asked(f"{address}/status/sync", {}, session))["sync"]
    return told


def _lines(state: dict[str, Any]) -> list[str]:
    reach = {True: "central answers", False: f"central does not answer: {state['error']}", None: "not tried yet"}
    fetched = f"{state['pulled_at']}: {state['pulled']}" if state["pulled_at"] else "nothing was fetched yet"
    return [
        f"{reach[state['reachable']]}, since {state['since']}",
        fetched,
        *([f"under way: {state['progress']}"] if state["progress"] else []),
        *(f"! {notice}" for notice in state["notices"]),
    ]
