"""`GET /metrics`: the site in numbers, read by a Prometheus parser, for a program's key."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Part, Problem


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
            kind=ProblemKind.GATE_OFFLINE, part=Part.DEVICE, id="101", name='"Barrier"\n', text="", lanes=("Entry",)
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


async def test_nobody_reads_it_without_a_key_that_may(gateway):
    assert (await scraped(gateway, key=""))[0].status == 401
    assert (await scraped(gateway, key="idle"))[0].status == 403
