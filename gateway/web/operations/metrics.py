"""The site in numbers, for Prometheus (text exposition format 0.0.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from aiohttp import web
from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from drivers.bus.line_quality import REPLY_BOUNDS
from gateway.domain.footage import CameraCondition
from gateway.problems.found import SiteState
from gateway.problems.lines import SiteLine
from gateway.problems.problem import Verdict
from gateway.recording.forecast import StorageForecast
from gateway.store import Books
from gateway.store.outbox.outbox import Outbox
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.operation import Operation, needs

_TEXT = "text/plain; version=0.0.4"
_MICROS = 1_000_000

METRICS = Operation(
    "GET",
    "/metrics",
    needs("can_view_devices"),
    purpose="The site in numbers, for Prometheus",
    answer_type=_TEXT,
    by_key=True,
)


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """`GET /metrics`, for a program's key. `outbox` is None for a site that stands alone."""

    state: Callable[[], SiteState]
    verdict: Callable[[], Verdict]
    outbox: Outbox | None
    version: str

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (Route(METRICS, self._metrics),)

    async def _metrics(self, _: web.Request, __: Caller) -> web.StreamResponse:
        books = None if self.outbox is None else await self.outbox.books()
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_Now(tuple(site_metrics(self.state(), self.verdict(), books, version=self.version))))
        answer = web.Response(body=generate_latest(registry))
        answer.headers["Content-Type"] = f"{_TEXT}; charset=utf-8"
        return answer


class _Now(Collector):
    """Metrics that were computed already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        """See `Collector.collect`."""
        return self._metrics


def site_metrics(site: SiteState, verdict: Verdict, books: Books | None, *, version: str) -> Iterator[Metric]:
    """Yield the site's metrics. `books` count the records for central."""
    yield _gauge("info", "The gateway's release.", [({"version": version}, 1)])
    yield _gauge("ready", "1 while every lane can work, else 0.", [({}, not verdict.not_ready)])
    yield _gauge(
        "problem",
        "1 for each problem of the site; by its kind, the part that has it, and its severity.",
        [
            (
                {
                    "kind": problem.kind.value,
                    "part": problem.part.value,
                    "id": problem.id,
                    "name": problem.name,
                    "subject": problem.subject,
                    "severity": problem.severity.name.lower(),
                },
                1,
            )
            for problem in verdict.problems
        ],
    )
    yield from _of_field(site)
    yield from _of_recording(site)
    yield from _of_lines(site.lines)
    yield from _of_central(site, books)


def _of_field(site: SiteState) -> Iterator[Metric]:
    yield _gauge(
        "lane_able",
        "1 while the lane can admit vehicles and let them out, else 0.",
        [({"lane": lane.lane_id, "name": lane.name}, not lane.unable) for lane in site.lanes],
    )
    yield _gauge(
        "device_online",
        "1 while the device answers, else 0.",
        [({"device": str(item.device_id), "name": item.name}, item.online is True) for item in site.devices],
    )
    yield _gauge("clock_trusted", "1 while the wall clock is known to be right, else 0.", [({}, site.clock_trusted)])
    yield _gauge("store_failing", "1 while nothing can be recorded, else 0.", [({}, bool(site.store_failing))])


def _of_recording(site: SiteState) -> Iterator[Metric]:
    cameras = [({"camera": str(camera.camera_id), "name": camera.name}, camera) for camera in site.cameras]
    yield _gauge(
        "camera_recording",
        "1 while the camera is recorded, else 0.",
        [(labels, camera.condition is CameraCondition.RECORDING) for labels, camera in cameras],
    )
    yield _gauge(
        "camera_bits_per_second", "What the camera sends.", [(labels, item.bits_per_second) for labels, item in cameras]
    )
    yield _counter(
        "camera_reconnects", "Connections that were made anew.", [(labels, item.reconnects) for labels, item in cameras]
    )
    if site.storage is not None:
        yield from _of_storage(site.storage)


def _of_storage(storage: StorageForecast) -> Iterator[Metric]:
    yield _gauge("footage_bytes", "Footage that is kept.", [({}, storage.footage_bytes)])
    yield _gauge("footage_limit_bytes", "Footage that may be kept.", [({}, storage.cap_bytes)])
    yield _gauge("footage_disk_free_bytes", "What is free on the disk of the footage.", [({}, storage.free_bytes)])


def _of_lines(lines: tuple[SiteLine, ...]) -> Iterator[Metric]:
    yield _gauge(
        "line_open",
        "1 while the line is open, else 0.",
        [({"line": line.name}, not line.quality.down_reason) for line in lines],
    )
    replies = HistogramMetricFamily(
        "edge_gateway_line_reply_seconds", "How long units took to answer.", labels=["line", "unit"]
    )
    failures = CounterMetricFamily(
        "edge_gateway_line_failures", "Requests without an answer that counts.", labels=["line", "unit", "failure"]
    )
    for line in lines:
        for unit in line.quality.units:
            counts, sofar = [], 0
            for bound, count in zip((*map(str, REPLY_BOUNDS), "+Inf"), unit.reply_times, strict=True):
                sofar += count
                counts.append((bound, sofar))
            replies.add_metric([line.name, str(unit.unit)], counts, sum_value=None)
            for failure, count in unit.failed.items():
                failures.add_metric([line.name, str(unit.unit), failure.value], count)
    yield replies
    yield failures


def _of_central(site: SiteState, books: Books | None) -> Iterator[Metric]:
    central = site.central
    if central is None:
        return
    yield _gauge("central_reachable", "1 while central answers, else 0.", [({}, central.reachable is True)])
    pulled: _Samples = [] if central.pulled_at is None else [({}, central.pulled_at / _MICROS)]
    yield _gauge("central_pulled_timestamp_seconds", "When central's lists were fetched last.", pulled)
    if books is not None:
        yield _gauge("outbox_waiting", "Records that wait for central.", [({}, books.waiting)])
        yield _gauge("outbox_refused", "Records that central refused.", [({}, books.parked)])
        yield _counter("outbox_delivered", "Records that central has taken.", [({}, books.delivered)])


_Samples = Iterable[tuple[dict[str, str], float]]


def _gauge(name: str, text: str, samples: _Samples) -> Metric:
    metric = GaugeMetricFamily(f"edge_gateway_{name}", text)
    for labels, value in samples:
        metric.add_sample(metric.name, labels, float(value))
    return metric


def _counter(name: str, text: str, samples: _Samples) -> Metric:
    metric = CounterMetricFamily(f"edge_gateway_{name}", text)
    for labels, value in samples:
        metric.add_sample(f"edge_gateway_{name}_total", labels, float(value))
    return metric
