"""Webhooks and the fleet at the page.

Webhooks are listed, enabled, replayed and tested here and by command; programs register them under `/api/v1`. The page
of the fleet shows all gateways as their heartbeats tell, at a gateway whose key may read them.
"""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import NotFoundError
from gateway.domain.server_lines import GatewaySeen
from gateway.web.answers import Answer, WebhookEnabled, WebhookList, WebhookNamed, WebhookReplayed, WebhookTested
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Text
from gateway.web.http.dates import asked_period
from gateway.web.http.errors import RequestRefused
from gateway.web.legacy.webhooks import webhook_record
from gateway.web.operation import EDIT_SETTINGS, OPEN, VIEW_DEVICES
from gateway.web.status.page_files import page

_NO_FLEET = "this gateway belongs to no fleet: its site file has no [fleet]"


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


class FleetQuery(BaseModel):
    """The mark of the last answer; without it, everything is answered."""

    model_config = ConfigDict(frozen=True)

    after: Annotated[str, Field(max_length=40)] = ""


class FleetAnswer(Answer):
    """The gateways that have changed since the client's mark: see `FleetSeen`."""

    mark: str
    anew: bool
    gateways: tuple[GatewaySeen, ...]
    gone: tuple[str, ...]
    complete: bool
    fault: str
    away_seconds: float


class StatusFleet(Family):
    """The handlers of `/fleet/` and of the gateways that it shows. Without `[fleet]` there is nothing."""

    @operation("GET", "/fleet/", OPEN, head=True)
    async def _page(self, request: web.Request) -> web.StreamResponse:
        if self.context.site_state().fleet is None:
            raise NotFoundError(_NO_FLEET)
        return await page(request)

    @operation("GET", "/status/fleet", VIEW_DEVICES, "gateways")
    async def _gateways(self, asked: FleetQuery) -> FleetAnswer:
        found = self.context.fleet_seen(asked.after)
        if found is None:
            raise NotFoundError(_NO_FLEET)
        return FleetAnswer(
            mark=found.mark,
            anew=found.anew,
            gateways=found.seen,
            gone=found.gone,
            complete=found.complete,
            fault=found.fault,
            away_seconds=found.away_seconds,
        )
