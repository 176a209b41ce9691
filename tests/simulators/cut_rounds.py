"""Lines that are cut while a gate is to be closed: does anything of a command arrive after its time-out?

Real lanes over a real store command real drivers; the lines and the barriers are simulated (`cut_lines`). In each round
a vehicle passes, its lane asks for the close, the line is cut around that moment, and a second vehicle drives onto the
closing loop meanwhile.

    python tests/simulators/cut_rounds.py --cuts 50 --seed 7
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

from cut_lines import HoldingConverter, HoldingPort, NoNamespacesError, cut_network
from lanes_at_work import lanes_at_work

from drivers.bus.wire import Direction
from drivers.modbus.frames import Write, decode_request
from gateway.domain.commands import GateAction
from gateway.domain.errors import CommandRefused
from gateway.domain.events import EventKind
from gateway.lanes import Lanes
from gateway.site import Site
from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.modbus_far_end import ModbusFarEnd, Received
from simulation.far_ends.profile_wiring import relay_module

LINES = ("tcp", "rtu-over-tcp", "serial")
_REPLY_SECONDS = 0.3  # of the profile relay-barrier
_LATENESS = 0.1
"""What a busy machine may add between a time-out and the byte that is read beside it."""
_CLEAR_SECONDS = 1.0
_PATIENCE = 60.0


class Cuttable(Protocol):
    """A line."""

    async def cut(self) -> None: ...

    async def mend(self) -> None: ...


@dataclass(eq=False)
class CutLine:
    """One line with its barrier, and what went over it.

    Attributes:
        name: one of `LINES`.
        device_id: of its gate.
        far_end: the controller.
        barrier: the machine behind it.
        line: what is cut.
        url: where the gateway finds it.
        occupied: when something was on the closing loop: from, until.
        sent: each command that the gateway wrote, and when.
    """

    name: str
    device_id: int
    far_end: ModbusFarEnd
    barrier: Barrier
    line: Cuttable
    url: str
    occupied: list[tuple[float, float]] = field(default_factory=list)
    sent: list[tuple[Write, float]] = field(default_factory=list)

    @property
    def framing(self) -> str:
        """The framing of Modbus on it."""
        return "tcp" if self.name == "tcp" else "rtu"

    def trace(self, direction: Direction, data: bytes, at: float) -> None:
        """Note the commands among what the gateway writes."""
        if direction is Direction.SENT:
            asked = decode_request(self.framing, data)  # type: ignore[arg-type]
            if asked is not None and isinstance(asked.request, Write):
                self.sent.append((asked.request, at))

    def occupy(self, *, on: bool) -> None:
        """Let something drive onto the closing loop, or off it."""
        now = time.monotonic()
        self.barrier.set_closing_loop(occupied=on, now=now)
        if on:
            self.occupied.append((now, float("inf")))
        elif self.occupied:
            self.occupied[-1] = (self.occupied[-1][0], now)

    def faults(self) -> list[str]:
        """Return what reached the controller and should not have."""
        found, unmatched = [], list(self.sent)
        for command in self.far_end.commands:
            sent = [one for one in unmatched if one[0] == command.request and one[1] <= command.at]
            if not sent:
                found.append(f"{self.name}: a {command.wish} arrived that was never written")
                continue
            unmatched.remove(sent[-1])  # the latest: an earlier one was lost, which is no fault
            late = command.at - sent[-1][1] - _REPLY_SECONDS
            if late > _LATENESS:
                found.append(f"{self.name}: a {command.wish} arrived {late:.2f} s after its time-out")
            if command.wish is Wish.CLOSE and self._is_occupied(command):
                found.append(f"{self.name}: a close arrived while the closing loop was occupied")
        return found

    @property
    def stands_half_way(self) -> bool:
        """Return whether the boom stands between its limits."""
        state = self.barrier.state(now=time.monotonic())
        return not (state.moving or state.open_limit or state.closed_limit)

    @property
    def lost(self) -> int:
        """Return how many commands were written and never arrived."""
        return len(self.sent) - len(self.far_end.commands)

    def _is_occupied(self, command: Received) -> bool:
        """Nobody can know of a vehicle that came while the close was under way, within its time-out."""
        return any(since + _REPLY_SECONDS + _LATENESS < command.at < until for since, until in self.occupied)


@dataclass(frozen=True)
class Outcome:
    """The result of the rounds."""

    faults: tuple[str, ...]
    rounds: int
    commands: int
    lost: int


async def run_cuts(*, lengths: dict[str, list[float]], rng: random.Random, folder: Path) -> Outcome:
    """Cut each line for these seconds, one after the other; the lines go side by side."""
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(_line(name, folder)) for name in lengths]
        traces = {line.name: line.trace for line in lines}
        lanes, store = await stack.enter_async_context(lanes_at_work(folder, _site(lines), traces=traces))
        async with asyncio.TaskGroup() as group:
            for line in lines:
                group.create_task(_rounds(line, lanes, lengths[line.name], random.Random(rng.random())))
        assert await lanes.recorder.drained(within=30)
        faults = [fault for line in lines for fault in line.faults()]
        for line in lines:
            reopened = [
                event
                for event in await store.events.latest(limit=1000)
                if event.type == EventKind.GATE_REOPENED and event.device_id == line.device_id
            ]
            opens = Counter(command.wish for command in line.far_end.commands)[Wish.OPEN]
            if len(reopened) > opens:
                faults.append(f"{line.name}: opened again {len(reopened)} times on record, {opens} opens arrived")
    return Outcome(
        tuple(faults),
        sum(map(len, lengths.values())),
        sum(len(line.sent) for line in lines),
        sum(line.lost for line in lines),
    )


@asynccontextmanager
async def _line(name: str, folder: Path) -> AsyncIterator[CutLine]:
    barrier = Barrier()
    framing = "tcp" if name == "tcp" else "rtu"
    far_end = ModbusFarEnd(units={1: relay_module(barrier)}, framing=framing)
    make = partial(CutLine, name, 101 + LINES.index(name), far_end, barrier)
    async with AsyncExitStack() as stack:
        if name == "tcp":
            network = await stack.enter_async_context(cut_network())
            port = await stack.enter_async_context(far_end.tcp(listening=network.listen()))
            yield make(network, f"tcp://{network.host}:{port}")
        elif name == "rtu-over-tcp":
            port = await stack.enter_async_context(far_end.tcp())
            converter = await stack.enter_async_context(HoldingConverter(device_port=port).serve())
            yield make(converter, f"tcp://127.0.0.1:{converter.port}")
        else:
            terminal = await stack.enter_async_context(far_end.serial(path=folder / "port", make=HoldingPort))
            assert isinstance(terminal, HoldingPort)
            yield make(terminal, f"serial:{terminal.path}")


def _site(lines: list[CutLine]) -> Site:
    return Site.model_validate(
        {
            "site": {"name": "Cut"},
            "links": [{"id": line.name, "url": line.url, "baud": 115200} for line in lines],
            "devices": [
                {
                    "id": line.device_id,
                    "name": f"Barrier on {line.name}",
                    "driver": "modbus-gate",
                    "link": line.name,
                    "profile": "relay-barrier",
                    "framing": line.framing,
                }
                for line in lines
            ],
            "lanes": [
                {
                    "id": line.name,
                    "name": line.name,
                    "gate": line.device_id,
                    "inputs": [
                        {"role": "arming", "device": line.device_id, "point": "arming_loop"},
                        {"role": "closing", "device": line.device_id, "point": "closing_loop"},
                    ],
                    "closes": "gateway",
                    "clear_seconds": _CLEAR_SECONDS,
                    "clear_after_loss_seconds": 2,
                }
                for line in lines
            ],
        }
    )


async def _rounds(line: CutLine, lanes: Lanes, lengths: list[float], rng: random.Random) -> None:
    for number, seconds in enumerate(lengths, start=1):
        commands = len(line.sent)
        await _round(line, lanes, seconds, rng)
        print(
            f"{line.name}: cut {number} of {seconds:.2f} s, {len(line.sent) - commands} commands written,"
            f" {line.lost} lost so far",
            flush=True,
        )


async def _round(line: CutLine, lanes: Lanes, seconds: float, rng: random.Random) -> None:
    await _until(lambda: line.barrier.state(now=time.monotonic()).open_limit, _Asking(lanes, line, GateAction.OPEN))
    line.occupy(on=True)
    await asyncio.sleep(rng.uniform(0.4, 0.6))  # the vehicle is on the loop
    line.occupy(on=False)
    # The close is due when the loop has been read as free for so long, which a poll of 0.1 s tells.
    await asyncio.sleep(_CLEAR_SECONDS + rng.uniform(0.0, 0.2))
    await line.line.cut()
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_drive_on(line, rng.uniform(0.0, min(0.4, seconds / 2))))
            if rng.random() < 0.5:
                group.create_task(_Asking(lanes, line, GateAction.CLOSE)())
            await asyncio.sleep(seconds)  # the cut lasts
    finally:
        await line.line.mend()
    await asyncio.sleep(rng.uniform(1.0, 3.0))  # what was held has arrived
    line.occupy(on=False)
    await _until(lambda: line.barrier.state(now=time.monotonic()).closed_limit, _Asking(lanes, line, GateAction.CLOSE))


async def _drive_on(line: CutLine, after: float) -> None:
    await asyncio.sleep(after)  # the vehicle comes during the cut
    line.occupy(on=True)


@dataclass
class _Asking:
    """A person who asks for something; a refusal is an answer too."""

    lanes: Lanes
    line: CutLine
    action: GateAction

    async def __call__(self) -> None:
        try:
            await self.lanes.command(device_id=self.line.device_id, action=self.action, source="user:rig")
        except CommandRefused:
            if self.action is GateAction.CLOSE and self.line.stands_half_way:
                await _Asking(self.lanes, self.line, GateAction.OPEN)()  # the way out of a position that is not known


async def _until(condition: Callable[[], bool], ask: _Asking) -> None:
    """Wait for the machine; ask for it every 8 s."""
    asked_at = time.monotonic() - (8.0 if ask.action is GateAction.OPEN else 0.0)
    async with asyncio.timeout(_PATIENCE):
        while not condition():
            if time.monotonic() >= asked_at + 8.0:
                asked_at = time.monotonic()
                await ask()
            await asyncio.sleep(0.02)  # asks and looks again


def cut_lengths(count: int, rng: random.Random) -> list[float]:
    """Seconds between 0.1 and 10, short ones as often as long ones."""
    return [0.1 * 100 ** rng.random() for _ in range(count)]


def main() -> int:
    """Cut lines as the arguments say; 1 when anything arrived that should not have."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    arguments.add_argument("--cuts", type=int, default=50, help="of each line")
    arguments.add_argument("--seed", type=int, default=random.randrange(1 << 31))
    arguments.add_argument("--lines", nargs="+", choices=LINES, default=LINES)
    options = arguments.parse_args()
    print(f"seed {options.seed}", flush=True)
    rng = random.Random(options.seed)
    lengths = {name: cut_lengths(options.cuts, rng) for name in options.lines}
    with tempfile.TemporaryDirectory() as folder:
        try:
            outcome = asyncio.run(run_cuts(lengths=lengths, rng=rng, folder=Path(folder)))
        except NoNamespacesError as error:
            print(f"cannot cut tcp: {error}")
            return 2
    print(
        f"{outcome.rounds} cuts, {outcome.commands} commands written, {outcome.lost} of them lost,"
        f" {len(outcome.faults)} faults"
    )
    for fault in outcome.faults:
        print(fault)
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())
