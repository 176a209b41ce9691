"""The whole house over HTTP: it is ready while its lanes can admit vehicles and let them out, and not otherwise."""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager

import aiohttp
import structlog
from far_end_site import a_barrier
from waiting import until

from gateway.app.gateway import Gateway
from gateway.app.systemd import Notify
from gateway.demo.modbus_far_end import Misbehaviour
from gateway.domain.events import Event, EventKind
from gateway.domain.travels import TRAVEL_SECONDS
from gateway.runtime.data_folder import DataFolder
from gateway.site import Secrets, load_whole
from gateway.site.trial_files import TrialFiles
from gateway.store import Entry, Store

SITE = """
site = {{ name = "Small" }}
storage = {{ media_gigabytes = 1, free_floor_gigabytes = 0.1 }}
links = [{{ id = "g", url = "tcp://127.0.0.1:{port}" }}]
devices = [
    {{ id = 101, name = "B", driver = "modbus-gate", link = "g", profile = "relay-barrier" }},
    {{ id = 103, name = "L", driver = "modbus-io", link = "g", profile = "inputs-8", unit = 2 }},
]
[api]
port = 0
accounts = [{{ username = "chief", password = "chief" }}]
[[lanes]]
id = "entry"
name = "Entry"
gate = 101
arming = {{ device = 103, point = "arming_loop" }}
closing = {{ device = 101, point = "closing_loop" }}
"""

CHIEF = {"username": "chief", "password": "hunter2-hunter2"}


@asynccontextmanager
async def running(folder, port):
    """The house with its address."""
    path = folder / "site.toml"
    path.write_text(SITE.format(port=port))
    secrets = Secrets(folder=folder, environ={"EDGE_GATEWAY_SECRET_CHIEF": "hunter2-hunter2"})
    with structlog.testing.capture_logs() as logs, DataFolder.open(folder / "data") as data:
        loaded, files = load_whole(path, secrets=secrets), TrialFiles(path=path, folder=folder / "data/site-file")
        house = Gateway(loaded=loaded, files=files, folder=data, secrets=secrets, notify=Notify(address=None))
        async with asyncio.timeout(50), asyncio.TaskGroup() as group:
            living = group.create_task(house.live())
            ports = await until(lambda: [entry["port"] for entry in logs if entry["event"] == "interface_served"])
            yield f"http://127.0.0.1:{ports[0]}"
            signal.raise_signal(signal.SIGTERM)
            await living


async def test_ready_is_503_with_the_lane_named_while_it_cannot_work(tmp_path):
    async with a_barrier() as (_, far_end, port), running(tmp_path, port) as url, aiohttp.ClientSession() as client:

        async def ready(status: int) -> list[str]:
            async def answered():
                async with client.get(f"{url}/health/ready", headers=headers) as answer:
                    return await answer.json() if answer.status == status else None

            return (await until(answered))["not_ready"]

        async def is_all_silent() -> bool:
            return await ready(503) == ["Entry cannot work: no unit answers on line g; on it: B, L"]

        async with client.post(f"{url}/v1/auth/login", json=CHIEF) as answer:
            headers = {"SessionID": (await answer.json())["session"]}
        assert await ready(200) == []
        far_end.misbehave(2, Misbehaviour(deaf=True))
        (why,) = await ready(503)
        assert why.startswith("Entry cannot work: L does not answer")
        far_end.misbehave(1, Misbehaviour(deaf=True))
        await until(is_all_silent)
        far_end.misbehave(1)
        far_end.misbehave(2)
        assert await ready(200) == []


async def kept_travels(folder, *seconds):
    """Keep as many openings of the lane's gate as if it had made them before."""
    data = folder / "data"
    data.mkdir()
    store = Store(folder=data, site_name="Small", sends=False)
    await store.open()
    for number, one in enumerate(seconds):
        facts = {TRAVEL_SECONDS: one}
        event = Event(EventKind.GATE_OPENED, number, clock_trusted=True, description="", lane_id="entry", data=facts)
        await store.journal.record(Entry(events=(event,)))
    await store.close()


async def test_a_gate_that_became_slower_is_a_problem(tmp_path):
    await kept_travels(tmp_path, *[3.0] * 40, *[4.8] * 5)
    async with a_barrier() as (_, _, port), running(tmp_path, port) as url, aiohttp.ClientSession() as client:
        async with client.post(f"{url}/v1/auth/login", json=CHIEF) as answer:
            headers = {"SessionID": (await answer.json())["session"]}

        async def found():
            async with client.get(f"{url}/health/ready", headers=headers) as answer:
                return [one for one in (await answer.json())["problems"] if one["kind"] == "gate_slower"]

        (slower,) = await until(found)
        assert slower["text"] == (
            "Entry: the gate opens more slowly than it used to: its last 5 took 4.8 s; 3.0 s is normal, up to 3.0 s"
        )
        assert (slower["severity"], slower["lanes"]) == ("warning", [])
