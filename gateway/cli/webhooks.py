"""`edge-gateway webhooks`: lists, enables, tests and replays webhooks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.client import AnswerT
from gateway.cli.printing import print_answers
from gateway.cli.site_now import SiteNow, site_now
from gateway.cli.target import USUAL_DATA, Data, JsonWanted, Url, connected
from gateway.domain.errors import GatewayError
from gateway.web.answers import WebhookEnabled, WebhookList, WebhookRecord, WebhookReplayed, WebhookTested

app = typer.Typer(
    no_args_is_help=True,
    help="List webhooks, enable them, test them, and send failed messages again. Programs register them.\n\n"
    "Example: edge-gateway webhooks list",
)
_Id = Annotated[str, typer.Argument(metavar="WEBHOOK", help="The id that `webhooks list` shows.")]


@app.command("list")
def show(data: Data = USUAL_DATA, url: Url = "", as_json: JsonWanted = False) -> None:
    """List every webhook with its address, its state and its message counts. Secrets are not shown.

    Example: edge-gateway webhooks list
    """
    with connected(data, url) as gateway:
        known = gateway.answer_of(WebhookList, "/status/webhook/list", {}).webhooks
        if as_json:
            print_answers(known)
            return
        site = site_now(gateway)
    for webhook in known:
        typer.echo("\n".join(_lines(site, webhook)))
    if not known:
        typer.echo("no webhooks: programs register them with POST /api/v1/webhooks")


@app.command("enable")
def enable(webhook: _Id, data: Data = USUAL_DATA, url: Url = "") -> None:
    """Enable a disabled webhook. Waiting messages go first.

    Example: edge-gateway webhooks enable wh_0123456789abcdef
    """
    answer = _ask(WebhookEnabled, data, url, "enable", {"id": webhook}).webhook
    typer.echo(f"{webhook} is enabled; {answer.waiting} messages wait for it")


@app.command("replay")
def replay(
    webhook: _Id,
    data: Data = USUAL_DATA,
    url: Url = "",
    since: Annotated[str, typer.Option(metavar="DATE", help="Send all events from here on, delivered or not.")] = "",
    until: Annotated[
        str, typer.Option(metavar="DATE", help="With --since: stop at the end of this day or moment.")
    ] = "",
) -> None:
    """Send failed messages again. With --since, send all events from then on, under the same ids.

    Example: edge-gateway webhooks replay wh_0123456789abcdef --since 2026-01-31
    """
    answer = _ask(WebhookReplayed, data, url, "replay", {"id": webhook, "since": since, "until": until})
    typer.echo(f"{answer.count} messages are sent to {webhook} again")


@app.command("test")
def send_test(webhook: _Id, data: Data = USUAL_DATA, url: Url = "") -> None:
    """Send one webhook.test message and report the answer. The exit status is 1 when it failed.

    Example: edge-gateway webhooks test wh_0123456789abcdef
    """
    answer = _ask(WebhookTested, data, url, "test", {"id": webhook})
    if not answer.taken:
        raise GatewayError(f"{webhook} did not accept the message: {answer.fault}")
    typer.echo(f"{webhook} accepted the message")


def _ask(shape: type[AnswerT], data: Path, url: str, what: str, body: dict[str, str]) -> AnswerT:
    with connected(data, url) as gateway:
        return gateway.answer_of(shape, f"/status/webhook/{what}", body)


def _lines(site: SiteNow, webhook: WebhookRecord) -> list[str]:
    state = f"disabled: {webhook.reason}" if webhook.reason else "enabled"
    ended = f"{webhook.delivered} delivered, {webhook.failed} failed, {webhook.dropped} dropped"
    return [
        f"{webhook.id}  {webhook.url}  ({state})",
        f"    {', '.join(webhook.events)}; by {webhook.created_by} on {site.time(webhook.created_at)}",
        f"    {webhook.waiting} waiting, {ended}",
        *([f"    the last try: {webhook.last_error}"] if webhook.last_error else []),
    ]
