"""Sender of webhooks: one queue each, so that a slow receiver delays no other.

A message leaves its queue only once the receiver has accepted it or all attempts have failed. After a crash it may be
sent again, under the same id. A webhook is disabled when its receiver answers 410, or when no delivery has succeeded
for five days.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Supervisor
from gateway.store import Message, Webhook
from gateway.store.webhooks import Webhooks
from gateway.texts import Text, text
from gateway.webhooks.client import ReceiverClient, headers
from gateway.webhooks.retry_policy import LONGEST_WAIT, AttemptResult, MessageFate, judge

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 60.0
_STORE_AGAIN_SECONDS = 2.0
LONG_FAILURE = 300.0
_DAY = 86_400_000_000
_DISABLED_AFTER = 5 * _DAY
_FARTHEST = int(LONGEST_WAIT * 1.3 * 1_000_000)

Pace = Callable[[float], float]
"""Converts seconds of the retry policy to seconds of real waiting, so that tests can run faster."""


class WebhookSender:
    """Sender with one task for each enabled webhook while `run` runs."""

    def __init__(
        self,
        *,
        webhooks: Webhooks,
        client: ReceiverClient,
        clock: Clock,
        chance: Callable[[], float] = random.random,
        pace: Pace = float,
    ) -> None:
        self._webhooks = webhooks
        self._client = client
        self._clock = clock
        self._chance = chance
        self._pace = pace

    async def run(self) -> None:
        """Send until cancelled."""
        running: dict[str, asyncio.Task[None]] = {}
        async with Supervisor(clock=self._clock) as supervisor:
            while True:
                version = self._webhooks.changes.version
                wanted = await self._enabled()
                for gone in running.keys() - wanted:
                    running.pop(gone).cancel()
                for new in wanted - running.keys():
                    queue = _Queue(
                        new,
                        self._webhooks,
                        client=self._client,
                        clock=self._clock,
                        chance=self._chance,
                        pace=self._pace,
                    )
                    running[new] = supervisor.keep(f"webhook-{new}", queue.run)
                await self._webhooks.changes.beyond(version, within=_LOOK_SECONDS)

    async def _enabled(self) -> set[str]:
        while True:
            try:
                return {webhook.id for webhook in await self._webhooks.all() if not webhook.disabled}
            except StoreError as error:
                log.warning("webhooks_not_readable", error=str(error))
                await asyncio.sleep(_STORE_AGAIN_SECONDS)


class _Queue:
    """The messages of one webhook, one at a time."""

    def __init__(
        self,
        webhook_id: str,
        webhooks: Webhooks,
        *,
        client: ReceiverClient,
        clock: Clock,
        chance: Callable[[], float],
        pace: Pace,
    ) -> None:
        self._id = webhook_id
        self._webhooks = webhooks
        self._client = client
        self._clock = clock
        self._chance = chance
        self._pace = pace
        self._slow = 0
        self._paused_until = float("-inf")
        self._failing_at: float | None = float("-inf")  # unknown before the start

    async def run(self) -> None:
        """Send until cancelled, or until the webhook is gone or disabled."""
        while True:
            version = self._webhooks.changes.version
            try:
                webhook = await self._webhooks.get(self._id)
                if webhook is None or webhook.disabled:
                    await self._webhooks.changes.beyond(version, within=_LOOK_SECONDS)  # the sender will cancel this
                    continue
                wait = await self._send_due(webhook)
            except StoreError as error:
                # A message whose delivery could not be noted is sent again, under the same id.
                log.warning("webhook_waits_for_store", webhook=self._id, error=str(error))
                await asyncio.sleep(_STORE_AGAIN_SECONDS)
                continue
            if wait > 0:
                await self._webhooks.changes.beyond(version, within=wait)

    async def _send_due(self, webhook: Webhook) -> float:
        """Send the messages that are due. Return the seconds until the next is due, at most 60; 0 for at once."""
        paused = self._paused_until - self._clock.monotonic()
        if paused > 0:
            await asyncio.sleep(paused)
        for message in await self._webhooks.due(self._id, now=self._clock.wall().micros, farthest=_FARTHEST):
            if not await self._try(webhook, message):
                return 0.0
            fresh = await self._webhooks.get(self._id)
            if fresh is None or fresh.disabled:
                return 0.0
            webhook = fresh
        soonest = await self._webhooks.next_due(self._id)
        if soonest is None:
            return _LOOK_SECONDS
        return min(max((soonest - self._clock.wall().micros) / 1_000_000, 0.0), _LOOK_SECONDS)

    async def _try(self, webhook: Webhook, message: Message) -> bool:
        """Send one message and note the outcome. Return whether the next message may follow at once.

        Raises StoreError when the outcome cannot be noted.
        """
        stamp, body = self._clock.wall(), message.body.encode()
        signed = headers(
            secret=webhook.secret, message_id=message.message_id, timestamp=stamp.micros // 1_000_000, body=body
        )
        answer = await self._client.send(webhook.url, headers=signed, body=body)
        now, now_at = self._clock.wall(), self._clock.monotonic()
        verdict = judge(answer, tries=message.tries, slow=self._slow, now=now.as_datetime(), chance=self._chance())
        if verdict.fate is MessageFate.DELIVERED:
            self._slow = 0
            is_back = now_at - self._failing_at > LONG_FAILURE if self._failing_at is not None else False
            self._failing_at = None
            await self._webhooks.delivered(message, is_back=is_back, now=now.micros)
            if webhook.error:
                log.info("webhook_delivers_again", webhook=self._id)
            return True
        self._failing_at = now_at if self._failing_at is None else self._failing_at
        self._slow = self._slow + 1 if verdict.pause else 0
        if verdict.pause:
            self._paused_until = self._clock.monotonic() + self._pace(verdict.pause)
        if not webhook.error:
            log.warning("webhook_fails", webhook=self._id, error=answer.sentence())
        since, failed_at = _failing(webhook, now.micros if now.trusted else None)
        await self._webhooks.failed(
            message,
            error=answer.sentence(),
            next_at=None
            if verdict.fate is MessageFate.GIVEN_UP
            else now.micros + int(self._pace(verdict.wait) * 1_000_000),
            failing_since=since,
            failed_at=failed_at,
        )
        if verdict.fate is MessageFate.GONE:
            await self._disable(text("webhook.gone"), answer)
        elif since is not None and failed_at is not None and failed_at - since >= _DISABLED_AFTER:
            await self._disable(text("webhook.five_days"), answer)
        return not verdict.pause

    async def _disable(self, why: Text, answer: AttemptResult) -> None:
        stamp = self._clock.wall()
        last = answer.sentence()
        said = text("event.webhook_disabled", webhook=self._id, disabled=why, why=last)
        event = Event(
            kind=EventKind.WEBHOOK_DISABLED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=said,
            data={"webhook_id": self._id, "reason": str(why)},
        )
        await self._webhooks.disable(self._id, why=str(why), event=event)
        log.warning("webhook_disabled", webhook=self._id, why=str(why))


def _failing(webhook: Webhook, now: int | None) -> tuple[int | None, int | None]:
    """Return since when the receiver has been failing, and the last failure, after another failure at `now`.

    `now` is wall micros by a trusted clock; None for an untrusted one, which changes neither. After a day without an
    attempt the failure counts from now, because a day without attempts shows nothing about the receiver.
    """
    if now is None:
        return webhook.failing_since, webhook.failed_at
    last = webhook.failed_at
    if webhook.failing_since is None or last is None or not 0 <= now - last <= _DAY:
        return now, now
    return webhook.failing_since, now
