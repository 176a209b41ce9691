"""Evidence on disk: files that people upload, beside the footage.

A file is written under a working name and hashed as it arrives, made durable, renamed, and only then gets its row. So a
crash leaves no row without a file. A file that a crash leaves without a row was never acknowledged, and is deleted at
the next start. Complete files that have lost their rows in any other way are renamed to `*.found`.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import FILE_LOST, Evidence, Labels, sniffed
from gateway.domain.passages import CameraEvent
from gateway.recording.incoming import WORKING_SUFFIX, EvidenceLimits, Incoming
from gateway.runtime.clock import Clock, Stamp
from gateway.runtime.durable_files import sync_folder
from gateway.store import Entry, Journal, Store
from gateway.store.footage.evidence import EvidenceRows
from gateway.texts import Words, text

log = structlog.get_logger(__name__)

FOLDER = "evidence"
_NAME = re.compile(r"[0-9a-f]{32}")
_WORKING = re.compile(r"[0-9a-f]{32}\.part")
_FOUND_SUFFIX = ".found"

GONE = text("evidence.gone")


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

    async def lose(self, evidence: Evidence, why: Words = GONE) -> None:
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
            await self._tell(EventKind.EVIDENCE_FOUND, evidence, text("evidence.back"))
            await self.rows.note_missing((), (evidence.id,))
            found += 1
        return found

    async def find_waiting(self) -> None:
        """Look for lost files that wait to be sent to central. Raises CameraUnavailable, StoreError."""
        self.ready()
        await self.find(await self.rows.held_by_loss())

    async def _fault(self, path: Path, evidence: Evidence) -> Words:
        try:
            return await asyncio.to_thread(_fault, path, evidence.size)
        except OSError as error:
            raise CameraUnavailable(text("refused.evidence_unreadable", why=str(error.strerror or error))) from error

    async def _tell(self, kind: EventKind, evidence: Evidence, what: Words) -> None:
        await self.journal.record(Entry(events=(_event(kind, evidence, what, self.clock.wall()),)))


def _fault(path: Path, size: int) -> Words:
    """Return why a file is missing or unreadable, "" if it is in order. Raises OSError if its folder is unreadable."""
    try:
        with path.open("rb") as file:
            file.read(1)
            there = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        why = GONE
    except OSError as error:
        why = text("evidence.unreadable", why=str(error.strerror or error))
    else:
        return "" if there == size else text("evidence.other_size", bytes=str(there), size=str(size))
    with os.scandir(path.parent) as entries:
        next(entries, None)
    return why


def _is_whole(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:  # it is still lost
        return False


def _event(kind: EventKind, evidence: Evidence, what: Words, now: Stamp) -> Event:
    return Event(
        kind=kind,
        date_at=now.micros,
        clock_trusted=now.trusted,
        text=text("event.evidence", evidence=str(evidence.id), name=evidence.name, why=what),
        data={"evidence_id": evidence.id, "camera_event_id": evidence.camera_event_id, "sha256": evidence.sha256},
    )


class EvidenceFiles:
    """The files of evidence: it receives them, returns their paths, and deletes expired ones.

    Nothing is written before `open`, nor while `fault` returns a reason why the media folder must not be used.
    """

    def __init__(
        self, *, store: Store, media: Path, clock: Clock, fault: Callable[[], str], limits: EvidenceLimits
    ) -> None:
        self._store = store
        self._folder = media / FOLDER
        self._clock = clock
        self._fault = fault
        self._coming: set[str] = set()
        self._is_open = False
        self.limits = limits
        self.lost = LostEvidence(
            rows=store.evidence, journal=store.journal, clock=clock, folder=self._folder, ready=self._refuse_while_away
        )

    async def open(self) -> None:
        """Reconcile rows and files: finish deletions, remove unacknowledged files, and report missing ones.

        Raises OSError, StoreError, and CameraUnavailable if the folder cannot be read after all.
        """
        coming = frozenset(self._coming)
        there = await asyncio.to_thread(self._there)
        await self.delete_let_go()
        known = {item.file: item for item in await self._store.evidence.all()}
        strays = {name for name in there if name.removesuffix(WORKING_SUFFIX) not in known.keys() | coming}
        whole = {name for name in strays if _NAME.fullmatch(name)}
        if not self._store.was_unclean or self._store.salvaged or self._is_open:
            # No crash explains files without rows: rows were lost, or an older database was put in place.
            await asyncio.to_thread(self._set_aside, whole)
            strays -= whole
        strays |= {file + WORKING_SUFFIX for file in known if file + WORKING_SUFFIX in there}
        await asyncio.to_thread(self._removed, strays)
        for item in known.values():
            if item.file not in there:
                await self.lost.lose(item)
        await self.lost.find(item for item in known.values() if item.file in there and item.missing)
        self._is_open = True

    @asynccontextmanager
    async def receive(self) -> AsyncIterator[Incoming]:
        """Receive one file within the context. If it is not kept as evidence, it is deleted at the end.

        Raises CameraUnavailable while the media folder cannot be used.
        """
        self._refuse_while_away()
        incoming = Incoming(folder=self._folder, name=secrets.token_hex(16), limits=self.limits, keep=self._keep)
        self._coming.add(incoming.name)
        try:
            yield incoming
        finally:
            try:
                if not incoming.stays:
                    await asyncio.shield(incoming.drop())
            finally:
                self._coming.discard(incoming.name)

    async def _keep(self, incoming: Incoming, camera_event: CameraEvent, labels: Labels) -> Evidence:
        now = self._clock.wall()
        draft = Evidence(
            id=0,
            camera_event_id=camera_event.id,
            name=labels.name,
            description=labels.description,
            kept_as=labels.kept_as,
            media_type=sniffed(incoming.head),
            size=incoming.size,
            sha256=incoming.sha256,
            file=incoming.name,
            created_at=now.micros,
            clock_trusted=now.trusted,
            username=labels.username,
        )
        event = Event(
            kind=EventKind.EVIDENCE_ADDED,
            date_at=now.micros,
            clock_trusted=now.trusted,
            text=text("event.evidence_added", who=labels.username, file=labels.name, event=str(camera_event.id)),
            device_id=camera_event.camera_id,
            lane_id=camera_event.lane_id,
            data={"camera_event_id": camera_event.id, "sha256": incoming.sha256, "size": incoming.size},
        )
        incoming.stays = True  # if the caller is cancelled, the commit still takes place, and needs the file
        try:
            stored = await self._store.evidence.add(draft, event=event, most=self.limits.per_event)
        except Exception:  # refused for any reason: there is no row, so the file goes; a cancellation leaves both open
            incoming.stays = False
            raise
        incoming.stays = stored.file == incoming.name
        return stored

    def path(self, evidence: Evidence) -> Path:
        """Return the file of evidence. Raises NotFoundError for a missing file, CameraUnavailable without the disk."""
        self._refuse_while_away()
        if evidence.missing:
            raise NotFoundError(text("refused.evidence_gone", evidence=str(evidence.id)))
        return self._folder / evidence.file

    async def delete_let_go(self) -> None:
        """Delete the files of expired evidence, then their rows. Raises StoreError.

        A file that cannot be removed now is tried again at the next call.
        """
        let_go = await self._store.evidence.garbage()
        removed = await asyncio.to_thread(self._removed, {item.file for item in let_go})
        if gone := [item for item in let_go if item.file in removed]:
            await self._store.evidence.forget(gone)
            log.info("evidence_deleted", files=len(gone), bytes=sum(item.size for item in gone))

    async def total_bytes(self) -> int:
        """Return the total size of all evidence in bytes. Raises StoreError."""
        return await self._store.evidence.bytes_kept()

    async def expire(self, *, transactions_before: int, incidents_before: int) -> None:
        """Delete evidence that is older than the limit of its class and does not wait for central. Raises StoreError.

        The limits are wall micros of a trusted clock.
        """
        await self._store.evidence.let_go(
            now=self._clock.wall().micros, transactions_before=transactions_before, incidents_before=incidents_before
        )
        await self.delete_let_go()

    def _refuse_while_away(self) -> None:
        if fault := self._fault():
            raise CameraUnavailable(fault)
        if not self._is_open:
            raise CameraUnavailable(text("refused.media_starts"))

    def _there(self) -> frozenset[str]:
        """Return the names of evidence files, incomplete ones included; make the folder if it is missing."""
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o750, exist_ok=True)
            sync_folder(self._folder.parent)
        with os.scandir(self._folder) as entries:
            return frozenset(
                entry.name for entry in entries if _NAME.fullmatch(entry.name) or _WORKING.fullmatch(entry.name)
            )

    def _removed(self, names: set[str]) -> set[str]:
        """Remove files; return those whose removal is durable."""
        removed: set[str] = set()
        for name in names:
            try:
                (self._folder / name).unlink(missing_ok=True)
                removed.add(name)
            except OSError as error:  # one bad file must not stop the deletion of the rest, or of footage
                log.warning("evidence_not_removed", file=name, error=error.strerror)
        try:
            if removed:
                sync_folder(self._folder)
        except OSError as error:
            log.warning("evidence_not_removed", error=error.strerror)
            return set()
        return removed

    def _set_aside(self, names: set[str]) -> None:
        """Rename files whose rows were lost to `*.found`, which nothing touches any more."""
        for name in names:
            (self._folder / name).rename(self._folder / (name + _FOUND_SUFFIX))
        if names:
            sync_folder(self._folder)
            log.error("evidence_without_rows", folder=str(self._folder), kept_as=f"*{_FOUND_SUFFIX}", files=len(names))
