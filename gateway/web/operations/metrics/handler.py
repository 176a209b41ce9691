"""The operation `GET /metrics` (text exposition format 0.0.4)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain

from aiohttp import web
from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.registry import Collector

from gateway.domain.errors import StoreError
from gateway.runtime.machine_state import processes
from gateway.store import Books, Webhook
from gateway.web.families import Family, operation
from gateway.web.operation import VIEW_DEVICES
from gateway.web.operations.metrics.inside import (
    lane_metrics,
    loop_metrics,
    process_metrics,
    store_metrics,
)
from gateway.web.operations.metrics.site import site_metrics, webhook_metrics

_TEXT = "text/plain; version=0.0.4"


class Metrics(Family):
    """The handler of `GET /metrics`, for programs with an API key.

    `has_central`: whether the site has a central.
    """

    @operation(
        "GET", "/metrics", VIEW_DEVICES, purpose="The site in numbers, for Prometheus", answer_type=_TEXT, by_key=True
    )
    async def _metrics(self) -> web.StreamResponse:
        metrics = tuple(await self._now())
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_Now(metrics))
        answer = web.Response(body=generate_latest(registry))
        answer.headers["Content-Type"] = f"{_TEXT}; charset=utf-8"
        return answer

    async def _now(self) -> Iterator[Metric]:
        books, hooks = await self._books(), await self._webhooks()
        tree = await asyncio.to_thread(processes)
        return chain(
            site_metrics(self.context.site_state(), self.context.verdict(), books, version=self.context.release),
            lane_metrics(self.context.lanes.figures()),
            store_metrics(self.context.store),
            webhook_metrics(hooks),
            loop_metrics(self.context.loop),
            process_metrics(tree),
        )

    async def _books(self) -> Books | None:
        if self.context.central is None:
            return None
        try:
            return await self.context.store.outbox.books()
        except StoreError:  # `store_failing` reports it; the other metrics are still wanted
            return None

    async def _webhooks(self) -> tuple[Webhook, ...]:
        try:
            return await self.context.store.webhooks.all()
        except StoreError:  # likewise
            return ()


class _Now(Collector):
    """A collector of metrics that were computed already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """Return the metrics."""
        return self._metrics
