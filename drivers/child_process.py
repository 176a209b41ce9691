"""Child processes, started without delaying the event loop.

asyncio starts a child on the loop by `vfork`, which stops the whole interpreter until the child runs its program: up
to a quarter of a second on a busy machine. Here the child is forked in a thread, which costs the loop one or two
milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import IO

_LONGEST_LINE = 64 * 1024

# The switch that Python documents under "Disabling use of vfork() or posix_spawn()". It holds for the whole program.
subprocess._USE_VFORK = False  # type: ignore[misc]  # noqa: SLF001


class ChildProcess:
    """A running child process, made by `start_child`. Used on the event loop's thread only.

    Attributes:
        stdin: the pipe to the child's standard input, None where no pipe was asked for.
        stdout: the pipe from its standard output, or None likewise.
        stderr: the pipe from its standard error, or None likewise.
    """

    def __init__(self, started: subprocess.Popen[bytes]) -> None:
        self._started = started
        self._ended = asyncio.Event()
        self._transports: list[asyncio.BaseTransport] = []
        self.stdin: asyncio.StreamWriter | None = None
        self.stdout: asyncio.StreamReader | None = None
        self.stderr: asyncio.StreamReader | None = None
        self._end_of_it = os.pidfd_open(started.pid)
        asyncio.get_running_loop().add_reader(self._end_of_it, self._take_end)

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._started.pid

    @property
    def returncode(self) -> int | None:
        """The child's exit status, negative for a signal; None while it runs."""
        return self._started.returncode

    async def wait(self) -> int:
        """Wait without a limit until the child ends; return its exit status."""
        await self._ended.wait()
        return self._started.returncode

    async def ended(self, *, within: float) -> int | None:
        """Wait at most `within` seconds until the child ends; return its exit status, None while it still runs.

        Even a killed process can take long to end, when it waits for a disk or a driver that hangs.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                return await self.wait()
        return None

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal; do nothing if the child has ended."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):  # it ended just now
                self._started.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL; do nothing if the child has ended."""
        self.send_signal(signal.SIGKILL)

    def close(self) -> None:
        """Close this side of the pipes, unread and unsent bytes included. Does not wait for the child's end."""
        for transport in self._transports:
            transport.close()

    async def connect(self) -> None:
        """Open this side of the pipes."""
        self.stdin = await self._writer(self._started.stdin)
        self.stdout = await self._reader(self._started.stdout)
        self.stderr = await self._reader(self._started.stderr)

    async def _reader(self, pipe: IO[bytes] | None) -> asyncio.StreamReader | None:
        if pipe is None:
            return None
        reader = asyncio.StreamReader(limit=_LONGEST_LINE)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._transports.append(transport)
        return reader

    async def _writer(self, pipe: IO[bytes] | None) -> asyncio.StreamWriter | None:
        if pipe is None:
            return None
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
        )
        self._transports.append(transport)
        return asyncio.StreamWriter(transport, protocol, None, loop)

    def _take_end(self) -> None:
        if self._started.poll() is None:
            return
        asyncio.get_running_loop().remove_reader(self._end_of_it)
        os.close(self._end_of_it)
        self._ended.set()


async def start_child(
    words: Sequence[str],
    *,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    stderr: int | None = None,
    environ: Mapping[str, str] | None = None,
) -> ChildProcess:
    """Start a program in a session of its own: Ctrl-C in a terminal does not reach it.

    Args:
        words: the program and its arguments.
        stdin: `subprocess.PIPE` or `DEVNULL`; None inherits this process's own.
        stdout: the same choice for the standard output.
        stderr: the same choice for the standard error.
        environ: the child's environment; None inherits this process's.

    Raises OSError when the machine cannot start it. A caller that is cancelled meanwhile leaves no child behind.
    """
    started = await _forked(
        lambda: subprocess.Popen(
            words, stdin=stdin, stdout=stdout, stderr=stderr, env=environ, bufsize=0, start_new_session=True
        )
    )
    try:
        child = ChildProcess(started)
    except OSError:  # a system without pidfd, or out of descriptors: nobody would learn that the child ended
        with started:
            started.kill()
        raise
    try:
        await child.connect()
    except BaseException:  # out of descriptors, or cancelled: nobody else would end this child
        child.kill()
        child.close()
        raise
    return child


async def _forked(make: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Fork in a thread of its own, since all threads of the pool may be waiting for a disk that hangs."""
    starting: Future[subprocess.Popen[bytes]] = Future()
    thread = threading.Thread(target=_start_and_stay, args=(make, starting), name="start-child", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, "the machine has no room for another thread") from error
    try:
        return await asyncio.shield(asyncio.wrap_future(starting))
    except asyncio.CancelledError:
        starting.add_done_callback(_end)
        raise


def _start_and_stay(make: Callable[[], subprocess.Popen[bytes]], starting: Future[subprocess.Popen[bytes]]) -> None:
    """Start a child, and keep this thread until the child ends.

    The kernel counts the thread as the parent: a child with PR_SET_PDEATHSIG gets its signal when that thread ends.
    """
    starting.set_running_or_notify_cancel()
    try:
        started = make()
    except BaseException as error:  # noqa: BLE001 (every error goes to the caller that waits for the child)
        starting.set_exception(error)
        return
    starting.set_result(started)
    with contextlib.suppress(ChildProcessError):  # its exit status was collected already
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)


def _end(starting: Future[subprocess.Popen[bytes]]) -> None:
    if starting.exception() is None:
        with starting.result() as child:
            child.kill()
