"""Heartbeats in the bucket, and what those who run a fleet see of them."""

from __future__ import annotations

import asyncio
import json

import pytest
from at_work import running
from fleet_scene import NAME, connection, happen
from running_gateway import typed
from waiting import until

from gateway.domain.problems import ProblemKind
from gateway.fleet.connection import FleetServer, connected
from gateway.fleet.heartbeat import Heartbeat
from gateway.fleet.names import BUCKET, STREAM
from gateway.fleet.operator import prepare
from gateway.problems.problem import Problem, SitePart, Verdict
from gateway.runtime.clock import SystemClock

PROBLEM = Problem(
    kind=ProblemKind.GATE_OFFLINE, part=SitePart.DEVICE, id="101", name="Barrier", text="away", lanes=("Main entry",)
)


class Site:
    """A site with problems as a test says."""

    def __init__(self, store) -> None:
        self.problems: tuple[Problem, ...] = ()
        self.heartbeat = Heartbeat(
            fleet_name=NAME,
            site_name="North",
            version="1.2.3",
            verdict=lambda: Verdict(problems=self.problems, lanes=2),
            store=store,
            waiting=lambda: 4,
            clock=SystemClock(),
            soonest_seconds=0.05,
        )


async def value(broker) -> dict:
    bucket = await broker.jetstream().key_value(BUCKET)
    return json.loads((await bucket.get(str(NAME))).value)


async def test_a_heartbeat_tells_how_the_gateway_is_and_each_change(server, broker, store):
    site, (event,) = Site(store), await happen(store)
    async with running(connection(server.url, site.heartbeat).run()):
        bucket = await broker.jetstream().key_value(BUCKET)
        watcher = await bucket.watchall()
        first = await until(lambda: told(watcher))
        assert (first["version"], first["site"], first["ready"], first["waiting"]) == ("1.2.3", "North", True, 4)
        assert (first["headline"], first["last_event"]) == ("All 2 lanes work", event)
        site.problems = (PROBLEM,)
        store.changes.bump()
        second = await until(lambda: told(watcher))
        assert second["ready"] is False
        assert second["problems"] == [{"kind": "gate_offline", "severity": "alarm", "text": str(PROBLEM.sentence)}]
        await watcher.stop()


async def told(watcher) -> dict | None:
    try:
        entry = await watcher.updates(timeout=0.1)
    except TimeoutError:
        return None
    return json.loads(entry.value) if entry is not None and entry.value else None


async def status(server, *more: str):
    return await asyncio.to_thread(typed, "fleet", "status", "--server", server.url, *more)


@pytest.mark.long("the command, which connects anew each time")
async def test_the_status_shows_each_gateway_and_its_exit_status_whether_all_is_well(server, broker, store):
    shown = await status(server)
    assert (shown.returncode, shown.stdout) == (0, "no gateway has sent a heartbeat yet\n")
    site = Site(store)
    async with running(connection(server.url, site.heartbeat).run()):
        await until(lambda: beaten(broker))
        shown = await status(server)
        assert shown.returncode == 0, shown.stderr
        head, row = shown.stdout.splitlines()
        assert head.split() == ["GATEWAY", "STATE", "VERSION", "SEEN", "WAITING", "HEADLINE"]
        assert row.split()[:3] == ["north.gate-1", "good", "1.2.3"]
        site.problems = (PROBLEM,)
        store.changes.bump()
        await until(lambda: not_ready(broker))
    shown = await status(server, "--json")
    assert shown.returncode == 1
    (one,) = json.loads(shown.stdout)
    assert (one["gateway"], one["state"], one["problem_count"]) == ("north.gate-1", "not ready", 1)


async def beaten(broker) -> bool:
    return bool((await broker.jetstream().stream_info(f"KV_{BUCKET}")).state.messages)


async def not_ready(broker) -> bool:
    return not (await value(broker))["ready"]


async def test_without_an_answer_the_status_says_so():
    shown = await asyncio.to_thread(typed, "fleet", "status", "--server", "nats://127.0.0.1:1")
    assert shown.returncode == 3
    assert "nothing answers at 127.0.0.1" in shown.stderr


@pytest.mark.parametrize("url", ["nats://fleet.example.com", "http://127.0.0.1"])
async def test_a_server_elsewhere_needs_tls(url):
    shown = await asyncio.to_thread(typed, "fleet", "status", "--server", url)
    assert shown.returncode == 2
    assert "--server must be tls://" in shown.stderr


async def test_a_server_is_prepared_and_prepared_again_otherwise(server, broker):
    js = broker.jetstream()
    for stream in (STREAM, f"KV_{BUCKET}"):
        await js.delete_stream(stream)
    for days in (30, 30, 90):
        async with connected(FleetServer(url=server.url, credentials="", ca_file=None, name="test")) as (line, _):
            await prepare(line, days=days, replicas=1)
        config = (await js.stream_info(STREAM)).config
        assert (config.max_age, config.allow_direct, config.duplicate_window) == (days * 86_400, True, 600)
    bucket = await js.key_value(BUCKET)
    assert await bucket.put("a.b", b"x")
