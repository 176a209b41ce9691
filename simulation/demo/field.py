"""The process of the simulated field: barriers, readers, cameras, central and vehicles.

`python -m simulation.demo.field --folder DIR` prints one line of JSON (`FieldReady`) when everything is up, and ends
when its standard input closes. It goes on while the gateway restarts, as a real field does. Nothing else is printed
there: its starter may read that line alone. What fails is told on standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import random
import signal
import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import structlog

from drivers.rtsp.server.fanout import Fanout
from drivers.rtsp.server.messages import Credentials
from drivers.rtsp.server.server import RtspServer, ServedStream
from drivers.rtsp.server.testcard import TestCard
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.supervision import Supervisor
from simulation.demo.control import Control
from simulation.demo.devices import DemoDevices
from simulation.demo.scene import BAD_CARDS, CAMERA_ACCOUNT, CARDS, EXIT_INPUTS, GOOD_CARDS, LANES, PEOPLE, FieldReady
from simulation.far_ends.central.accounts import CentralAccount
from simulation.far_ends.central.seed import seed_site
from simulation.far_ends.central.service import Central, Dialect
from simulation.far_ends.vehicles import Mix, Parked, keep_coming, keep_leaving

CENTRAL_FILE = "central.json"
"""The name of the file, in the field's folder, in which its central keeps records."""


async def run_field(
    *, folder: Path, central_port: int, cards: int, traffic: bool, seed: int, central_keys: bool = False
) -> None:
    """Run until standard input closes or a signal comes."""
    clock = SystemClock()
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for wanted in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(wanted, ended.set)
    loop.add_reader(sys.stdin.fileno(), _ends_with_input, ended)
    async with AsyncExitStack() as stack:
        supervisor = await stack.enter_async_context(Supervisor(clock=clock))
        central = await _central(stack, clock, folder, central_port, cards, honours_keys=central_keys)
        devices = DemoDevices(folder=folder)
        lines = await stack.enter_async_context(devices.serve())
        rtsp = await _cameras(stack, supervisor, clock)
        control = await stack.enter_async_context(Control(lanes=devices.lanes, supervisor=supervisor))
        if traffic:
            mix = Mix(good=tuple(card.sent for card in GOOD_CARDS), bad=tuple(card.sent for card in BAD_CARDS))
            leaving = replace(mix, bad_share=0.1, shortest_pause=0.5, longest_pause=2.0)  # one exit for two entries
            parked = Parked()
            sends = {LANES[1].lane_id: partial(keep_leaving, mix=leaving)}
            for number, (lane_id, driving) in enumerate(devices.lanes.items()):
                dice = random.Random(seed + number)  # noqa: S311 (traffic, not secrets)
                send = sends.get(lane_id, partial(keep_coming, mix=mix))
                supervisor.keep(f"traffic-{lane_id}", partial(send, driving, dice=dice, parked=parked))
            dice = random.Random(seed)  # noqa: S311 (mishaps, not secrets)
            supervisor.keep("mishaps", partial(devices.have_mishaps, dice=dice))
        ready = FieldReady(
            lines=lines,
            rtsp_port=rtsp.port,
            central_url=central.url,
            control_url=control.url,
        )
        sys.stdout.write(ready.model_dump_json() + "\n")
        sys.stdout.flush()
        await ended.wait()


async def _central(
    stack: AsyncExitStack, clock: Clock, folder: Path, port: int, cards: int, *, honours_keys: bool
) -> Central:
    accounts = (CentralAccount("gateway", "demo"), *PEOPLE)
    central = Central(
        clock=clock, accounts=accounts, data=folder / CENTRAL_FILE, dialect=Dialect(honours_keys=honours_keys)
    )
    await central.start(port=port)
    stack.push_async_callback(central.stop)
    names = {lane.gate: f"{lane.name} barrier" for lane in LANES}
    names |= {lane.reader: f"{lane.name} reader" for lane in LANES} | {EXIT_INPUTS: "North exit loops"}
    cameras = {lane.camera: f"{lane.name} camera" for lane in LANES if lane.camera}
    seed_site(central.tables, now=clock.wall(), devices=names, cameras=cameras, cards=cards)
    return central


async def _cameras(stack: AsyncExitStack, supervisor: Supervisor, clock: Clock) -> RtspServer:
    streams: dict[str, ServedStream] = {}
    for lane in LANES:
        if not lane.camera:
            continue
        feed = Fanout()
        card = TestCard(name=f"{lane.name} camera", time_code=partial(_time_code, clock))
        supervisor.keep(f"camera-{lane.lane_id}", partial(card.run, feed))
        streams[f"/{lane.lane_id}"] = ServedStream(feed=feed, credentials=Credentials(*CAMERA_ACCOUNT))
    return await stack.enter_async_context(RtspServer(streams=streams))


def _time_code(clock: Clock) -> str:
    return clock.wall().as_datetime().strftime("%H:%M:%S.%f")[:10]


def _ends_with_input(ended: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4096):
        ended.set()


def main() -> int:
    """Run the field; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m simulation.demo.field", description="The simulated field.")
    parser.add_argument("--folder", type=Path, required=True, help="where its serial ports and central's records are")
    parser.add_argument("--central-port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--cards", type=int, default=CARDS, help="access cards that central has")
    parser.add_argument("--no-traffic", action="store_true", help="no vehicle comes by itself")
    parser.add_argument("--seed", type=int, default=1, help="of the traffic")
    parser.add_argument("--central-keys", action="store_true", help="central tells repeated writes by their key")
    asked = parser.parse_args()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    try:
        asked.folder.mkdir(parents=True, exist_ok=True)
        asyncio.run(
            run_field(
                folder=asked.folder,
                central_port=asked.central_port,
                cards=asked.cards,
                traffic=not asked.no_traffic,
                seed=asked.seed,
                central_keys=asked.central_keys,
            )
        )
    except OSError as error:
        sys.stderr.write(f"the simulated field cannot start: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
