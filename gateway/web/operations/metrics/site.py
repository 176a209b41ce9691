"""The site in numbers: problems, lanes, devices, cameras, lines, central, webhooks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

from drivers.bus.line_quality import REPLY_BOUNDS
from gateway.domain.footage import CameraCondition
from gateway.domain.problems import ProblemKind
from gateway.domain.server_lines import BrokerStatus, ConnectionState, FleetStatus
from gateway.problems.found import SiteState
from gateway.problems.lines import SiteLine
from gateway.problems.problem import Problem, Verdict
from gateway.recording.forecast import StorageForecast
from gateway.store import Books, Webhook
from gateway.web.operations.metrics.samples import Labels, Samples, counter, gauge

_MICROS = 1_000_000


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
