"""Evidence whose file is missing or unreadable: marked, reported once, and reported again when the file is back."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import FILE_LOST, Evidence
from gateway.runtime.clock import Clock, Stamp
from gateway.store import Entry, Journal
from gateway.store.footage.evidence import EvidenceRows

GONE = "is not where it was put"


@dataclass(frozen=True, kw_only=True, slots=True)
class LostEvidence:
    """Watch over the files of evidence in their folder.

    If the folder as a whole cannot be read, that says nothing about one file: nothing is recorded then, and
    CameraUnavailable is raised.

    Attributes:
        rows: the rows of evidence.
        journal: records the events.
        clock: stamps the events.
        folder: the folder of the files.
        ready: raises CameraUnavailable while the folder must not be used.
    """

    rows: EvidenceRows
    journal: Journal
    clock: Clock
    folder: Path
    ready: Callable[[], None]

    async def at_hand(self, evidence: Evidence) -> Path:
        """Return the file of evidence, after a check that it can be read.

        Raises NotFoundError for a lost file, which is then recorded as such, CameraUnavailable, StoreError.
        """
        self.ready()
        path = self.folder / evidence.file
        if evidence.missing:
            if await self.find((evidence,)):
                return path
            raise NotFoundError(f"{FILE_LOST} {await self._fault(path, evidence) or 'is not as it was'}")
        if why := await self._fault(path, evidence):
            await self.lose(evidence, why)
            raise NotFoundError(f"{FILE_LOST} {why}")
        return path

    async def lose(self, evidence: Evidence, why: str = GONE) -> None:
        """Report a file as lost and record that, unless it was done before. Raises StoreError."""
        if evidence.missing:
            return
        await self._tell(EventKind.EVIDENCE_MISSING, evidence, why)  # first: a crash in between repeats the event
        await self.rows.note_missing((evidence.id,), ())

    async def find(self, lost: Iterable[Evidence]) -> int:
        """Look for lost files; report and return how many are back unchanged. Raises CameraUnavailable, StoreError."""
        found = 0
        for evidence in lost:
            path = self.folder / evidence.file
            if await self._fault(path, evidence) or not await asyncio.to_thread(_is_whole, path, evidence.sha256):
                continue
            await self._tell(EventKind.EVIDENCE_FOUND, evidence, "is back")
            await self.rows.note_missing((), (evidence.id,))
            found += 1
        return found

    async def find_waiting(self) -> None:
        """Look for lost files that wait to be sent to central. Raises CameraUnavailable, StoreError."""
        self.ready()
        await self.find(await self.rows.held_by_loss())

    async def _fault(self, path: Path, evidence: Evidence) -> str:
        try:
            return await asyncio.to_thread(_fault, path, evidence.size)
        except OSError as error:
            raise CameraUnavailable(f"the folder of evidence cannot be read: {error.strerror or error}") from error

    async def _tell(self, kind: EventKind, evidence: Evidence, what: str) -> None:
        await self.journal.record(Entry(events=(_event(kind, evidence, what, self.clock.wall()),)))


def _fault(path: Path, size: int) -> str:
    """Return why a file is missing or unreadable, "" if it is in order. Raises OSError if its folder is unreadable."""
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
    except OSError:  # it is still lost
        return False


def _event(kind: EventKind, evidence: Evidence, what: str, now: Stamp) -> Event:
    return Event(
        kind=kind,
        date_at=now.micros,
        clock_trusted=now.trusted,
        description=f"The file of evidence {evidence.id}, {evidence.name}, {what}.",
        data={"evidence_id": evidence.id, "camera_event_id": evidence.camera_event_id, "sha256": evidence.sha256},
    )
