"""Sending of card traces to a collector, as OTLP over HTTP, by a thread that no lane waits for."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import structlog

from gateway.domain.errors import ConfigError
from gateway.lanes.card_traces import CardTrace, Span, TraceFigures
from gateway.site import Site
from gateway.site.tracing_section import TRACES_MISSING, TracingSection

log = structlog.get_logger(__name__)

_MOST_WAITING = 500
_MOST_AT_ONCE = 64
_LOOK_SECONDS = 0.5
SEND_SECONDS = 5.0
_NANOS = 1000


def traces_of(site: Site) -> TraceSender | None:
    """Build the sender of traces; None if the site file switches none on, or what sends them is not installed."""
    if site.tracing is None:
        return None
    try:
        return TraceSender(section=site.tracing, site_name=site.site.name)
    except ConfigError as error:
        log.warning("traces_off", why=str(error))
        return None


class TraceSender:
    """The sender of traces. `put` may be called from the loop's thread at any time and never waits.

    Attributes:
        figures: the number of traces sent, and of those dropped since the collector did not take them in time.
    """

    def __init__(self, *, section: TracingSection, site_name: str) -> None:
        """Load the library. Raises ConfigError if it is not installed."""
        self._waiting: queue.Queue[CardTrace] = queue.Queue(_MOST_WAITING)
        self._over = threading.Event()
        self._failing = False
        self.figures = TraceFigures()
        self._spans = _Spans(site_name)
        self._exporter = _exporter(section)

    def put(self, trace: CardTrace) -> None:
        """Queue a trace. If the queue is full, drop and count it."""
        try:
            self._waiting.put_nowait(trace)
        except queue.Full:
            self.figures.dropped += 1

    async def run(self) -> None:
        """Send from a thread until cancelled. A request under way does not delay the end."""
        self._over.clear()
        threading.Thread(target=self._send_all, name="traces", daemon=True).start()
        try:
            await asyncio.Event().wait()
        finally:
            self._over.set()

    def _send_all(self) -> None:
        while not self._over.is_set():
            try:
                batch = [self._waiting.get(timeout=_LOOK_SECONDS)]
            except queue.Empty:
                continue
            while len(batch) < _MOST_AT_ONCE and not self._waiting.empty():
                batch.append(self._waiting.get_nowait())
            self._send(batch)

    def _send(self, batch: list[CardTrace]) -> None:
        try:
            taken = self._exporter.export([span for trace in batch for span in self._spans.of(trace)])
            sent = taken.name == "SUCCESS"
        except Exception:  # a fault of the library, whose errors are not documented, must not end the thread that sends
            log.exception("traces_broke")
            sent = False
        if sent:
            self.figures.sent += len(batch)
        else:
            self.figures.dropped += len(batch)
        if sent is self._failing:
            self._failing = not sent
            log.info("traces_sent_again") if sent else log.warning("traces_not_taken", dropped=self.figures.dropped)


class _Spans:
    """The library's spans for traces of one site."""

    def __init__(self, site_name: str) -> None:
        try:
            from opentelemetry.sdk.resources import Resource  # noqa: PLC0415  # an optional library
            from opentelemetry.sdk.trace.id_generator import RandomIdGenerator  # noqa: PLC0415
            from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415
        except ImportError as error:
            raise ConfigError(TRACES_MISSING) from error
        release = version("edge-gateway")
        self._ids = RandomIdGenerator()
        self._scope = InstrumentationScope("edge-gateway", release)
        self._resource = Resource(
            {"service.name": "edge-gateway", "service.version": release, "service.instance.id": site_name}
        )

    def of(self, trace: CardTrace) -> Iterator[Any]:
        """Yield a trace's spans, the whole of it first."""
        number, whole = self._ids.generate_trace_id(), self._ids.generate_span_id()
        yield self._span(trace.whole, number, whole, None)
        for part in trace.parts:
            yield self._span(part, number, self._ids.generate_span_id(), whole)

    def _span(self, span: Span, trace_id: int, span_id: int, parent_id: int | None) -> Any:
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415  # loaded with the class
        from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags  # noqa: PLC0415

        def context(own: int) -> SpanContext:
            return SpanContext(trace_id, own, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

        return ReadableSpan(
            span.name,
            context=context(span_id),
            parent=None if parent_id is None else context(parent_id),
            resource=self._resource,
            attributes=dict(span.data),
            status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
            start_time=span.began * _NANOS,
            end_time=span.ended * _NANOS,
            instrumentation_scope=self._scope,
        )


def _exporter(section: TracingSection) -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(TRACES_MISSING) from error
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # a loss is told once, here
    return OTLPSpanExporter(
        endpoint=f"{section.endpoint.rstrip('/')}/v1/traces", certificate_file=section.ca_file, timeout=SEND_SECONDS
    )
