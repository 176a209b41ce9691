"""The gateway's side of an OSDP line: the owner of the line's process, which passes its messages to the readers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace

import structlog

from drivers.backoff import Reconnects
from drivers.bus.line_quality import Failure, LineAnswers, LineQuality
from drivers.child_process import ChildProcess, start_child
from drivers.contract import Feedback, LinkError, ProtocolViolation
from drivers.link import LinkSpec
from drivers.osdp.messages import (
    Beat,
    Connected,
    Happening,
    LineSeen,
    Lost,
    Polled,
    ReaderSetup,
    Setup,
    Show,
    TamperSeen,
    happening_of,
)
from drivers.system_messages import system_words

log = structlog.get_logger(__name__)

Listener = Callable[[Happening], None]

SILENT_SECONDS = 6.0
"""Seconds without a message after which the process counts as hung.

Longer than opening a TCP connection may take, because the process sends no heartbeat meanwhile.
"""

END_SECONDS = 3.0
"""The longest wait for the end of a killed process, which may hang in the port's driver."""
_STEADY_SECONDS = 10.0
_REPLY_SECONDS = 0.2
"""The seconds that libosdp waits for a reply, as the OSDP standard prescribes."""
_UNSENT_LIMIT = 4 * 1024
_NOT_HANDED_ON = ("EDGE_GATEWAY_SECRET_", "CREDENTIALS_DIRECTORY", "NOTIFY_SOCKET", "WATCHDOG_", "LISTEN_")
_KEY_SECONDS = 12.0


