"""The cutter processes, which make clips and thumbnails and end when they have been idle for a while.

libav needs as much memory as the rest of a worker, and a bad file may crash its process. So it runs in a process that
records no cameras.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path

import structlog

from drivers.child_process import ChildProcess, start_child
from gateway.camera_worker.cut_orders import BEGUN, BadRequest, CutOrder, CutOutcome, MediaMissing
from gateway.domain.footage import ClipCut, CutClip, TakeThumbnail, ThumbnailTaken

log = structlog.get_logger(__name__)

IDLE_SECONDS = 20.0
"""Seconds for which an idle cutter waits for more work, because starting one takes a third of a second."""
_JOB_SECONDS = 120.0


class CutterLost(Exception):
    """The process for a clip or thumbnail could not be started, died, or took too long; the text says which."""


class Cutters:
    """The owner of the cutters, each of which makes one thing at a time. Belongs to the event loop."""

    def __init__(self, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        self._idle: list[ChildProcess] = []
        self._leaving: dict[int, asyncio.TimerHandle] = {}
        self._killed: list[ChildProcess] = []

    async def make(self, media: Path, job: CutClip | TakeThumbnail) -> ClipCut | ThumbnailTaken:
        """Carry out a job; its result is durable on return.

        Raises:
            BadRequest: a path leads out of the media folder, or is no segment's.
            MediaMissing: a segment is gone or unreadable.
            OSError: the output cannot be written.
            CutterLost: the process could not be started, died, or took too long.
        """
        order = CutOrder(media=str(media), job=job)
        waited = self._take_idle()
        outcome = await self._done(waited, order) if waited is not None else None
        if outcome is None:  # an idle cutter may have died before this order, which is not to blame
            outcome = await self._done(await _started(), order)
        if outcome is None:
            raise CutterLost("the process that makes clips and thumbnails ended before it began; recording went on")
        if outcome.bad_request:
            raise BadRequest(outcome.bad_request)
        if outcome.disk is not None:
            raise OSError(*outcome.disk)
        if outcome.made is None:
            raise MediaMissing(outcome.missing)
        return outcome.made

    async def end(self, seconds: float) -> None:
        """End all idle cutters, and wait for that at most `seconds`. Busy ones end with this process."""
        for cutter in list(self._idle):
            self._let_go(cutter)
        with contextlib.suppress(TimeoutError):  # a cutter that waits for a disk ends later
            async with asyncio.timeout(seconds):
                for cutter in self._killed:
                    await cutter.wait()

    async def _done(self, cutter: ChildProcess, order: CutOrder) -> CutOutcome | None:
        """Have the cutter carry out an order, then keep it for more; return None when it had ended before.

        Raises CutterLost.
        """
        outcome = None
        try:
            outcome = await _asked(cutter, order)
        finally:
            if outcome is None:
                self._end(cutter)
            else:
                self._keep(cutter)
        return outcome

    def _take_idle(self) -> ChildProcess | None:
        """Return the idle cutter that worked last and still lives; None when there is none."""
        while self._idle:
            cutter = self._idle.pop()
            self._leaving.pop(cutter.pid).cancel()
            if cutter.returncode is None:
                return cutter
            cutter.close()
        return None

    def _keep(self, cutter: ChildProcess) -> None:
        self._idle.append(cutter)
        loop = asyncio.get_running_loop()
        self._leaving[cutter.pid] = loop.call_later(self._idle_seconds, self._let_go, cutter)

    def _let_go(self, cutter: ChildProcess) -> None:
        self._idle.remove(cutter)
        self._leaving.pop(cutter.pid).cancel()
        self._end(cutter)

    def _end(self, cutter: ChildProcess) -> None:
        self._killed = [before for before in self._killed if before.returncode is None]
        self._killed.append(cutter)
        cutter.kill()
        cutter.close()


async def _started() -> ChildProcess:
    try:
        return await start_child(
            (sys.executable, "-m", "gateway.camera_worker.cutter"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
    except OSError as error:  # the machine's fault, not the media folder's
        raise CutterLost(f"no process to make clips can be started: {error.strerror}") from error


async def _asked(cutter: ChildProcess, order: CutOrder) -> CutOutcome | None:
    """Send an order and return its outcome; None when the cutter ended before it began."""
    if cutter.stdin is None or cutter.stdout is None:
        raise CutterLost("nothing can be said to the process that makes clips")
    answer = b""
    begun = False
    with contextlib.suppress(ConnectionError):  # it has died, which the missing answer shows
        cutter.stdin.write(order.model_dump_json().encode() + b"\n")
        await cutter.stdin.drain()
    try:
        async with asyncio.timeout(_JOB_SECONDS):
            begun = await cutter.stdout.readline() == BEGUN
            answer = await cutter.stdout.readline()
    except TimeoutError as error:
        raise CutterLost(f"this could not be made of the footage within {_JOB_SECONDS:g} s") from error
    if not begun:
        log.warning("cutter_had_ended", pid=cutter.pid)
        return None
    if not answer.endswith(b"\n"):
        log.error("cutter_lost", pid=cutter.pid)
        raise CutterLost("the process that makes clips and thumbnails died of this; recording went on")
    return CutOutcome.model_validate_json(answer)
