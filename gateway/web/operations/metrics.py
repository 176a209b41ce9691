"""`GET /metrics`: the site and the gateway in numbers, for Prometheus (text exposition format 0.0.4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from aiohttp import web
from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from drivers.bus.line_quality import REPLY_BOUNDS
from gateway.domain.commands import FINAL_STATES, GateAction
from gateway.domain.errors import StoreError
from gateway.domain.footage import CameraCondition
from gateway.domain.passages import PassageOutcome
from gateway.domain.problems import ProblemKind
from gateway.domain.server_lines import BrokerStatus, ConnectionState, FleetStatus
from gateway.lanes.figures import LaneFigures
from gateway.problems.found import SiteState
from gateway.problems.lines import SiteLine
from gateway.problems.problem import Problem, Verdict
from gateway.recording.forecast import StorageForecast
from gateway.runtime.loop_watch import LoopWatch
from gateway.runtime.machine_state import ProcessFigures, processes
from gateway.runtime.timings import Timings
from gateway.store import Books, Store, Webhook
from gateway.web.families import Family, operation
from gateway.web.operation import VIEW_DEVICES

_TEXT = "text/plain; version=0.0.4"

_MICROS = 1_000_000

_PREFIX = "edge_gateway"

Labels = dict[str, str]
Samples = Iterable[tuple[Labels, float]]


def gauge(name: str, text: str, samples: Samples) -> Metric:
    """Make a gauge: a value that goes up and down."""
    metric = GaugeMetricFamily(f"{_PREFIX}_{name}", text)
    for labels, value in samples:
        metric.add_sample(metric.name, labels, float(value))
    return metric


def counter(name: str, text: str, samples: Samples) -> Metric:
    """Make a counter of events since the start; its samples have the suffix `_total`."""
    metric = CounterMetricFamily(f"{_PREFIX}_{name}", text)
    for labels, value in samples:
        metric.add_sample(f"{metric.name}_total", labels, float(value))
    return metric


def histogram(name: str, text: str, timings: Iterable[tuple[Labels, Timings]]) -> Metric:
    """Make a histogram of durations in seconds, with cumulative buckets by upper bound."""
    metric = HistogramMetricFamily(f"{_PREFIX}_{name}", text)
    for labels, one in timings:
        count = 0
        for bound, count in one.up_to():
            metric.add_sample(f"{metric.name}_bucket", {**labels, "le": _bound(bound)}, count)
        metric.add_sample(f"{metric.name}_count", labels, count)
        metric.add_sample(f"{metric.name}_sum", labels, one.sum)
    return metric


def _bound(seconds: float) -> str:
    return "+Inf" if seconds == float("inf") else str(seconds)


def lane_metrics(lanes: Mapping[str, LaneFigures]) -> Iterator[Metric]:
    """Yield the counters and durations of lanes since the start."""
    yield counter(
        "decisions",
        "Access decisions.",
        [
            ({"lane": lane, "outcome": "granted" if granted else "denied"}, figures.decisions[granted])
            for lane, figures in lanes.items()
            for granted in (True, False)
        ],
    )
    yield histogram(
        "decision_seconds",
        "From the reading that led to a decision to that decision.",
        [({"lane": lane}, figures.decision_seconds) for lane, figures in lanes.items()],
    )
    yield counter(
        "commands",
        "Commands to gates that came to an end.",
        [
            ({"lane": lane, "action": action.value, "end": end.value}, figures.commands[action, end])
            for lane, figures in lanes.items()
            for action in GateAction
            for end in sorted(FINAL_STATES)
        ],
    )
    yield histogram(
        "command_moved_seconds",
        "From the sending of a command to the gate seen on its way.",
        [
            ({"lane": lane, "action": action.value}, timings)
            for lane, figures in lanes.items()
            for action, timings in figures.moved_seconds.items()
        ],
    )
    yield counter(
        "passages",
        "Vehicles that left the lane, by how.",
        [
            ({"lane": lane, "outcome": outcome.value}, figures.passages[outcome])
            for lane, figures in lanes.items()
            for outcome in PassageOutcome
        ],
    )
    yield counter(
        "lane_events_lost",
        "Events that found the lane's inbox full.",
        [({"lane": lane}, figures.overflowed) for lane, figures in lanes.items()],
    )


def store_metrics(store: Store) -> Iterator[Metric]:
    """Yield the durations of the store's commits, and the number of waiting writes."""
    yield histogram(
        "store_commit_seconds",
        "How long commits took.",
        [({"file": file}, timings) for file, timings in store.commit_seconds.items()],
    )
    yield gauge("store_waiting", "Writes whose commit has not ended yet.", [({}, store.waiting)])


def loop_metrics(watch: LoopWatch) -> Iterator[Metric]:
    """Yield the event loop's lag, and the tasks that blocked it."""
    yield histogram("loop_lag_seconds", "By how much the event loop woke late.", [({}, watch.lag)])
    yield counter(
        "loop_held_up",
        "Times that a task held the event loop up for more than a tenth of a second.",
        [({"task": task}, count) for task, count in watch.held().items()],
    )


def process_metrics(processes: Sequence[ProcessFigures]) -> Iterator[Metric]:
    """Yield the number and memory of the gateway's processes, and the bytes that they wrote to disk."""
    names = Counter(one.name for one in processes)
    resident = {name: sum(one.resident for one in processes if one.name == name) for name in names}
    yield gauge("processes", "Processes at work.", [({"process": name}, count) for name, count in names.items()])
    yield gauge(
        "process_resident_bytes",
        "Resident memory; what processes share counts for each.",
        [({"process": name}, size) for name, size in resident.items()],
    )
    yield counter(
        "disk_written_bytes",
        "What the gateway and its processes sent to the disk: the wear of its flash memory.",
        [({}, sum(one.written for one in processes))],
    )


