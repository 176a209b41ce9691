"""Webhooks in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import Metric

from gateway.store import Webhook
from gateway.web.operations.metrics.samples import counter, gauge


def webhook_metrics(hooks: Sequence[Webhook]) -> Iterator[Metric]:
    """Yield the metrics of each webhook, labelled by id, because an address may hold a secret."""
    own = [({"webhook": hook.id}, hook) for hook in hooks]
    yield gauge(
        "webhook_enabled", "1 while announcements are sent.", [(labels, not hook.disabled) for labels, hook in own]
    )
    yield gauge(
        "webhook_failing", "1 while the newest try has failed.", [(labels, bool(hook.error)) for labels, hook in own]
    )
    yield gauge("webhook_waiting", "Announcements that wait.", [(labels, hook.books.waiting) for labels, hook in own])
    yield counter(
        "webhook_delivered", "Announcements that were taken.", [(labels, hook.books.delivered) for labels, hook in own]
    )
    yield counter(
        "webhook_lost",
        "Announcements that were given up, or had no room in the queue.",
        [(labels, hook.books.failed + hook.books.dropped) for labels, hook in own],
    )
