"""Makers of Prometheus metrics, with the prefix `edge_gateway_`."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from gateway.runtime.timings import Timings

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
