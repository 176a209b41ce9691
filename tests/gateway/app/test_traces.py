"""Traces on their way to a collector: taken, refused, never answered; nobody waits for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest
from waiting import until

from gateway.app.traces import TraceSender, traces_of
from gateway.lanes.card_traces import CardTrace, Span
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Supervisor
from gateway.site import Site
from gateway.site.tracing_section import TRACES_MISSING, TracingSection

pytest.importorskip("opentelemetry.sdk", reason="the extra tracing is missing; make installs it")

from otlp_collector import OtlpCollector

BEGAN = 1_772_323_200_000_000
TRACE = CardTrace(
    Span("card", BEGAN, BEGAN + 900_000, {"lane": "main"}),
    (
        Span("decide", BEGAN + 10, BEGAN + 900, {"granted": True, "reason": "granted"}),
        Span("move", BEGAN + 50_000, BEGAN + 900_000, error="no answer from the controller"),
    ),
)


@pytest.fixture
def collector():
    with OtlpCollector().served() as collector:
        yield collector


@pytest.fixture
async def sender(collector):
    sender = TraceSender(section=TracingSection(endpoint=collector.endpoint), site_name="North")
    async with Supervisor(clock=SystemClock()) as services:
        services.keep("traces", sender.run)
        yield sender


async def test_a_trace_arrives_with_its_parts_below_the_whole(sender, collector):
    sender.put(TRACE)
    await until(lambda: sender.figures.sent)
    whole, decide, move = collector.spans
    assert (whole.name, decide.name, move.name) == ("card", "decide", "move")
    assert {span.trace_id for span in collector.spans} == {whole.trace_id}
    assert whole.parent_span_id == b""
    assert decide.parent_span_id == move.parent_span_id == whole.span_id
    assert (whole.start_time_unix_nano, whole.end_time_unix_nano) == (BEGAN * 1000, (BEGAN + 900_000) * 1000)
    assert {one.key: one.value.WhichOneof("value") for one in decide.attributes} == {
        "granted": "bool_value",
        "reason": "string_value",
    }
    assert (decide.status.code, move.status.code) == (0, 2)
    assert move.status.message == "no answer from the controller"
    named = {one.key: one.value.string_value for one in collector.received[0].resource.attributes}
    assert (named["service.name"], named["service.instance.id"]) == ("edge-gateway", "North")


async def test_a_collector_that_hangs_costs_traces_and_no_time(sender, collector):
    collector.free.clear()
    sender.put(TRACE)
    await until(lambda: collector.asked)
    for _ in range(1000):
        sender.put(TRACE)
    assert sender.figures.dropped == 500
    collector.free.set()
    await until(lambda: sender.figures.sent + sender.figures.dropped == 1001)
    assert sender.figures.sent >= 500


async def test_what_a_collector_refuses_is_counted_and_told_once(sender, collector, caplog):
    collector.status = 400
    for count in (1, 2):
        sender.put(TRACE)
        await until(lambda count=count: sender.figures.dropped == count)
    collector.status = 200
    sender.put(TRACE)
    await until(lambda: sender.figures.sent == 1)
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


async def test_the_end_waits_for_no_collector(collector, monkeypatch):
    monkeypatch.setattr("gateway.app.traces.SEND_SECONDS", 600.0)  # after which a request is given up
    collector.free.clear()
    sender = TraceSender(section=TracingSection(endpoint=collector.endpoint), site_name="North")
    running = asyncio.create_task(sender.run())  # noqa: TID251 (what a supervisor does at the end)
    sender.put(TRACE)
    await until(lambda: collector.asked)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def test_without_its_section_nothing_is_loaded():
    code = "import sys, gateway.app.gateway; sys.exit('opentelemetry.sdk' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
    assert traces_of(Site.model_validate({"site": {"name": "North"}})) is None


def test_without_its_library_the_gateway_goes_on_and_check_says_so(tmp_path):
    site = tmp_path / "site.toml"
    site.write_text('[site]\nname = "North"\n[tracing]\nendpoint = "http://127.0.0.1:4318"\n')
    code = f"""
import sys
sys.modules["opentelemetry"] = None
from gateway.app.traces import traces_of
from gateway.site import Secrets, load
from pathlib import Path
assert traces_of(load(Path({str(site)!r}), secrets=Secrets(folder=None))) is None
sys.argv = ["edge-gateway", "check", {str(site)!r}]
from gateway.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=60, capture_output=True, text=True)
    assert TRACES_MISSING in " ".join((done.stdout + done.stderr).split()), done.stderr
