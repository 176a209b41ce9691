"""Exhibits whose file has gone or cannot be read: noted, told once, and told again when the file is back."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import FILE_LOST, Exhibit
from gateway.runtime.clock import Clock, Stamp
from gateway.store import Entry, Store

GONE = "is not where it was put"


class LostExhibits:
    """Looks at the files of exhibits in their folder. `ready` raises CameraUnavailable while it must not be used.

    That the whole folder cannot be read is nothing of one file: then nothing is noted, and CameraUnavailable raised.
    """

    def __init__(self, *, store: Store, clock: Clock, folder: Path, ready: Callable[[], None]) -> None:
        self._store = store
        self._clock = clock
        self._folder = folder
        self._ready = ready

    async def at_hand(self, exhibit: Exhibit) -> Path:
        """Its file, which can be read. Raises NotFoundError for one that is lost, CameraUnavailable, StoreError."""
        self._ready()
        path = self._folder / exhibit.file
        if exhibit.missing:
            if await self.find((exhibit,)):
                return path
            raise NotFoundError(f"{FILE_LOST} {await self._fault(path, exhibit) or 'is not as it was'}")
        if why := await self._fault(path, exhibit):
            await self.lose(exhibit, why)
            raise NotFoundError(f"{FILE_LOST} {why}")
        return path

    async def lose(self, exhibit: Exhibit, why: str = GONE) -> None:
        """Record a lost file, and report it unless that was done before. Raises StoreError."""
        if exhibit.missing:
            return
        await self._tell(EventKind.EVIDENCE_MISSING, exhibit, why)  # first: after a crash twice, never not at all
        await self._store.exhibits.note_missing((exhibit.id,), ())

    async def find(self, lost: Iterable[Exhibit]) -> int:
        """Look for files that were lost; how many are back, byte for byte. Raises CameraUnavailable, StoreError."""
        found = 0
        for exhibit in lost:
            path = self._folder / exhibit.file
            if await self._fault(path, exhibit) or not await asyncio.to_thread(_is_whole, path, exhibit.sha256):
                continue
            await self._tell(EventKind.EVIDENCE_FOUND, exhibit, "is back")
            await self._store.exhibits.note_missing((), (exhibit.id,))
            found += 1
        return found

    async def find_waiting(self) -> None:
        """Look for those that are to go up and were lost before they could. Raises CameraUnavailable, StoreError."""
        self._ready()
        await self.find(await self._store.exhibits.held_by_loss())

    async def _fault(self, path: Path, exhibit: Exhibit) -> str:
        try:
            return await asyncio.to_thread(_fault, path, exhibit.size)
        except OSError as error:
            raise CameraUnavailable(f"the folder of evidence cannot be read: {error.strerror or error}") from error

    async def _tell(self, kind: EventKind, exhibit: Exhibit, what: str) -> None:
        await self._store.journal.record(Entry(events=(_event(kind, exhibit, what, self._clock.wall()),)))


def _fault(path: Path, size: int) -> str:
    """Return why a file cannot be read, "" when it can. Raises OSError when that is so of its whole folder."""
    try:
        with path.open("rb") as file:
            file.read(1)
            there = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        why = GONE
    except OSError as error:
        why = f"cannot be read: {error.strerror or error}"
    else:
        return "" if there == size else f"has {there} bytes instead of {size}"
    with os.scandir(path.parent) as entries:
        next(entries, None)
    return why


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:  # it is still lost, for the same reason or for another
        return False


def _event(kind: EventKind, exhibit: Exhibit, what: str, now: Stamp) -> Event:
    return Event(
        kind=kind,
        date_at=now.micros,
        clock_trusted=now.trusted,
        description=f"The file of evidence {exhibit.id}, {exhibit.name}, {what}.",
        data={"evidence_id": exhibit.id, "camera_event_id": exhibit.camera_event_id, "sha256": exhibit.sha256},
    )