def site_metrics(site: SiteState, verdict: Verdict, books: Books | None, *, version: str) -> Iterator[Metric]:
    """Yield the site's metrics. `books` are the outbox's counts; None without central, or while the store fails."""
    yield gauge("info", "The gateway's release.", [({"version": version}, 1)])
    yield gauge("ready", "1 while every lane can work, else 0.", [({}, not verdict.not_ready)])
    yield gauge(
        "problem",
        "1 for each problem of the site; by its kind, the part that has it, and its severity.",
        [(dict(labels), 1) for labels in dict.fromkeys(tuple(_labels(one).items()) for one in verdict.problems)],
    )
    yield from _of_field(site)
    yield from _of_recording(site)
    yield from _of_lines(site.lines)
    yield from _of_central(site, books)
    if site.fleet is not None:
        yield from _of_fleet(site.fleet)
    if site.broker is not None:
        yield from _of_broker(site.broker)


def _labels(problem: Problem) -> Labels:
    """Return the labels that identify a problem.

    A whole sentence is left out: it holds figures that change, and each change would start a new time series.
    """
    return {
        "kind": problem.kind.value,
        "part": problem.part.value,
        "id": problem.id,
        "name": problem.name,
        "subject": "" if problem.kind is ProblemKind.SITE_FILE_NOTICE else problem.subject,
        "severity": problem.severity.name.lower(),
    }


def _of_field(site: SiteState) -> Iterator[Metric]:
    yield gauge(
        "lane_able",
        "1 while the lane can admit vehicles and let them out, else 0.",
        [({"lane": lane.lane_id, "name": lane.name}, not lane.unable) for lane in site.lanes],
    )
    yield gauge(
        "device_online",
        "1 while the device answers, else 0.",
        [({"device": str(item.device_id), "name": item.name}, item.online is True) for item in site.devices],
    )
    yield gauge("clock_trusted", "1 while the wall clock is known to be right, else 0.", [({}, site.clock_trusted)])
    yield gauge("store_failing", "1 while nothing can be recorded, else 0.", [({}, bool(site.store_failing))])


def _of_recording(site: SiteState) -> Iterator[Metric]:
    cameras = [({"camera": str(camera.camera_id), "name": camera.name}, camera) for camera in site.cameras]
    yield gauge(
        "camera_recording",
        "1 while the camera is recorded, else 0.",
        [(labels, camera.condition is CameraCondition.RECORDING) for labels, camera in cameras],
    )
    yield gauge(
        "camera_bits_per_second", "What the camera sends.", [(labels, item.bits_per_second) for labels, item in cameras]
    )
    yield counter(
        "camera_reconnects", "Connections that were made anew.", [(labels, item.reconnects) for labels, item in cameras]
    )
    yield gauge(
        "camera_footage_timestamp_seconds",
        "The end of the camera's newest footage.",
        [(labels, item.last_segment_at / _MICROS) for labels, item in cameras if item.last_segment_at is not None],
    )
    yield counter("camera_gaps", "Times that footage was missing.", [(labels, item.gaps) for labels, item in cameras])
    yield counter(
        "camera_missing_seconds",
        "Seconds of footage that were missing, counted when it comes again.",
        [(labels, item.missing_seconds) for labels, item in cameras],
    )
    if site.storage is not None:
        yield from _of_storage(site.storage)


def _of_storage(storage: StorageForecast) -> Iterator[Metric]:
    yield gauge("footage_bytes", "Footage that is kept.", [({}, storage.footage_bytes)])
    yield gauge("footage_limit_bytes", "Footage that may be kept.", [({}, storage.cap_bytes)])
    yield gauge("footage_disk_free_bytes", "What is free on the disk of the footage.", [({}, storage.free_bytes)])


def _of_lines(lines: tuple[SiteLine, ...]) -> Iterator[Metric]:
    yield gauge(
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


def _of_fleet(fleet: FleetStatus) -> Iterator[Metric]:
    connected = fleet.state is ConnectionState.CONNECTED
    yield gauge("fleet_connected", "1 while the fleet's server is connected, else 0.", [({}, connected)])
    yield gauge(
        "fleet_waiting", "Events and camera events that wait for the fleet, up to 10,000.", [({}, fleet.waiting)]
    )


def _of_broker(broker: BrokerStatus) -> Iterator[Metric]:
    connected = broker.state is ConnectionState.CONNECTED
    yield gauge("mqtt_connected", "1 while the MQTT broker is connected, else 0.", [({}, connected)])
    yield gauge("mqtt_waiting", "Events that wait for the MQTT broker, up to 10,000.", [({}, broker.waiting)])


def _of_central(site: SiteState, books: Books | None) -> Iterator[Metric]:
    central = site.central
    if central is None:
        return
    yield gauge("central_reachable", "1 while central answers, else 0.", [({}, central.reachable is True)])
    pulled: Samples = [] if central.pulled_at is None else [({}, central.pulled_at / _MICROS)]
    yield gauge("central_pulled_timestamp_seconds", "When central's lists were fetched last.", pulled)
    ahead: Samples = [] if central.clock_ahead is None else [({}, central.clock_ahead)]
    yield gauge("central_clock_ahead_seconds", "The most that central's clock may be ahead of the gateway's.", ahead)
    if books is not None:
        yield gauge("outbox_waiting", "Records that wait for central.", [({}, books.waiting)])
        yield gauge("outbox_refused", "Records that central refused.", [({}, books.parked)])
        yield counter("outbox_accepted", "Records that were to go to central.", [({}, books.accepted)])
        yield counter("outbox_delivered", "Records that central has taken.", [({}, books.delivered)])
        yield counter("outbox_dropped", "Records that never go to central.", [({}, books.dropped)])


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
