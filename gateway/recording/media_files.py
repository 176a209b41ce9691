"""Files of the media folder: listed, checked and removed. Blocking: call it in a thread.

`MediaFolder` watches whether the folder may be used; it asks in a thread that may hang with the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import structlog

from drivers.rtsp.frames import Entry
from gateway.domain.footage import TOUCHING_MICROS, GapReason, SegmentFinished, as_found, parse_segment_path
from gateway.runtime.clock import ClockOffset
from gateway.runtime.durable_files import sync_folder

_PACKET = 188
_CAMERA = re.compile(r"^\d{1,10}$")
_HOUR = re.compile(r"^\d{10}$")

log = structlog.get_logger(__name__)

LOOK_SECONDS = 4.0
ANSWER_SECONDS = 10.0
_SILENT = "the media folder's disk does not answer"


@dataclass(frozen=True, slots=True)
class HourFolder:
    """The segments of one camera that began in one UTC hour; `hour` is yyyymmddhh."""

    camera_id: int
    hour: str

    def under(self, media: Path) -> Path:
        """Return the folder's path."""
        return media / str(self.camera_id) / self.hour


@dataclass(frozen=True, slots=True)
class FinishedFile:
    """A finished segment found on the disk; all values but `size` (bytes) come from its name."""

    path: str
    camera_id: int
    started_at: int
    duration: int
    size: int

    @property
    def ended_at(self) -> int:
        """The end in wall micros."""
        return self.started_at + self.duration

    @property
    def is_whole(self) -> bool:
        """True if the file has only complete transport packets; otherwise it was cut off."""
        return self.size > 0 and self.size % _PACKET == 0


def hour_folders(media: Path, *, cameras: frozenset[int] | None = None, since: str = "") -> Iterator[HourFolder]:
    """Yield the hour folders of `cameras` (None: of all) from the hour `since` on, by camera and hour."""
    for camera in sorted(_folders(media, _CAMERA)):
        if cameras is None or int(camera) in cameras:
            for hour in sorted(_folders(media / camera, _HOUR)):
                if hour >= since:
                    yield HourFolder(camera_id=int(camera), hour=hour)


def segment_files(media: Path, folder: HourFolder) -> tuple[FinishedFile, ...]:
    """List the finished segments in an hour folder, by start; empty if there is no such folder."""
    found: list[FinishedFile] = []
    try:
        with os.scandir(folder.under(media)) as entries:
            for entry in entries:
                path = f"{folder.camera_id}/{folder.hour}/{entry.name}"
                parsed = parse_segment_path(path)
                if parsed is not None and entry.is_file(follow_symlinks=False):
                    size = entry.stat(follow_symlinks=False).st_size
                    found.append(FinishedFile(path, folder.camera_id, parsed[1], parsed[2], size))
    except FileNotFoundError:
        return ()
    return tuple(sorted(found, key=lambda file: (file.started_at, file.path)))


def adopted(
    files: Iterable[FinishedFile], *, known: frozenset[str], ended_before: int, offset: ClockOffset
) -> tuple[SegmentFinished, ...]:
    """Return those of one hour's `files` (by start) that are not `known` and ended before a time, as segments. Pure.

    Files with an incomplete transport packet were cut off and are left out. The codec, the size of the picture and the
    kind of entry point are not in a file's name, so they stay unknown. A file that does not touch the one before it has
    a gap before it.
    """
    found: list[SegmentFinished] = []
    until: int | None = None
    for file in files:
        if file.path not in known and file.ended_at < ended_before and file.is_whole:
            touches = until is None or abs(file.started_at - until) <= TOUCHING_MICROS
            segment = SegmentFinished(
                camera_id=file.camera_id,
                path=file.path,
                started_at=file.started_at,
                clock_trusted=offset.trusted,
                duration=file.duration,
                size=file.size,
                gap=GapReason.NONE if touches else GapReason.WORKER,
                entry=Entry.NONE,
            )
            found.append(as_found(segment, offset))
        until = file.ended_at
    return tuple(found)


def cut_off(media: Path, sizes: Iterable[tuple[str, int]]) -> frozenset[str]:
    """Return the paths of files whose size has changed. `sizes`: path and size of each as it was written."""
    found: set[str] = set()
    for path, size in sizes:
        with contextlib.suppress(FileNotFoundError):  # missing files are looked for elsewhere
            if (media / path).stat().st_size != size:
                found.add(path)
    return frozenset(found)


