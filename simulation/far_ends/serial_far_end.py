"""Simulated devices on serial lines, made from their profiles: gates and tag readers, well-behaved or not."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from simulation.far_ends.line_devices import WELL_BEHAVED, LineDevices, deliver
from simulation.far_ends.pseudo_terminal import PseudoTerminal

_LONGEST_REQUEST = 512


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request that a device received.

    Attributes:
        unit: the address that it asked.
        what: its place in the profile: `status`, `poll`, `commands.open`, `commands.open.release`.
        at: when its last byte arrived.
    """

    unit: int
    what: str
    at: float


class SerialDevice(Protocol):
    """A device as the far end uses it, once for each request."""

    def requests(self, *, unit: int) -> Mapping[bytes, str]:
        """Return every frame that the device takes, each with its place in the profile."""
        ...

    def answer(self, what: str, *, unit: int, refuses: bool, now: float) -> bytes:
        """Obey a request, unless the device refuses; return the answer, empty for a device that never answers."""
        ...


class SerialFarEnd(LineDevices[ReceivedRequest, str]):
    """The devices behind one serial port.

    Args:
        devices: the device at each address.
        monotonic: the clock of the devices and of the received requests.
    """

    def __init__(self, *, devices: Mapping[int, SerialDevice], monotonic: Callable[[], float] = time.monotonic) -> None:
        super().__init__(monotonic=monotonic)
        self._devices = dict(devices)
        self._buffer = bytearray()
        self._terminal: PseudoTerminal | None = None
        self._requests = {
            frame: (unit, what)
            for unit, device in self._devices.items()
            for frame, what in device.requests(unit=unit).items()
        }

    def say(self, data: bytes) -> None:
        """Send bytes that no request asked for."""
        if self._terminal is not None:
            self._terminal.write(data)

    @asynccontextmanager
    async def serial(self, *, path: Path) -> AsyncIterator[PseudoTerminal]:
        """Serve on a pseudo-terminal under `path`. On leaving, it is unplugged."""
        self._terminal = PseudoTerminal(path=path, on_bytes=self._take)
        self._terminal.plug_in()
        try:
            yield self._terminal
        finally:
            self._terminal.unplug()
            self._terminal = None

    def _take(self, data: bytes) -> None:
        """Answer every complete request. Bytes before one are dropped as noise."""
        self._buffer += data
        while True:
            places = {self._buffer.find(frame): frame for frame in self._requests}
            first = min((place for place in places if place >= 0), default=None)
            if first is None:
                del self._buffer[:-_LONGEST_REQUEST]
                return
            frame = places[first]
            del self._buffer[: first + len(frame)]
            self._hear(*self._requests[frame])

    def _hear(self, unit: int, what: str) -> None:
        how = self._misbehaviours.get(unit, WELL_BEHAVED)
        now = self._monotonic()
        self._received.append(ReceivedRequest(unit, what, now))
        if "commands." in what:
            self._commands.append(what.removeprefix("commands."))
        if how.deaf:
            return
        answer = self._devices[unit].answer(what, unit=unit, refuses=how.exception is not None, now=now)
        if answer and not how.silent:
            deliver(answer, how, self.say)
