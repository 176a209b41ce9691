"""Webhooks for the page and the command: list, enable, replay, test. Programs register them under `/api/v1`."""

from __future__ import annotations

from gateway.web.answers import WebhookEnabled, WebhookList, WebhookNamed, WebhookReplayed, WebhookTested
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Text
from gateway.web.http.dates import asked_period
from gateway.web.http.errors import RequestRefused
from gateway.web.legacy.webhooks import webhook_record
from gateway.web.operation import EDIT_SETTINGS


class WebhookById(Body):
    """A webhook by its id."""

    id: Text


class WebhookReplay(Body):
    """Messages to send again: those given up; with `since` and `until`, all of that period in the site's time zone."""

    id: Text
    since: Text = ""
    until: Text = ""


class StatusWebhooks(Family):
    """The handlers of `/status/webhook/…`."""

    @operation("POST", "/status/webhook/list", EDIT_SETTINGS, "webhooks", reads=True)
    async def _list(self, _: Body) -> WebhookList:
        known = await self.context.webhooks.all()
        return WebhookList(webhooks=tuple(map(webhook_record, known)), count=len(known))

    @operation("POST", "/status/webhook/enable", EDIT_SETTINGS, "webhook")
    async def _enable(self, wanted: WebhookById, caller: Caller) -> WebhookEnabled:
        webhook = await self.context.webhooks.enable(wanted.id, by=f"user:{caller.username}")
        return WebhookEnabled(webhook=webhook_record(webhook))

    @operation("POST", "/status/webhook/replay", EDIT_SETTINGS, "webhook")
    async def _replay(self, wanted: WebhookReplay) -> WebhookReplayed:
        since, until = asked_period(wanted.since, wanted.until, self.context.zone, names=("since", "until"))
        if until is not None and since is None:
            raise RequestRefused(400, "since: is needed with 'until'")
        count = await self.context.webhooks.replay(wanted.id, since=since, until=until)
        return WebhookReplayed(webhook=WebhookNamed(id=wanted.id), count=count)

    @operation("POST", "/status/webhook/test", EDIT_SETTINGS, "webhook")
    async def _test(self, wanted: WebhookById) -> WebhookTested:
        """Send a message of the type `webhook.test`; `fault` says why the receiver did not accept it."""
        fault = await self.context.webhooks.test(wanted.id)
        return WebhookTested(webhook=WebhookNamed(id=wanted.id), taken=not fault, fault=fault)
