"""A file that is being received: written under a working name, hashed as it arrives, and renamed once it is durable."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import shutil
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.evidence import HEAD_BYTES, Evidence, Labels, TooLarge
from gateway.domain.passages import CameraEvent
from gateway.runtime.durable_files import sync_folder
from gateway.site import StorageSection

log = structlog.get_logger(__name__)

WORKING_SUFFIX = ".part"
_PIECE = 1024 * 1024
_MEGABYTE = 1_000_000
_GIGABYTE = 1_000_000_000
_TAKES_NOTHING = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})


@dataclass(frozen=True, slots=True)
class EvidenceLimits:
    """Limits of what people may upload.

    Attributes:
        bytes_each: the greatest size of one file in bytes.
        per_event: the greatest number of files of one camera event.
        floor: the bytes that must stay free on the disk.
    """

    bytes_each: int
    per_event: int
    floor: int

    @classmethod
    def of(cls, storage: StorageSection) -> EvidenceLimits:
        """Return the limits of the site file. Evidence may use half of the space that footage must leave free."""
        return cls(
            bytes_each=storage.evidence_megabytes * _MEGABYTE,
            per_event=storage.evidence_per_event,
            floor=int(storage.free_floor_gigabytes * _GIGABYTE) // 2,
        )


Keep = Callable[["Incoming", CameraEvent, Labels], Awaitable[Evidence]]


class Incoming:
    """A file that is being received. Only one task may use it, within the context of `EvidenceFiles.receive`.

    Attributes:
        name: the name of the complete file.
        head: its first HEAD_BYTES bytes.
        size: the bytes received so far.
        stays: whether the file has a row, or may still get one.
    """

    def __init__(self, *, folder: Path, name: str, limits: EvidenceLimits, keep: Keep) -> None:
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
        self._turn = threading.Lock()  # a step whose caller was cancelled still runs in its thread
        self.stays = False

    @property
    def sha256(self) -> str:
        """The SHA-256 in hex of the bytes written so far; that of the whole file once `finish` has returned."""
        return self._hash.hexdigest()

    async def write(self, data: bytes) -> None:
        """Add bytes to the file. Raises TooLarge, and StoreError if the disk refuses."""
        self.size += len(data)
        if self.size > self._limits.bytes_each:
            raise TooLarge
        if len(self.head) < HEAD_BYTES:
            self.head = (self.head + data)[:HEAD_BYTES]
        self._waiting += data
        if len(self._waiting) >= _PIECE:
            await self._flush()

    async def finish(self) -> None:
        """Make the whole file durable under its own name. Raises StoreError."""
        await self._flush()
        await self._on_disk(self._settle)

    async def keep(self, camera_event: CameraEvent, labels: Labels) -> Evidence:
        """Record the finished file as evidence of a camera event; on return file and row are on disk.

        If the camera event already has evidence with the same bytes, return that; this file is then deleted.

        Raises NotFoundError if the camera event is gone, TooMany, StoreError; then nothing is kept.
        """
        return await self._keep(self, camera_event, labels)

    async def drop(self) -> None:
        """Delete the received file, if there is one, and ignore later steps."""
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
            except OSError as error:  # it is removed at the next start
                log.warning("evidence_not_removed", error=str(error))

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    @property
    def _working(self) -> Path:
        return self._folder / (self.name + WORKING_SUFFIX)


def _refusal(error: OSError) -> str:
    if error.errno in _TAKES_NOTHING:
        return "the media folder's disk takes no more; nothing of the file was kept"
    return f"the file could not be written: {error.strerror or error}; nothing of it was kept"
