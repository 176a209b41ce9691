"""Evidence on disk: files that people upload, beside the footage.

A file is written under a working name, hashed as it comes, made durable, given its own name, and only then its row. So
a crash leaves no row without a file, and a file that it leaves without a row was never acknowledged: that goes at the
next start. Whole files that have lost their rows in any other way are set aside as `*.found`.
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
    """Receiver of evidence, which also hands it out, and deletes what was let go of.

    Nothing is written before `open`, nor while `fault` says why the media folder must not be used.
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
        """Set rows and files right: finish deletions, remove what was never acknowledged, tell what is missing.

        Raises OSError, StoreError, CameraUnavailable when the folder cannot be read after all.
        """
        coming = frozenset(self._coming)
        there = await asyncio.to_thread(self._there)
        await self.delete_let_go()
        known = {item.file: item for item in await self._store.evidence.all()}
        strays = {name for name in there if name.removesuffix(WORKING_SUFFIX) not in known.keys() | coming}
        whole = {name for name in strays if _NAME.fullmatch(name)}
        if not self._store.was_unclean or self._store.salvaged or self._is_open:
            # No crash of ours explains them: rows were lost, or an older database was put in place.
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
        """Open a place for one file; a file that is not kept leaves nothing behind.

        Raises CameraUnavailable while nothing can be taken.
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
        incoming.stays = True  # whoever gives up waiting does not take the commit back
        try:
            stored = await self._store.evidence.add(draft, event=event, most=self.limits.per_event)
        except Exception:  # whatever refused it, there is no row and the file goes; a cancel leaves both undecided
            incoming.stays = False
            raise
        incoming.stays = stored.file == incoming.name
        return stored

    def path(self, evidence: Evidence) -> Path:
        """Return its file. Raises NotFoundError when it is gone, CameraUnavailable while the disk cannot be used."""
        self._refuse_while_away()
        if evidence.missing:
            raise NotFoundError(f"the file of evidence {evidence.id} is gone")
        return self._folder / evidence.file

    async def delete_let_go(self) -> None:
        """Delete the files of evidence that was let go of, then their rows. Raises StoreError.

        What cannot be removed now is tried again at the next call.
        """
        let_go = await self._store.evidence.garbage()
        removed = await asyncio.to_thread(self._removed, {item.file for item in let_go})
        if gone := [item for item in let_go if item.file in removed]:
            await self._store.evidence.forget(gone)
            log.info("evidence_deleted", files=len(gone), bytes=sum(item.size for item in gone))

    async def total_bytes(self) -> int:
        """Return the bytes of all evidence. Raises StoreError."""
        return await self._store.evidence.bytes_kept()

    async def expire(self, *, transactions_before: int, incidents_before: int) -> None:
        """Delete evidence that is older than its class may be by a trusted clock, and gone up. Raises StoreError."""
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
        """Return the names of evidence files, half received ones included."""
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o750, exist_ok=True)
            sync_folder(self._folder.parent)
        with os.scandir(self._folder) as entries:
            return frozenset(
                entry.name for entry in entries if _NAME.fullmatch(entry.name) or _WORKING.fullmatch(entry.name)
            )

    def _removed(self, names: set[str]) -> set[str]:
        """Remove files; return those that are gone for good."""
        removed: set[str] = set()
        for name in names:
            try:
                (self._folder / name).unlink(missing_ok=True)
                removed.add(name)
            except OSError as error:  # one bad file must not keep the rest, nor footage, from being thinned out
                log.warning("evidence_not_removed", file=name, error=error.strerror)
        try:
            if removed:
                sync_folder(self._folder)
        except OSError as error:
            log.warning("evidence_not_removed", error=error.strerror)
            return set()
        return removed

    def _set_aside(self, names: set[str]) -> None:
        """Give files whose rows were lost a name under which nothing touches them any more."""
        for name in names:
            (self._folder / name).rename(self._folder / (name + _FOUND_SUFFIX))
        if names:
            sync_folder(self._folder)
            log.error("evidence_without_rows", folder=str(self._folder), kept_as=f"*{_FOUND_SUFFIX}", files=len(names))
