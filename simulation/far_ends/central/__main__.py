"""The command `python -m simulation.far_ends.central --port N --data FILE`: the simulated central, on loopback."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from gateway.domain.errors import ConfigError
from gateway.runtime.clock import SystemClock
from simulation.far_ends.central.accounts import CentralAccount
from simulation.far_ends.central.seed import seed_site
from simulation.far_ends.central.service import Central

_USERNAME = "gateway"
_PASSWORD_VARIABLE = "CENTRAL_PASSWORD"  # noqa: S105 (the name of a variable)
_DEVICES = {101: "Entry barrier", 102: "Entry reader", 103: "Exit barrier", 104: "Exit reader"}
_CAMERAS = {201: "Entry camera", 202: "Exit camera"}


async def _serve(*, port: int, data: Path | None, cards: int, password: str) -> None:
    clock = SystemClock()
    central = Central(clock=clock, accounts=(CentralAccount(_USERNAME, password),), data=data)
    ended = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, ended.set)
    await central.start(port=port)
    seed_site(central.tables, now=clock.wall(), devices=_DEVICES, cameras=_CAMERAS, cards=cards)
    sys.stdout.write(f"central at {central.url}, user {_USERNAME}\n")
    sys.stdout.flush()
    await ended.wait()
    await central.stop()


def main() -> int:
    """Serve until interrupted; exit status 2 when it cannot start."""
    parser = argparse.ArgumentParser(prog="python -m simulation.far_ends.central", description=__doc__)
    parser.add_argument("--port", type=int, default=8490, help="0 takes a free port")
    parser.add_argument("--data", type=Path, help="JSON file that keeps the records")
    parser.add_argument("--cards", type=int, default=500, help="how many access cards a fresh site has")
    asked = parser.parse_args()
    try:
        password = os.environ.get(_PASSWORD_VARIABLE, "demo")
        asyncio.run(_serve(port=asked.port, data=asked.data, cards=asked.cards, password=password))
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