def set_aside(media: Path, paths: Iterable[str]) -> None:
    """Rename segments that were cut off as unfinished ones, so that a worker saves their complete part.

    Raises OSError.
    """
    for path in paths:
        parsed = parse_segment_path(path)
        if parsed is not None:
            file = media / path
            file.rename(file.with_name(f"{parsed[1]}.part"))
            sync_folder(file.parent)


def remove(media: Path, paths: Iterable[str], *, empty_before: str = "") -> None:
    """Remove files durably, and empty hour folders from before the hour `empty_before`.

    If it raises OSError, some files are removed, and the call can be repeated.
    """
    folders: set[Path] = set()
    for path in paths:
        file = media / path
        file.unlink(missing_ok=True)
        folders.add(file.parent)
    for folder in sorted(folders):
        with contextlib.suppress(FileNotFoundError):  # the folder is gone, so there is nothing to sync
            sync_folder(folder)
        if folder.name < empty_before:
            with contextlib.suppress(OSError):  # not empty, or in use by the worker: removed another time
                folder.rmdir()


def remove_strays(folder: Path, *, keep: re.Pattern[str]) -> None:
    """Make `folder` if it is missing, and remove files from it that do not match `keep`: a killed process left them."""
    folder.mkdir(mode=0o750, parents=True, exist_ok=True)
    for file in folder.iterdir():
        if file.is_file() and not keep.fullmatch(file.name):
            file.unlink(missing_ok=True)


def shrink(folder: Path, *, most_bytes: int, spare: Path) -> None:
    """Remove the least recently used files of `folder` until at most `most_bytes` are left; `spare` stays."""
    used: list[tuple[float, int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # gone since it was listed
                status = entry.stat(follow_symlinks=False)
                used.append((max(status.st_atime, status.st_mtime), status.st_size, entry.path))
    total = sum(size for _, size, _ in used)
    for _, size, path in sorted(used):
        if total <= most_bytes:
            return
        if Path(path) != spare:
            Path(path).unlink(missing_ok=True)
            total -= size


def _folders(parent: Path, form: re.Pattern[str]) -> list[str]:
    try:
        with os.scandir(parent) as entries:
            return [entry.name for entry in entries if form.match(entry.name) and entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def no_fault() -> str:
    """Return no fault; the default if the media folder is not checked."""
    return ""


class MediaFolder:
    """The media folder.

    Attributes:
        fault: why it must not be used, "" while it may.
        answers: False if its disk did not answer the last check, so that a thread that touches it hangs.
    """

    def __init__(
        self,
        *,
        fault: Callable[[], str],
        reopen: Callable[[], Awaitable[str]],
        changed: Callable[[], None],
        look_seconds: float = LOOK_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Keep the collaborators.

        Args:
            fault: returns why the folder must not be used, "" if it may; called in a thread, where it may block.
            reopen: reconciles rows and files before the folder is used again; returns why that failed, "" if it did
                not.
            changed: called when the fault has changed.
            look_seconds: the time between two checks.
            answer_seconds: the longest time that a check may take.
        """
        self._ask = fault
        self._reopen = reopen
        self._changed = changed
        self._look_seconds = look_seconds
        self._answer_seconds = answer_seconds
        self._asked: asyncio.Future[str] | None = None
        self.fault = ""
        self.answers = True

    async def look(self) -> str:
        """Return why the folder must not be used now, "" if it may.

        Concurrent calls share one thread and its answer, so a disk that does not answer holds only one thread.
        """
        if self._asked is None:
            self._asked = asyncio.get_running_loop().run_in_executor(None, self._ask)
            self._asked.add_done_callback(self._answered)
        asked = self._asked
        done, _ = await asyncio.wait([asked], timeout=self._answer_seconds)
        self.answers = bool(done)
        return asked.result() if done else _SILENT

    async def begin(self) -> None:
        """Check the folder for the first time, and prepare it if it may be used."""
        self.fault = await self.look() or await self._reopen()

    async def run(self) -> None:
        """Check the folder every few seconds until cancelled."""
        while True:
            await asyncio.sleep(self._look_seconds)
            fault = await self.look()
            if self.fault and not fault:
                fault = await self._reopen()
            if fault != self.fault:
                log.warning("media_folder_changed", fault=fault)
                self.fault = fault
                self._changed()

    def _answered(self, _: asyncio.Future[str]) -> None:
        self._asked = None
