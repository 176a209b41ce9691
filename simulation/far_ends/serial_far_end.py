"""Simulated devices on serial lines, made from their profiles: gates and tag readers, well-behaved or not."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from simulation.far_ends.pseudo_terminal import PseudoTerminal

_MOST_REQUESTS = 10_000
_LONGEST_REQUEST = 512


@dataclass(frozen=True, slots=True)
class SerialManners:
    """Faults of a device on a serial line, which may be combined.

    Attributes:
        silent: whether it obeys but never answers.
        deaf: whether it neither obeys nor answers.
        late: the seconds until it answers; it obeys at once.
        piece_seconds: the pause between the bytes of an answer; None to answer in one piece.
        corrupt: whether it garbles the middle byte of its answers.
        twice: whether it sends each answer twice.
        noise: the bytes before each answer.
        refuses: whether it answers everything with a refusal, and obeys nothing.
    """

    silent: bool = False
    deaf: bool = False
    late: float = 0.0
    piece_seconds: float | None = None
    corrupt: bool = False
    twice: bool = False
    noise: bytes = b""
    refuses: bool = False


WELL_MANNERED = SerialManners()


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


class SerialFarEnd:
    """The devices behind one serial port.

    Args:
        devices: the device at each address.
        monotonic: the clock of the devices and of the received requests.
    """

    def __init__(self, *, devices: Mapping[int, SerialDevice], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._devices = dict(devices)
        self._monotonic = monotonic
        self._manners: dict[int, SerialManners] = {}
        self._received: deque[ReceivedRequest] = deque(maxlen=_MOST_REQUESTS)
        self._commands: deque[str] = deque(maxlen=_MOST_REQUESTS)
        self._buffer = bytearray()
        self._terminal: PseudoTerminal | None = None
        self._requests = {
            frame: (unit, what)
            for unit, device in self._devices.items()
            for frame, what in device.requests(unit=unit).items()
        }

    @property
    def received(self) -> tuple[ReceivedRequest, ...]:
        """The last requests, oldest first."""
        return tuple(self._received)

    @property
    def commands(self) -> tuple[str, ...]:
        """The names of the last commands and releases, oldest first. Polls do not push them out."""
        return tuple(self._commands)

    def behave(self, unit: int, manners: SerialManners = WELL_MANNERED) -> None:
        """Set how `unit` behaves; without `manners` it behaves well again."""
        self._manners[unit] = manners

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
        manners = self._manners.get(unit, WELL_MANNERED)
        now = self._monotonic()
        self._received.append(ReceivedRequest(unit, what, now))
        if "commands." in what:
            self._commands.append(what.removeprefix("commands."))
        if manners.deaf:
            return
        answer = self._devices[unit].answer(what, unit=unit, refuses=manners.refuses, now=now)
        if answer and not manners.silent:
            self._answer(answer, manners)

    def _answer(self, answer: bytes, manners: SerialManners) -> None:
        if manners.corrupt:
            middle = len(answer) // 2
            answer = answer[:middle] + bytes((answer[middle] ^ 0x2A,)) + answer[middle + 1 :]
        sent = manners.noise + answer * (2 if manners.twice else 1)
        if manners.piece_seconds is None and not manners.late:
            self.say(sent)
            return
        pieces = [sent] if manners.piece_seconds is None else [sent[place : place + 1] for place in range(len(sent))]
        loop = asyncio.get_running_loop()
        for place, piece in enumerate(pieces):
            loop.call_later(manners.late + place * (manners.piece_seconds or 0.0), self.say, piece)
