"""A gateway in this process, with its address."""

from __future__ import annotations

import asyncio
import signal
from contextlib import asynccontextmanager

import structlog
from waiting import until

from gateway.app.gateway import Gateway
from gateway.app.systemd import Notify
from gateway.runtime.data_folder import DataFolder
from gateway.site import Secrets, load_whole
from gateway.site.trial_files import TrialFiles

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
