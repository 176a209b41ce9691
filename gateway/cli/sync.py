"""`edge-gateway sync`: the state of synchronisation, refresh and comparison."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import typer

from gateway.cli.client import RunningGatewayClient
from gateway.cli.printing import print_value
from gateway.cli.site_now import SiteNow, site_now
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.errors import GatewayError
from gateway.domain.server_lines import CentralStatus
from gateway.web.answers import BooksAnswer, SyncAnswer

app = typer.Typer(
    no_args_is_help=True,
    help="Show the state of synchronisation, fetch everything again, or send what central has lost.\n\n"
    "Example: edge-gateway sync status",
)
_LOOK_SECONDS = 0.5


@app.command("status")
def status(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """Show whether central answers, what was fetched last, and what waits. Exit status 1 when records are missing.

    Example: edge-gateway sync status
    """
    with connected(data, url) as gateway:
        answer = _state(gateway)
        state = answer.sync
        books = gateway.answer_of(BooksAnswer, "/status/outbox/books", {}).books
        site = site_now(gateway)
    found = books.delivered + books.waiting + books.parked + books.replaced + books.dropped
    if as_json:
        print_value([answer.model_dump(mode="json")["sync"], books.model_dump(mode="json")])
    else:
        typer.echo("\n".join(_lines(site, state)))
        typer.echo(
            f"{books.accepted} accepted for central: {books.delivered} delivered, {books.waiting} waiting, "
            f"{books.parked} refused, {books.replaced} replaced by newer, {books.dropped} dropped"
        )
    if not books.balance:
        raise GatewayError(
            f"the books do not balance: {books.accepted} were accepted for central, {found} are accounted for;"
            " keep the log and the data folder, and report this"
        )


@app.command("refresh")
def refresh(data: Data = USUAL_DATA, url: Url = "") -> None:
    """Fetch all devices, cameras and access cards again, and wait for the end. Exit status 1 when that fails.

    The present list stays in use meanwhile. A card is removed only when central no longer has it.

    Example: edge-gateway sync refresh
    """
    with connected(data, url) as gateway:
        gateway.asked("/status/sync/refresh", {})
        state = _followed(
            gateway, lambda state: state.refreshing, away="everything is fetched again as soon as it does"
        )
        typer.echo("\n".join(_lines(site_now(gateway), state)))
        if state.incomplete:
            raise GatewayError("central sent incomplete or contradictory lists; the lines above say which")


@app.command("reconcile")
def reconcile(
    data: Data = USUAL_DATA,
    url: Url = "",
    days: Annotated[int, typer.Option("--days", min=1, max=400, help="Compare the records of this many days.")] = 30,
) -> None:
    """Send again what central has lost, after it was restored from a backup. Exit status 1 when it does not answer.

    Example: edge-gateway sync reconcile --days 14
    """
    with connected(data, url) as gateway:
        gateway.asked("/status/sync/reconcile", {"days": days})
        state = _followed(
            gateway, lambda state: state.reconciling, away="the comparison continues as soon as it answers"
        )
        typer.echo(state.reconciled)


def _state(gateway: RunningGatewayClient) -> SyncAnswer:
    return gateway.answer_of(SyncAnswer, "/status/sync", {})


def _followed(gateway: RunningGatewayClient, busy: Callable[[CentralStatus], bool], *, away: str) -> CentralStatus:
    """Print the progress while `busy`; return the last state.

    Raises GatewayError when central does not answer; its message ends with `away`.
    """
    said = ""
    while busy(state := _state(gateway).sync):
        if state.reachable is False:
            raise GatewayError(f"central does not answer: {state.error}; {away}")
        if state.progress not in ("", said):
            said = state.progress
            typer.echo(said)
        time.sleep(_LOOK_SECONDS)  # noqa: TID251 (a program without a loop)
    return state


def _lines(site: SiteNow, state: CentralStatus) -> list[str]:
    reach = {True: "central answers", False: f"central does not answer: {state.error}", None: "not tried yet"}
    fetched = f"{site.time(state.pulled_at)}: {state.pulled}" if state.pulled_at else "nothing was fetched yet"
    return [
        f"{reach[state.reachable]}, since {site.time(state.since)}",
        fetched,
        *([f"under way: {state.progress}"] if state.progress else []),
        *(f"! {notice.text}" for notice in state.notices),
    ]
