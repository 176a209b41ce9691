"""Operations on webhooks: register, list, remove, replay, enable and test."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence

from gateway.domain.commands import actor
from gateway.domain.errors import CommandRefused, NotFoundError, SecretRefused
from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Clock, iso_utc
from gateway.store import Webhook
from gateway.store.webhooks import Webhooks
from gateway.texts import text
from gateway.webhooks.client import ReceiverClient, headers, standard_key_fault

MOST_WEBHOOKS = 32


class WebhookRegistry:
    """Operations on webhooks. Methods that take an id raise NotFoundError for an unknown one, and StoreError."""

    def __init__(self, *, webhooks: Webhooks, client: ReceiverClient, clock: Clock) -> None:
        self._webhooks = webhooks
        self._client = client
        self._clock = clock

    async def create(self, *, url: str, types: Sequence[str], secret: str | None, by: str) -> Webhook:
        """Register a receiver. If `secret` is None, one is generated in the form of Standard Webhooks.

        Raises ReceiverRefused for an unsuitable URL, SecretRefused for an unsuitable secret, and CommandRefused when
        there are 32 webhooks already.
        """
        if secret and (fault := standard_key_fault(secret)):
            raise SecretRefused(fault)
        self._client.check(url)
        webhook = Webhook(
            id=f"wh_{secrets.token_hex(8)}",
            url=url,
            types=tuple(dict.fromkeys(types)),
            secret=secret or f"whsec_{base64.b64encode(secrets.token_bytes(32)).decode()}",
            created_at=self._clock.wall().micros,
            created_by=by,
        )
        if not await self._webhooks.add(webhook, most=MOST_WEBHOOKS):
            raise CommandRefused(f"there are {MOST_WEBHOOKS} webhooks already, and no more are kept")
        return webhook

    async def all(self) -> tuple[Webhook, ...]:
        """Return all webhooks, oldest first."""
        return await self._webhooks.all()

    async def remove(self, webhook_id: str) -> None:
        """Remove a webhook, with the messages that wait for it."""
        if not await self._webhooks.remove(webhook_id):
            raise _unknown(webhook_id)

    async def enable(self, webhook_id: str, *, by: str) -> Webhook:
        """Resume deliveries to a disabled webhook, oldest message first, and record that as an event."""
        stamp = self._clock.wall()
        event = Event(
            kind=EventKind.WEBHOOK_ENABLED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=text("event.webhook_enabled", webhook=webhook_id, who=actor(by)),
            data={"webhook_id": webhook_id, "by": by},
        )
        await self._webhooks.enable(webhook_id, event=event)
        return await self._known(webhook_id)

    async def replay(self, webhook_id: str, *, since: int | None, until: int | None) -> int:
        """Queue again the messages that were given up; or, with `since`, all messages of a period, delivered ones too.

        `since` and `until` are wall micros; without `until` the period ends now. Return the number of messages that
        were queued. Raises CommandRefused for a disabled webhook.
        """
        if (await self._known(webhook_id)).disabled:
            raise CommandRefused(text("refused.webhook_disabled"))
        if since is None:
            return await self._webhooks.replay(webhook_id)
        return await self._webhooks.replay_since(webhook_id, since=since, until=until or self._clock.wall().micros)

    async def test(self, webhook_id: str) -> str:
        """Send a message of the type `webhook.test` now, once. Return "" on success, else the reason."""
        webhook = await self._known(webhook_id)
        stamp = self._clock.wall()
        message_id = f"msg_test_{secrets.token_hex(8)}"
        body = (
            f'{{"id":"{message_id}","type":"webhook.test","timestamp":"{iso_utc(stamp.micros)}",'
            '"data":{"device_id":null,"user_id":null,"location":null}}'
        ).encode()
        signed = headers(secret=webhook.secret, message_id=message_id, timestamp=stamp.micros // 1_000_000, body=body)
        answer = await self._client.send(webhook.url, headers=signed, body=body)
        return "" if answer.succeeded else answer.sentence()

    async def _known(self, webhook_id: str) -> Webhook:
        webhook = await self._webhooks.get(webhook_id)
        if webhook is None:
            raise _unknown(webhook_id)
        return webhook


def _unknown(webhook_id: str) -> NotFoundError:
    return NotFoundError(f"there is no webhook '{webhook_id}'")
