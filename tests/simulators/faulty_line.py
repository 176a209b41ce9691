"""A line between a driver and its simulated device that can do what real lines do: delay, split, spoil, hang up.

It knows nothing of what goes over it. The device end is any `LinkSpec`; the driver's end is a serial port under a name
that stays, or a TCP port that stays.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from waiting import until

from drivers.contract import LinkError
from drivers.link import Connection, LinkSpec, open_link
from simulation.far_ends.pseudo_terminal import PseudoTerminal


class Fault(StrEnum):
    """A fault of the line for the bytes that the device sends."""

    NONE = "none"
    BYTEWISE = "one byte at a time"
    SPLIT = "split"
    LATE = "late"
    DUPLICATED = "duplicated"
    CORRUPTED = "corrupted"
    ECHOED = "echoed"
    ECHO_ALONE = "echo alone"
    SILENT = "silent"


class FaultyLine:
    """The line. An async context; unplugged until `plug_in`.

    Args:
        far: where the device is.
        path: name of the driver's serial port; None for a TCP port.
        fault: what happens to the device's bytes; may be set at any time.
        late_seconds: how long `LATE` holds bytes back.
    """

    def __init__(self, *, far: LinkSpec, path: Path | None, late_seconds: float = 0.05) -> None:
        self.fault = Fault.NONE
        self.late_seconds = late_seconds
        self.asked = 0
        """How many times the driver has sent something that reached the device."""
        self._spoilt = 0
        self._far = far
        self._terminal = None if path is None else PseudoTerminal(path=path, on_bytes=self._from_terminal)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._group = asyncio.TaskGroup()
        self._pumps: set[asyncio.Task[None]] = set()
        self._near: set[asyncio.StreamWriter] = set()
        self._far_of_terminal: Connection | None = None

    @property
    def near(self) -> LinkSpec:
        """The line as the driver names it; the same before, between and after plugging in."""
        if self._terminal is not None:
            return LinkSpec(f"serial:{self._terminal.path}", baud=115_200)
        return LinkSpec(f"tcp://127.0.0.1:{self._port}", baud=115_200)

    @property
    def device(self) -> str | None:
        """The system's own name of the serial port while it is plugged in."""
        return None if self._terminal is None else self._terminal.device

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        if self._terminal is None:  # a port that is ours from now on, and refuses until it is plugged in
            server = await asyncio.start_server(self._serve_caller, "127.0.0.1", 0)
            self._port = server.sockets[0].getsockname()[1]
            server.close()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None):
        await self.unplug()
        return await self._group.__aexit__(kind, error, tb)

    async def plug_in(self) -> None:
        """Make the driver's end reachable."""
        if self._terminal is not None:
            self._far_of_terminal = await open_link(self._far)
            self._terminal.plug_in()
            self._start(self._pump(self._far_of_terminal, self._terminal.write))
        else:
            self._server = await asyncio.start_server(self._serve_caller, "127.0.0.1", self._port)

    async def unplug(self) -> None:
        """Take the driver's end away: who has it open sees a hang-up."""
        if self._terminal is not None:
            self._terminal.unplug()
        if self._server is not None:
            self._server.close()
            self._server = None
        for pump in tuple(self._pumps):
            pump.cancel()
        await until(lambda: not self._pumps)

    def _start(self, body) -> None:
        task = self._group.create_task(body)
        self._pumps.add(task)
        task.add_done_callback(self._pumps.discard)

    def _serve_caller(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._start(self._serve(reader, writer))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        send = partial(_write_if_open, writer)
        try:
            far = await open_link(self._far)
            async with asyncio.TaskGroup() as both:
                back = both.create_task(self._pump(far, send))
                with contextlib.suppress(ConnectionError):  # the driver may hang up hard
                    while data := await reader.read(4096):
                        self._forward(far, data, send)
                back.cancel()
        except (LinkError, ConnectionError):
            return  # either end is gone; so is the other
        finally:
            writer.transport.abort()

    def _from_terminal(self, data: bytes) -> None:
        if self._far_of_terminal is not None and self._terminal is not None:
            self._forward(self._far_of_terminal, data, self._terminal.write)

    def _forward(self, far: Connection, data: bytes, send: Callable[[bytes], None]) -> None:
        if self.fault in {Fault.ECHOED, Fault.ECHO_ALONE}:
            send(data)
        if far.lost is None:
            self.asked += 1
            far.write(data)

    async def _pump(self, far: Connection, send: Callable[[bytes], None]) -> None:
        last_due = 0.0
        try:
            while True:
                for delay, piece in self._deliveries((await far.read()).data):
                    now = asyncio.get_running_loop().time()
                    due = max(now + delay, last_due)  # bytes never overtake each other, whatever becomes of the fault
                    if due > now:
                        last_due = due
                        asyncio.get_running_loop().call_at(due, send, piece)
                    else:
                        send(piece)
        except LinkError:
            return  # the device hung up
        finally:
            await far.close()

    def _deliveries(self, data: bytes) -> list[tuple[float, bytes]]:
        match self.fault:
            case Fault.SILENT | Fault.ECHO_ALONE:
                return []
            case Fault.BYTEWISE:
                return [(place * 0.001, data[place : place + 1]) for place in range(len(data))]
            case Fault.SPLIT:
                middle = (len(data) + 1) // 2
                return [(0.0, data[:middle]), (0.015, data[middle:])] if len(data) > 1 else [(0.0, data)]
            case Fault.LATE:
                return [(self.late_seconds, data)]
            case Fault.DUPLICATED:
                return [(0.0, data), (0.0, data)]
            case Fault.CORRUPTED:
                return [(0.0, self._spoil(data))]
            case _:
                return [(0.0, data)]

    def _spoil(self, data: bytes) -> bytes:
        """One byte is wrong: each time another, from the middle, where words are, to the ends, where sums are."""
        place = (len(data) // 2, len(data) - 1, 0, max(0, len(data) - 2))[self._spoilt % 4]
        self._spoilt += 1
        return data[:place] + bytes((data[place] ^ 0x55,)) + data[place + 1 :]


def _write_if_open(writer: asyncio.StreamWriter, data: bytes) -> None:
    if not writer.is_closing():
        writer.write(data)
