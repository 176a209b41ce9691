"""The shipped alerts and the dashboard, with a real Prometheus that reads a running gateway."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import which

import pytest
import yaml
from aiohttp import ClientConnectionError, ClientSession
from free_ports import free_port
from lacks import lacks
from waiting import until

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, SitePart
from gateway.runtime.loop_watch import LoopWatch
from gateway.store import Webhook

pytestmark = pytest.mark.long("a real Prometheus, at its own pace")

CONFIG = Path(__file__).parents[3] / "config"
ALERTS = CONFIG / "prometheus" / "alerts.yml"
DASHBOARD = CONFIG / "grafana" / "dashboard.json"
FIRED = Path(__file__).parent / "alerts.yml"
NAME = re.compile(r"\bedge_gateway_\w+|\bprocess_\w+")


@pytest.fixture(autouse=True, scope="module")
def programs():
    for program in ("prometheus", "promtool"):
        if not which(program):
            lacks(f"{program} is missing: apt install prometheus")


def expressions() -> list[str]:
    """Return what the dashboard asks, with its variable filled in as Grafana does for all sites."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"].replace("$site", ".+") for panel in panels for target in panel["targets"]]


async def promtool(*words) -> str:
    process = await asyncio.create_subprocess_exec(
        "promtool", *map(str, words), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


@asynccontextmanager
async def prometheus(folder, target):
    """A Prometheus that reads `target` twice a second; yields a function that asks it."""
    (folder / "gate.key").write_text("key-of-till")
    jobs = [
        {
            "job_name": "gates",
            "scrape_interval": "500ms",
            "scrape_timeout": "500ms",
            "authorization": {"credentials_file": str(folder / "gate.key")},
            "static_configs": [{"targets": [target]}],
        }
    ]
    (folder / "prometheus.yml").write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "scrape_configs": jobs}))
    address = f"127.0.0.1:{free_port()}"
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    process = await asyncio.create_subprocess_exec(
        "prometheus", *options, f"--web.listen-address={address}", stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with ClientSession() as client:

            async def ask(expression) -> list:
                try:
                    async with client.get(f"http://{address}/api/v1/query", params={"query": expression}) as answer:
                        if answer.status == 503:  # it still starts
                            return []
                        told = await answer.json()
                except ClientConnectionError:  # it does not listen yet
                    return []
                assert told["status"] == "success", told
                return told["data"]["result"]

            yield ask
    finally:
        process.terminate()
        await process.wait()


async def hold_up(watch: LoopWatch) -> None:
    """Have the watch over the loop count one hold."""
    watching = asyncio.get_running_loop().create_task(watch.run())
    async with asyncio.timeout(30):
        await until(lambda: watch.lag.count)
        while not watch.guilty:
            threading.Event().wait(0.01)
        await until(watch.held)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_each_alert_fires_when_it_should_and_not_before():
    await promtool("check", "rules", ALERTS)
    await promtool("test", "rules", FIRED)
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    fired = {
        case["alertname"] for test in yaml.safe_load(FIRED.read_text())["tests"] for case in test["alert_rule_test"]
    }
    assert fired == {rule["alert"] for rule in group["rules"]}
    explained = (CONFIG.parent / "docs" / "metrics.md").read_text()
    assert [name for name in fired if f"`{name}`" not in explained] == []


async def test_a_real_prometheus_reads_all_that_the_alerts_and_the_dashboard_ask_for(gateway, tmp_path):
    asked = [*expressions(), *(rule["expr"] for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"])]
    gateway.problems.append(
        Problem(kind=ProblemKind.GATE_SLOWER, part=SitePart.LANE, id="entry", name="Main entry", text="")
    )
    await gateway.store.webhooks.add(
        Webhook(id="w1", url="https://till.example", types=("card",), secret="s", created_at=1, created_by="chief"),
        most=10,
    )
    await hold_up(gateway.loop)
    async with prometheus(tmp_path, gateway.url.removeprefix("http://")) as ask, asyncio.timeout(60):
        await until(lambda: ask("edge_gateway_ready == 1"))
        for expression in asked:
            await ask(expression)
        names = {name for expression in asked for name in NAME.findall(expression)}
        assert not {name for name in names if not await ask(f"count(last_over_time({name}[1m]))")}
