"""Exhibits on disk: files that people upload, beside the footage.

A file is written under a working name, hashed as it comes, made durable, given its own name, and only then its row. So
a crash leaves no row without a file, and a file that it leaves without a row was never acknowledged: that goes at the
next start. Whole files that have lost their rows in any other way are set aside as `*.found`.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import secrets
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.clock import Clock, Stamp
from gateway.domain.errors import CameraUnavailable, NotFoundError, StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.exhibits import HEAD_BYTES, Exhibit, Labels, TooLarge, sniffed
from gateway.domain.passages import CameraEvent
from gateway.store import Entry, Store

log = structlog.get_logger(__name__)

FOLDER = "exhibits"
_NAME = re.compile(r"[0-9a-f]{32}")
_WORKING = re.compile(r"[0-9a-f]{32}\.part")
_WORKING_SUFFIX = ".part"
_FOUND_SUFFIX = ".found"
_PIECE = 1024 * 1024
_TAKES_NOTHING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


@dataclass(frozen=True, slots=True)
class ExhibitLimits:
    """How much is taken.

    Attributes:
        bytes_each: of one file.
        per_event: files of one camera event.
        floor: bytes that stay free on the disk.
    """

    bytes_each: int
    per_event: int
    floor: int


Keep = Callable[["Incoming", CameraEvent, Labels], Awaitable[Exhibit]]


class Incoming:
    """A file that is being received. Used by one task, and over with its `receive`.

    Attributes:
        name: of the file once it is whole.
        head: its first bytes.
        size: bytes that came so far.
        stays: whether its row is there, or may come yet.
    """

    def __init__(self, *, folder: Path, name: str, limits: ExhibitLimits, keep: Keep) -> None:
        self._keep = keep
        self.name = name
        self.head = b""
        self.size = 0
        self._folder = folder
        self._limits = limits
        self._hash = hashlib.sha256()
        self._waiting = bytearray()
        self._file: int | None = None
        self._over = False
        self._turn = threading.Lock()  # a step whose caller has gone still runs in its thread
        self.stays = False

    @property
    def sha256(self) -> str:
        """Of what was written so far; whole once `finish` has returned."""
        return self._hash.hexdigest()

    async def write(self, data: bytes) -> None:
        """Take more of the file. Raises TooLarge, StoreError when the disk takes no more."""
        self.size += len(data)
        if self.size > self._limits.bytes_each:
            raise TooLarge
        if len(self.head) < HEAD_BYTES:
            self.head = (self.head + data)[:HEAD_BYTES]
        self._waiting += data
        if len(self._waiting) >= _PIECE:
            await self._flush()

    async def finish(self) -> None:
        """All of it is here: make it durable under its own name. Raises StoreError."""
        await self._flush()
        await self._on_disk(self._settle)

    async def keep(self, camera_event: CameraEvent, labels: Labels) -> Exhibit:
        """Keep it, finished, as an exhibit of a camera event; on return both are on disk.

        The same bytes at the same camera event are one exhibit, however often they are sent.

        Raises NotFoundError when the camera event is gone, TooMany, StoreError; then nothing is kept.
        """
        return await self._keep(self, camera_event, labels)

    async def drop(self) -> None:
        """Leave nothing of it behind; harmless when there is nothing."""
        await asyncio.to_thread(self._discard)

    async def _flush(self) -> None:
        piece, self._waiting = bytes(self._waiting), bytearray()
        await self._on_disk(lambda: self._append(piece))

    async def _on_disk(self, step: Callable[[], None]) -> None:
        try:
            await asyncio.to_thread(step)
        except OSError as error:
            raise StoreError(_refusal(error)) from error

    def _append(self, piece: bytes) -> None:
        with self._turn:
            self._written(piece)

    def _written(self, piece: bytes) -> None:
        if self._over:
            return
        if shutil.disk_usage(self._folder).free - len(piece) < self._limits.floor:
            raise OSError(errno.ENOSPC, "too little space would stay free")
        if self._file is None:
            self._file = os.open(self._working, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._hash.update(piece)

    def _settle(self) -> None:
        with self._turn:
            if self._over or self._file is None:
                raise OSError(errno.ENOENT, "nothing was written")
            os.fsync(self._file)
            self._close()
            self._working.rename(self._folder / self.name)
            sync_folder(self._folder)

    def _discard(self) -> None:
        with self._turn:
            self._removed()

    def _removed(self) -> None:
        self._over = True
        self._close()
        for path in (self._working, self._folder / self.name):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:  # it goes at the next start
                log.warning("exhibit_not_removed", error=str(error))

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    @property
    def _working(self) -> Path:
        return self._folder / (self.name + _WORKING_SUFFIX)


class ExhibitFiles:
    """Receives exhibits, hands them out, and deletes those that were let go of.

    Nothing is written before `open`, nor while `fault` says why the media folder must not be used.
    """

    def __init__(
        self, *, store: Store, media: Path, clock: Clock, fault: Callable[[], str], limits: ExhibitLimits
    ) -> None:
        self._store = store
        self._folder = media / FOLDER
        self._clock = clock
        self._fault = fault
        self._coming: set[str] = set()
        self._is_open = False
        self.limits = limits

    async def open(self) -> None:
        """Set rows and files right: finish deletions, remove what was never acknowledged, tell what is missing.

        Raises OSError, StoreError.
        """
        coming = frozenset(self._coming)
        there = await asyncio.to_thread(self._there)
        await self.delete_let_go()
        known = {item.file: item for item in await self._store.exhibits.all()}
        strays = {name for name in there if name.removesuffix(_WORKING_SUFFIX) not in known.keys() | coming}
        whole = {name for name in strays if _NAME.fullmatch(name)}
        if not self._store.was_unclean or self._store.salvaged or self._is_open:
            # No crash of ours explains them: rows were lost, or an older database was put in place.
            await asyncio.to_thread(self._set_aside, whole)
            strays -= whole
        strays |= {file + _WORKING_SUFFIX for file in known if file + _WORKING_SUFFIX in there}
        await asyncio.to_thread(self._removed, strays)
        await self._note_missing(
            [item for item in known.values() if item.file not in there and not item.missing],
            [item for item in known.values() if item.file in there and item.missing],
        )
        self._is_open = True

    @asynccontextmanager
    async def receive(self) -> AsyncIterator[Incoming]:
        """A place for one file; nothing stays of one that was not kept.

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

    async def _keep(self, incoming: Incoming, camera_event: CameraEvent, labels: Labels) -> Exhibit:
        now = self._clock.wall()
        draft = Exhibit(
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
            kept = await self._store.exhibits.add(draft, event=event, most=self.limits.per_event)
        except Exception:
            incoming.stays = False
            raise
        incoming.stays = kept.file == incoming.name
        return kept

    def path(self, exhibit: Exhibit) -> Path:
        """Its file. Raises NotFoundError when it is gone, CameraUnavailable while the disk cannot be used."""
        self._refuse_while_away()
        if exhibit.missing:
            raise NotFoundError(f"the file of evidence {exhibit.id} is gone")
        return self._folder / exhibit.file

    async def delete_let_go(self) -> None:
        """Delete the files of exhibits that were let go of, then their rows. Raises StoreError.

        What cannot be removed now is tried again at the next call.
        """
        let_go = await self._store.exhibits.garbage()
        removed = await asyncio.to_thread(self._removed, {item.file for item in let_go})
        if gone := [item for item in let_go if item.file in removed]:
            await self._store.exhibits.forget(gone)
            log.info("exhibits_deleted", files=len(gone), bytes=sum(item.size for item in gone))

    async def expire(self, *, transactions_before: int, incidents_before: int) -> None:
        """Let go of what is older than its class may be, by a trusted clock, and has gone up. Raises StoreError."""
        await self._store.exhibits.let_go(
            now=self._clock.wall().micros, transactions_before=transactions_before, incidents_before=incidents_before
        )
        await self.delete_let_go()

    def _refuse_while_away(self) -> None:
        if fault := self._fault():
            raise CameraUnavailable(fault)
        if not self._is_open:
            raise CameraUnavailable("the media folder is not ready yet; try again in a few seconds")

    def _there(self) -> frozenset[str]:
        """Names of exhibits and of half of one."""
        if not self._folder.is_dir():
            self._folder.mkdir(mode=0o750, exist_ok=True)
            sync_folder(self._folder.parent)
        with os.scandir(self._folder) as entries:
            return frozenset(
                entry.name for entry in entries if _NAME.fullmatch(entry.name) or _WORKING.fullmatch(entry.name)
            )

    def _removed(self, names: set[str]) -> set[str]:
        """Remove files; those that are gone for good."""
        removed: set[str] = set()
        for name in names:
            try:
                (self._folder / name).unlink(missing_ok=True)
                removed.add(name)
            except OSError as error:  # one bad file must not keep the rest, nor footage, from being thinned out
                log.warning("exhibit_not_removed", file=name, error=error.strerror)
        try:
            if removed:
                sync_folder(self._folder)
        except OSError as error:
            log.warning("exhibits_not_removed", error=error.strerror)
            return set()
        return removed

    def _set_aside(self, names: set[str]) -> None:
        """Give files whose rows were lost a name under which nothing touches them any more."""
        for name in names:
            (self._folder / name).rename(self._folder / (name + _FOUND_SUFFIX))
        if names:
            sync_folder(self._folder)
            log.error("exhibits_without_rows", folder=str(self._folder), kept_as=f"*{_FOUND_SUFFIX}", files=len(names))

    async def _note_missing(self, missing: list[Exhibit], found: list[Exhibit]) -> None:
        if not missing and not found:
            return
        await self._store.exhibits.note_missing((item.id for item in missing), (item.id for item in found))
        now = self._clock.wall()
        if missing:
            await self._store.journal.record(Entry(events=tuple(_missing(item, now) for item in missing)))


def sync_folder(folder: Path) -> None:
    """What was named in it stays so through a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _missing(exhibit: Exhibit, now: Stamp) -> Event:
    return Event(
        kind=EventKind.EVIDENCE_MISSING,
        date_at=now.micros,
        clock_trusted=now.trusted,
        description=f"The file of evidence {exhibit.id}, {exhibit.name}, is not where it was put.",
        data={"evidence_id": exhibit.id, "camera_event_id": exhibit.camera_event_id, "sha256": exhibit.sha256},
    )


def _refusal(error: OSError) -> str:
    if error.errno in _TAKES_NOTHING:
        return "the media folder's disk takes no more; nothing of the file was kept"
    return f"the file could not be written: {error.strerror or error}; nothing of it was kept"
