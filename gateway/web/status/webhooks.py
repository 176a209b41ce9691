"""Webhooks for the page and the command: list, enable, replay, test. Programs register them under `/api/v1`."""

from __future__ import annotations

from dataclasses import dataclass
from zoneinfo import ZoneInfo

from aiohttp import web

from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.http.bodies import Body, Text, read_body
from gateway.web.http.dates import asked_period
from gateway.web.http.envelope import success
from gateway.web.http.errors import RequestRefused
from gateway.web.legacy.webhooks import WebhookActions, webhook_record
from gateway.web.operation import Operation, needs

WEBHOOK_LIST = Operation("POST", "/status/webhook/list", needs("can_edit_settings"), "webhooks", reads=True)
WEBHOOK_ENABLE = Operation("POST", "/status/webhook/enable", needs("can_edit_settings"), "webhook")
WEBHOOK_REPLAY = Operation("POST", "/status/webhook/replay", needs("can_edit_settings"), "webhook")
WEBHOOK_TEST = Operation("POST", "/status/webhook/test", needs("can_edit_settings"), "webhook")


class WebhookById(Body):
    """A webhook by its id."""

    id: Text


class WebhookReplay(Body):
    """Messages to send again: those given up; with `since` and `until`, all of that period in the site's time zone."""

    id: Text
    since: Text = ""
    until: Text = ""


@dataclass(frozen=True, kw_only=True)
class StatusWebhooks:
    """The handlers of `/status/webhook/…`."""

    actions: WebhookActions
    zone: ZoneInfo

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (
            Route(WEBHOOK_LIST, self._list),
            Route(WEBHOOK_ENABLE, self._enable),
            Route(WEBHOOK_REPLAY, self._replay),
            Route(WEBHOOK_TEST, self._test),
        )

    async def _list(self, request: web.Request, _: Caller) -> web.StreamResponse:
        await read_body(request, Body)
        known = await self.actions.all()
        return success(webhooks=[webhook_record(one) for one in known], count=len(known))

    async def _enable(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, WebhookById)
        webhook = await self.actions.enable(wanted.id, by=f"user:{caller.username}")
        return success(webhook=webhook_record(webhook))

    async def _replay(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, WebhookReplay)
        since, until = asked_period(wanted.since, wanted.until, self.zone, names=("since", "until"))
        if until is not None and since is None:
            raise RequestRefused(400, "since: is needed with 'until'")
        count = await self.actions.replay(wanted.id, since=since, until=until)
        return success(webhook={"id": wanted.id}, count=count)

    async def _test(self, request: web.Request, _: Caller) -> web.StreamResponse:
        """Send a message of the type `webhook.test`; `fault` says why the receiver did not accept it."""
        wanted = await read_body(request, WebhookById)
        fault = await self.actions.test(wanted.id)
        return success(webhook={"id": wanted.id}, taken=not fault, fault=fault)
