"""`GET /metrics`: the site in numbers, read by a Prometheus parser, for a program's key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.errors import StoreError
from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, SitePart, gateway_problem
from gateway.store import Entry, Webhook
from tests.gateway.web.setups.site import START

DOCUMENT = Path(__file__).parents[3] / "docs" / "metrics.md"


async def scraped(gateway, *, key="till"):
    headers = {"Authorization": f"Bearer key-of-{key}"} if key else {}
    async with gateway.client.get(f"{gateway.url}/metrics", headers=headers) as answer:
        text = await answer.text()
        return answer, {
            (sample.name, *sorted(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text if answer.status == 200 else "")
            for sample in family.samples
        }


async def test_a_program_reads_the_site_in_numbers(gateway):
    answer, metrics = await scraped(gateway)
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert metrics["edge_gateway_ready",] == 1
    assert metrics["edge_gateway_lane_able", ("lane", "entry"), ("name", "Main entry")] == 1
    assert metrics["edge_gateway_device_online", ("device", "101"), ("name", "Entry barrier")] == 1
    assert metrics["edge_gateway_device_online", ("device", "102"), ("name", "Entry reader")] == 0
    assert metrics["edge_gateway_line_reply_seconds_bucket", ("le", "0.01"), ("line", "yard"), ("unit", "7")] == 3
    assert metrics["edge_gateway_line_reply_seconds_bucket", ("le", "+Inf"), ("line", "yard"), ("unit", "7")] == 4
    assert metrics["edge_gateway_line_failures_total", ("failure", "silent"), ("line", "yard"), ("unit", "7")] == 2
    assert metrics["process_resident_memory_bytes",] > 10_000_000


async def test_each_problem_is_a_sample_and_goes_with_it(gateway):
    gateway.problems.append(
        Problem(
            kind=ProblemKind.GATE_OFFLINE, part=SitePart.DEVICE, id="101", name='"Barrier"\n', text="", lanes=("Entry",)
        )
    )
    _, metrics = await scraped(gateway)
    assert metrics["edge_gateway_ready",] == 0
    (problem,) = [name for name in metrics if name[0] == "edge_gateway_problem"]
    assert dict(problem[1:]) == {
        "kind": "gate_offline",
        "part": "device",
        "id": "101",
        "name": '"Barrier"\n',
        "subject": "",
        "severity": "alarm",
    }
    gateway.problems.clear()
    _, metrics = await scraped(gateway)
    assert not [name for name in metrics if name[0] == "edge_gateway_problem"]


def command(state: CommandState, number: str = "c1") -> Entry:
    done = Command(
        command_id=number, device_id=101, lane_id="entry", action=GateAction.OPEN, source="lane", requested_at=START,
        deadline_at=START, state=state,
    )  # fmt: skip
    return Entry(commands=(done,))


async def test_what_lanes_did_is_counted(gateway):
    figures = gateway.board.lane_figures
    figures.decided(granted=True, seconds=0.003)
    figures.decided(granted=False, seconds=0.7)
    figures.recorded(command(CommandState.SENT), now=10.0)
    figures.recorded(command(CommandState.ACKNOWLEDGED), now=10.1)
    figures.recorded(command(CommandState.DONE), now=10.7)
    figures.recorded(command(CommandState.REFUSED, "c2"), now=11.0)
    _, metrics = await scraped(gateway)
    lane = ("lane", "entry")
    assert metrics["edge_gateway_decisions_total", lane, ("outcome", "granted")] == 1
    assert metrics["edge_gateway_decisions_total", lane, ("outcome", "denied")] == 1
    assert metrics["edge_gateway_decision_seconds_bucket", lane, ("le", "0.005")] == 1
    assert metrics["edge_gateway_decision_seconds_count", lane] == 2
    assert metrics["edge_gateway_decision_seconds_sum", lane] == pytest.approx(0.703)
    opening = ("action", "open")
    assert metrics["edge_gateway_commands_total", opening, ("end", "done"), lane] == 1
    assert metrics["edge_gateway_commands_total", opening, ("end", "refused"), lane] == 1
    assert metrics["edge_gateway_command_moved_seconds_sum", opening, lane] == pytest.approx(0.7)
    assert metrics["edge_gateway_command_moved_seconds_bucket", opening, lane, ("le", "0.5")] == 0
    assert metrics["edge_gateway_command_moved_seconds_bucket", opening, lane, ("le", "1.0")] == 1
    assert metrics["edge_gateway_lane_events_lost_total", lane] == 0


async def test_the_gateway_itself_is_counted(gateway):
    await gateway.store.webhooks.add(
        Webhook(id="w1", url="https://till.example", types=("card",), secret="s", created_at=START, created_by="chief"),
        most=10,
    )
    _, metrics = await scraped(gateway)
    assert metrics["edge_gateway_store_commit_seconds_count", ("file", "site")] > 0
    assert metrics["edge_gateway_store_waiting",] == 0
    assert metrics["edge_gateway_webhook_enabled", ("webhook", "w1")] == 1
    assert metrics["edge_gateway_webhook_waiting", ("webhook", "w1")] == 0
    assert metrics["edge_gateway_processes", ("process", "gateway")] == 1
    assert metrics["edge_gateway_process_resident_bytes", ("process", "gateway")] > 10_000_000
    assert metrics["edge_gateway_disk_written_bytes_total",] >= 0
    assert metrics["edge_gateway_camera_missing_seconds_total", ("camera", "201"), ("name", "Entry overview")] == 0
    assert not [name for name in metrics if "till.example" in str(name)]


async def test_a_sentence_with_figures_makes_no_series_of_its_own(gateway):
    for count in (3, 4):
        notice = f"{count} devices are not in force"
        gateway.problems.append(gateway_problem(ProblemKind.SITE_FILE_NOTICE, notice, subject=notice))
    _, metrics = await scraped(gateway)
    (problem,) = [dict(name[1:]) for name in metrics if name[0] == "edge_gateway_problem"]
    assert problem["subject"] == ""


async def test_metrics_are_shown_while_the_store_fails(gateway, monkeypatch):
    async def refuse(*_):
        raise StoreError("site.db: the disk cannot be read")

    monkeypatch.setattr(gateway.store.outbox, "books", refuse)
    monkeypatch.setattr(gateway.store.webhooks, "all", refuse)
    answer, metrics = await scraped(gateway)
    assert answer.status == 200
    assert metrics["edge_gateway_ready",] == 1
    assert ("edge_gateway_outbox_waiting",) not in metrics


async def test_the_page_of_metrics_explains_each(gateway):
    async with gateway.client.get(f"{gateway.url}/metrics", headers={"Authorization": "Bearer key-of-till"}) as answer:
        shown = {line.split()[2] for line in (await answer.text()).splitlines() if line.startswith("# TYPE edge_")}
    explained = {f"edge_gateway_{name}" for name in re.findall(r"`([a-z_]+)`", DOCUMENT.read_text())}
    assert {name for name in shown if name not in explained} == set()
    assert len(shown) > 40


async def test_nobody_reads_it_without_a_key_that_may(gateway):
    assert (await scraped(gateway, key=""))[0].status == 401
    assert (await scraped(gateway, key="idle"))[0].status == 403
