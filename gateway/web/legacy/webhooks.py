"""`/api/v1/webhooks`: receivers of the site's events."""

from __future__ import annotations

from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field

from gateway.domain.announcements import AnnouncedType
from gateway.domain.errors import ReceiverRefused, SecretRefused
from gateway.runtime.clock import iso_utc
from gateway.store import Webhook
from gateway.web.answers import WebhookCreated, WebhookRecord
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body
from gateway.web.http.errors import RequestRefused
from gateway.web.legacy.answers import LegacyAnswer, Printed
from gateway.web.operation import EDIT_SETTINGS, VIEW_EVENTS


class WebhookBody(Body):
    """A receiver to register. If it has no secret, one is generated and shown once."""

    url: Annotated[str, Field(strict=True, min_length=1, max_length=2000)]
    events: Annotated[tuple[AnnouncedType, ...], Field(min_length=1, max_length=20, fail_fast=True)]
    secret: Annotated[Printed, Field(min_length=8, max_length=256)] | None = None


class WebhooksAnswer(LegacyAnswer):
    """Every webhook, oldest first."""

    webhooks: tuple[WebhookRecord, ...]
    total: int


class WebhookDeleted(LegacyAnswer):
    """The webhook was deleted, with the messages that waited for it."""

    status: Literal["deleted"]
    id: str


_MASK = "********"


class LegacyWebhooks(Family):
    """The handlers of `/api/v1/webhooks`."""

    @operation(
        "POST", "/api/v1/webhooks", EDIT_SETTINGS & VIEW_EVENTS, purpose="Register a receiver of events", status=201
    )
    async def _create(self, wanted: WebhookBody, caller: Caller) -> WebhookCreated:
        try:
            webhook = await self.context.webhooks.create(
                url=wanted.url, types=wanted.events, secret=wanted.secret, by=caller.username
            )
        except ReceiverRefused as error:
            raise RequestRefused(400, f"url: {error}") from error
        except SecretRefused as error:
            raise RequestRefused(400, f"secret: {error}") from error
        return WebhookCreated(id=webhook.id, url=webhook.url, events=webhook.types, secret=webhook.secret)

    @operation("GET", "/api/v1/webhooks", EDIT_SETTINGS, purpose="Every webhook")
    async def _list(self) -> WebhooksAnswer:
        known = await self.context.webhooks.all()
        return WebhooksAnswer(webhooks=tuple(map(webhook_record, known)), total=len(known))

    @operation("DELETE", "/api/v1/webhooks/{id}", EDIT_SETTINGS, purpose="Send nothing to a receiver any more")
    async def _delete(self, request: web.Request) -> WebhookDeleted:
        webhook_id = request.match_info["id"]
        await self.context.webhooks.remove(webhook_id)
        return WebhookDeleted(status="deleted", id=webhook_id)


def webhook_record(webhook: Webhook) -> WebhookRecord:
    """Return a webhook as a record of the interface, with its secret masked."""
    return WebhookRecord(
        id=webhook.id,
        url=webhook.url,
        events=webhook.types,
        secret=_MASK,
        status="disabled" if webhook.disabled else "enabled",
        reason=webhook.disabled,
        last_error=webhook.error,
        created_at=iso_utc(webhook.created_at),
        created_by=webhook.created_by,
        waiting=webhook.books.waiting,
        delivered=webhook.books.delivered,
        failed=webhook.books.failed,
        dropped=webhook.books.dropped,
    )
