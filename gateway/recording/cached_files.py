"""Files that are made on request and cached, in one folder of the media folder.

Each file is made by a job that belongs to no caller. If a caller is cancelled or its wait is too long, the job goes on
for the others, and the file is there at the next request.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from gateway.domain.errors import CameraUnavailable
from gateway.recording import media_files

MOST_JOBS = 64
LONGEST_WAIT_SECONDS = 50.0
_RETRY_SECONDS = 5

Make = Callable[[str], Awaitable[None]]


class FileJobs:
    """The jobs that make files: one for each file at a time, at most MOST_JOBS in all. Keep `run` alive as a task."""

    def __init__(self, *, most: int = MOST_JOBS, longest_wait_seconds: float = LONGEST_WAIT_SECONDS) -> None:
        self._most = most
        self._longest_wait_seconds = longest_wait_seconds
        self._jobs: dict[Path, asyncio.Future[None]] = {}
        self._group: asyncio.TaskGroup | None = None

    @property
    def count(self) -> int:
        """The number of files that are being made."""
        return len(self._jobs)

    async def run(self) -> None:
        """Own the jobs until cancelled, and cancel them then."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    async def done(self, path: Path, make: Callable[[], Awaitable[None]]) -> None:
        """Wait until the job of this file is done; begin it unless it runs already.

        Raises what the job raised, and CameraUnavailable if there are too many jobs or the wait is too long.
        """
        job = self._jobs.get(path) or self._begin(path, make)
        done, _ = await asyncio.wait([job], timeout=self._longest_wait_seconds)
        if not done:
            raise CameraUnavailable("this is still being made; ask again in a few seconds", retry_after=_RETRY_SECONDS)
        job.result()

    async def settled(self, path: Path) -> None:
        """Wait until no job makes this file."""
        while (job := self._jobs.get(path)) is not None:
            await asyncio.wait([job])

    def _begin(self, path: Path, make: Callable[[], Awaitable[None]]) -> asyncio.Future[None]:
        if self._group is None:
            raise CameraUnavailable("recording is not ready yet; ask again in a few seconds")
        if len(self._jobs) >= self._most:
            raise CameraUnavailable(
                f"{len(self._jobs)} clips and pictures are being made; ask again in a few seconds",
                retry_after=_RETRY_SECONDS,
            )
        job: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._group.create_task(self._make(path, make, job), name=f"make {path.name}")
        self._jobs[path] = job
        return job

    async def _make(self, path: Path, make: Callable[[], Awaitable[None]], job: asyncio.Future[None]) -> None:
        try:
            await make()
        except asyncio.CancelledError:
            job.set_exception(CameraUnavailable("recording is stopping; ask again in a few seconds"))
            raise
        except Exception as error:  # noqa: BLE001 (raised again in each waiting caller)
            job.set_exception(error)
        else:
            job.set_result(None)
        finally:
            del self._jobs[path]
            job.exception()  # marks it as retrieved, so that asyncio does not warn if no caller waits any more


class CachedFiles:
    """The cached files of one folder, bounded in bytes: the least recently used are deleted first."""

    def __init__(self, *, media: Path, folder: str, names: re.Pattern[str], most_bytes: int, jobs: FileJobs) -> None:
        self._media = media
        self._folder = folder
        self._names = names
        self._most_bytes = most_bytes
        self._jobs = jobs

    async def open(self) -> None:
        """Make the folder, and remove files that were left incomplete. Raises OSError."""
        await asyncio.to_thread(media_files.remove_strays, self._media / self._folder, keep=self._names)

    async def get(self, name: str, make: Make) -> Path:
        """Return the file of that name. If it is missing, `make` is called with its path within the media folder.

        Raises what `make` raises, and CameraUnavailable if the folder cannot be used or too many files are being made.
        """
        path = self._media / self._folder / name
        try:
            if not await asyncio.to_thread(_touched, path):
                await self._jobs.done(path, partial(self._made, path, make))
        except OSError as error:
            raise CameraUnavailable(f"the media folder cannot be used: {error.strerror}") from error
        return path

    async def forget(self, name: str) -> None:
        """Remove a file, if it exists, after its job has ended. Raises OSError."""
        path = self._media / self._folder / name
        await self._jobs.settled(path)
        await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _made(self, path: Path, make: Make) -> None:
        if await asyncio.to_thread(_touched, path):  # a job before this one has made it
            return
        await make(f"{self._folder}/{path.name}")
        await asyncio.to_thread(media_files.shrink, path.parent, most_bytes=self._most_bytes, spare=path)


def _touched(path: Path) -> bool:
    """Return whether the file exists, and set its access time to now. Its other time stays, for the ETag."""
    try:
        os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
    except FileNotFoundError:
        return False
    return True