class OsdpLine:
    """One line of up to 32 readers, served by a process that is started again when it ends or falls silent.

    Args:
        name: the line's name in logs.
        spec: the line's address and settings; nothing else may use the line.
        keys: the 16-byte key of the reader at each address. Only the process gets them.
        install: whether to connect with the default key that every new reader knows, to give the reader its own key.
        monotonic: the clock.
    """

    def __init__(
        self,
        *,
        name: str,
        spec: LinkSpec,
        keys: Mapping[int, bytes],
        install: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._setup = Setup(
            url=spec.url,
            baud=spec.baud,
            parity=spec.parity,
            stop_bits=spec.stop_bits,
            readers=tuple(ReaderSetup(address=address, key=key.hex()) for address, key in sorted(keys.items())),
            install=install,
        )
        self._monotonic = monotonic
        self._listeners: dict[int, Listener] = {}
        self._standing: dict[int, Connected | Lost] = {}
        self._process: ChildProcess | None = None
        self._down = ""
        self._tampered: set[int] = set()
        self._answers = LineAnswers(line=name)
        for address in keys:
            self._answers.polled(address, allowed=_REPLY_SECONDS)

    def quality(self) -> LineQuality:
        """Return the line's state, and statistics of how its readers answer."""
        told = self._answers.quality(down_reason=self._down, now=self._monotonic())
        units = tuple(
            replace(unit, unsecured=self._unsecured(unit.unit), is_tampered=unit.unit in self._tampered)
            for unit in told.units
        )
        return replace(told, units=units)

    @property
    def pid(self) -> int:
        """The id of the line's process, 0 while there is none."""
        return self._process.pid if self._process else 0

    async def run(self) -> None:
        """Keep the line's process running until cancelled; then kill it."""
        reconnects = Reconnects(steady=_STEADY_SECONDS)
        while True:
            started_at = self._monotonic()
            try:
                async with self._started() as process:
                    await self._listen(process)
            except (LinkError, ProtocolViolation, OSError) as error:
                reconnects.failed(lasted=self._monotonic() - started_at)
                self._down = system_words(error) if isinstance(error, OSError) else str(error)
                log.warning("osdp_line_failed", line=self._name, reason=self._down)
                for reader in self._setup.readers:
                    self._take(Lost(address=reader.address, reason=self._down[:300]))
            await asyncio.sleep(reconnects.wait())

    @contextlib.contextmanager
    def attached(self, address: int, listener: Listener) -> Iterator[None]:
        """Inside this context, pass messages about the reader at this address to `listener`, on the loop's thread.

        If the reader's state is known, `listener` is called with it at once.
        """
        self._listeners[address] = listener
        if address in self._standing:
            listener(self._standing[address])
        try:
            yield
        finally:
            del self._listeners[address]

    def show(self, address: int, feedback: Feedback) -> None:
        """Show feedback at the reader. It is dropped while the reader is not connected."""
        if self._process is None or not isinstance(self._standing.get(address), Connected):
            return
        pipe = self._process.stdin
        if pipe is not None and not pipe.is_closing() and pipe.transport.get_write_buffer_size() < _UNSENT_LIMIT:
            pipe.write(Show(address=address, feedback=feedback).to_line())

    @contextlib.asynccontextmanager
    async def _started(self) -> AsyncIterator[ChildProcess]:
        process = await start_child(
            (sys.executable, "-P", "-m", "drivers.osdp.line_process"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            environ={key: value for key, value in os.environ.items() if not key.startswith(_NOT_HANDED_ON)},
        )
        assert process.stdin is not None  # noqa: S101 (it was asked for)
        try:
            process.stdin.write(self._setup.to_line())
            self._process = process
            yield process
        finally:
            self._process = None
            process.kill()  # it has no unfinished work that would be lost
            process.close()
            if await process.ended(within=END_SECONDS) is None:
                log.error("osdp_line_process_does_not_die", line=self._name, pid=process.pid)

    async def _listen(self, process: ChildProcess) -> None:
        """Pass on the process's messages. Raises LinkError when it ends or falls silent."""
        assert process.stdout is not None  # noqa: S101 (it was asked for)
        while True:
            try:
                async with asyncio.timeout(SILENT_SECONDS):
                    line = await process.stdout.readline()
            except TimeoutError as error:
                raise LinkError(f"the process of line {self._name} fell silent") from error
            except ValueError as error:  # longer than the reader's limit
                raise ProtocolViolation(f"the process of line {self._name} does not end its line") from error
            if not line:
                status = await process.ended(within=END_SECONDS)
                how = "says nothing more" if status is None else f"ended with status {status}"
                raise LinkError(f"the process of line {self._name} {how}")
            self._take(happening_of(line))

    def _unsecured(self, address: int) -> str:
        match self._standing.get(address):
            case Connected():
                return ""
            case Lost(reason=reason):
                return reason
            case _:
                return "it has not answered yet"

    def _count(self, polled: Polled) -> None:
        now = self._monotonic()
        for outcome in polled.outcomes:
            if isinstance(outcome, Failure):
                self._answers.failed(polled.address, outcome, now=now)
            else:
                self._answers.answered(polled.address, took=outcome / 1000, now=now)

    def _take(self, happening: Happening) -> None:
        match happening:
            case Beat():
                return
            case Polled():
                self._count(happening)
                return
            case LineSeen():
                self._down = happening.down
                return
            case TamperSeen():
                (self._tampered.add if happening.tampered else self._tampered.discard)(happening.address)
        if isinstance(happening, Connected | Lost):
            if isinstance(happening, Lost) and isinstance(self._standing.get(happening.address), Lost):
                log.info("osdp_reader_still_away", line=self._name, reader=happening.address, reason=happening.reason)
            self._standing[happening.address] = happening
        listener = self._listeners.get(happening.address)
        if listener is not None:
            listener(happening)


async def set_key(*, spec: LinkSpec, address: int, key: bytes) -> None:
    """Set the reader's key (16 bytes), and check that the reader then opens a secure channel with it.

    A new reader, or one in its install mode, opens a secure channel with the default key that every reader knows. The
    new key is set over that channel, and anyone who listens on the cable meanwhile can learn it. So a person on site
    calls this, and never the gateway by itself.

    A reader that has the key already keeps it, so an interrupted run can be repeated. Nothing else may use the line
    meanwhile. Raises LinkError with the reason when the reader does not take the key.
    """
    for install in (True, False):
        line = OsdpLine(name="provisioning", spec=spec, keys={address: key}, install=install)
        state = await _reader_state(line, address)
        if isinstance(state, Lost):
            raise LinkError(state.reason)


async def _reader_state(line: OsdpLine, address: int) -> Connected | Lost:
    """Wait for the line's first report of the reader, at most 12 s; Lost when none came."""
    found: asyncio.Future[Connected | Lost] = asyncio.get_running_loop().create_future()

    def take(happening: Happening) -> None:
        if isinstance(happening, Connected | Lost) and not found.done():
            found.set_result(happening)

    with line.attached(address, take):
        async with asyncio.TaskGroup() as group:
            running = group.create_task(line.run(), name="osdp provisioning")
            try:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_KEY_SECONDS):
                        return await found
            finally:
                running.cancel()
    return Lost(address=address, reason="nothing was heard of it")
