"""Evidence on disk: files that people upload, beside the footage.

A file is written under a working name and hashed as it arrives, made durable, renamed, and only then gets its row. So a
crash leaves no row without a file. A file that a crash leaves without a row was never acknowledged, and is deleted at
the next start. Complete files that have lost their rows in any other way are renamed to `*.found`.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import structlog

from gateway.domain.errors import CameraUnavailable, NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.domain.evidence import Evidence, Labels, sniffed
from gateway.domain.passages import CameraEvent
from gateway.recording.incoming import WORKING_SUFFIX, EvidenceLimits, Incoming
from gateway.recording.lost_evidence import LostEvidence
from gateway.runtime.clock import Clock
from gateway.runtime.durable_files import sync_folder
from gateway.store import Store

log = structlog.get_logger(__name__)

FOLDER = "evidence"
_NAME = re.compile(r"[0-9a-f]{32}")
_WORKING = re.compile(r"[0-9a-f]{32}\.part")
_FOUND_SUFFIX = ".found"


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
            description=f"{labels.username} added {labels.name} to camera event {camera_event.id}.",
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
            raise NotFoundError(f"the file of evidence {evidence.id} is gone")
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
            raise CameraUnavailable("the media folder is not ready yet; try again in a few seconds")

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
