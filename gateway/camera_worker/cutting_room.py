"""Clips and thumbnails are made in processes of their own, which last a little longer than their work.

libav needs as much memory as the rest of a worker, and a bad file may end its process. So it runs in a process that
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
from gateway.camera_worker.cutting import BEGUN, CutOrder, CutOutcome
from gateway.camera_worker.media_paths import BadRequest, MediaMissing
from gateway.domain.footage import ClipCut, CutClip, TakeThumbnail, ThumbnailTaken

log = structlog.get_logger(__name__)

IDLE_SECONDS = 20.0
"""So long a cutter waits for more to do: to start one takes a third of a second."""
_JOB_SECONDS = 120.0


class CutterLost(Exception):
    """There was no process to make a clip or thumbnail, it died of it, or did not end; the text says which."""


class CuttingRoom:
    """Has its cutters make what is asked for, each one thing at a time. Belongs to the loop."""

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
            CutterLost: the process could not be started, died, or did not end.
        """
        order = CutOrder(media=str(media), job=job)
        waited = self._take_idle()
        outcome = await self._done(waited, order) if waited is not None else None
        if outcome is None:  # one that waited may have died meanwhile, of nothing that is asked for now
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
        """End all cutters, and wait for that so long at most; those at work end with this process."""
        for cutter in list(self._idle):
            self._let_go(cutter)
        with contextlib.suppress(TimeoutError):  # one that waits for a disk does not end, but nobody waits for it
            async with asyncio.timeout(seconds):
                for cutter in self._killed:
                    await cutter.wait()

    async def _done(self, cutter: ChildProcess, order: CutOrder) -> CutOutcome | None:
        """Have the cutter do a job and park it; None when it had ended. Raises CutterLost."""
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
        """Take the living cutter that worked last."""
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
    with contextlib.suppress(ConnectionError):  # it has died; the answer that does not come tells
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
