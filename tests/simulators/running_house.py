"""A gateway in this process, with its address."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
from running_gateway import PASSWORD
from waiting import until

from gateway.app.contexts import RunContext
from gateway.app.gateway import Gateway
from gateway.app.systemd import Notify
from gateway.runtime.data_folder import DataFolder
from gateway.site import Secrets, load_whole, secrets_folder
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
[[lanes]]
id = "entry"
name = "Entry"
gate = 101
arming = {{ device = 103, point = "arming_loop" }}
closing = {{ device = 101, point = "closing_loop" }}
"""

CHIEF = {"username": "chief", "password": PASSWORD}


@dataclass
class House:
    """A gateway at work."""

    folder: Path
    gateway: Gateway
    log: list[Any] = field(default_factory=list)

    def told(self, event: str) -> list[Any]:
        """Return the lines of its log with this event."""
        return [line for line in self.log if line["event"] == event]

    async def tells(self, event: str, *, times: int = 1) -> Any:
        """Wait for the event in its log; its last line."""
        await until(lambda: len(self.told(event)) >= times)
        return self.told(event)[-1]

    async def serves(self) -> int:
        """Wait until it answers; its port."""
        return int((await self.tells("interface_served"))["port"])


@asynccontextmanager
async def at_work(folder: Path, data: Path, environ: Mapping[str, str]) -> AsyncIterator[House]:
    """The gateway of `site.toml` in a folder, from its start to its stop."""
    path = folder / "site.toml"
    secrets = Secrets(folder=secrets_folder(path), environ=dict(environ))
    files = TrialFiles(path=path, folder=data / "site-file")
    loaded = load_whole(path, secrets=secrets, text=files.unconfirmed())
    with structlog.testing.capture_logs() as log, DataFolder.open(data) as opened:
        run = RunContext(
            loaded=loaded,
            files=files,
            folder=opened,
            secrets=secrets,
            notify=Notify(address=None),
            start=files.at_start(),
        )
        gateway = Gateway(run)
        async with asyncio.timeout(50), asyncio.TaskGroup() as group:
            living = group.create_task(gateway.live())
            house = House(data, gateway, log)
            try:
                await house.tells("gateway_started")
                yield house
            finally:
                signal.raise_signal(signal.SIGTERM)
                await living


@asynccontextmanager
async def running(folder: Path, port: int) -> AsyncIterator[str]:
    """The house with its address."""
    (folder / "site.toml").write_text(SITE.format(port=port))
    async with at_work(folder, folder / "data", {}) as house:
        yield f"http://127.0.0.1:{await house.serves()}"
