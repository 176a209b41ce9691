"""Each camera's chain of segments: adopted files are hashed and linked, and the leaves of deleted ones can be read.

The leaves of deleted segments have 32 bytes each. They are in `chain/<camera id>/<block>.leaves` in the media folder.
The place of a leaf in its file follows from its number, so writing it again changes nothing; an interrupted write is
repeated with its deletion. The leaves are not in the database, because the whole database is checked after a power cut
while gates wait.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.footage import leaf_of
from gateway.runtime.durable_files import sync_folder
from gateway.store import Segment
from gateway.store.footage.chain_links import ChainLinks
from gateway.texts import text

log = structlog.get_logger(__name__)

_AT_A_TIME = 20
_LOOK_SECONDS = 60.0

FOLDER = "chain"
LEAVES_PER_FILE = 65_536
MOST_FILES = 64
"""The greatest number of files per camera: about 134 MB, or three months of segments of 2 s."""

_BYTES = 32
_MISSING = bytes(_BYTES)


def keep_leaves(media: Path, segments: Iterable[Segment]) -> None:
    """Store the leaves of linked segments durably. Raises OSError."""
    leaves = sorted(
        (one.camera_id, one.place.number, leaf_of(path=one.path, sha256=one.sha256))
        for one in segments
        if one.place is not None
    )
    for (camera_id, block), group in groupby(leaves, key=lambda leaf: (leaf[0], leaf[1] // LEAVES_PER_FILE)):
        _write(_file(media, camera_id, block), [(number, leaf) for _, number, leaf in group])


def kept_leaves(media: Path, camera_id: int, first: int, last: int) -> dict[int, str]:
    """Return the stored leaves of the numbers from `first` to `last`, both included, by number. Raises OSError."""
    found: dict[int, str] = {}
    for block in range(first // LEAVES_PER_FILE, last // LEAVES_PER_FILE + 1):
        low = max(first, block * LEAVES_PER_FILE)
        high = min(last, (block + 1) * LEAVES_PER_FILE - 1)
        try:
            with _file(media, camera_id, block).open("rb") as file:
                file.seek(low % LEAVES_PER_FILE * _BYTES)
                data = file.read((high - low + 1) * _BYTES)
        except FileNotFoundError:
            continue
        for at in range(0, len(data) - _BYTES + 1, _BYTES):
            if (leaf := data[at : at + _BYTES]) != _MISSING:
                found[low + at // _BYTES] = leaf.hex()
    return found


def _write(path: Path, leaves: list[tuple[int, str]]) -> None:
    fresh = not path.exists()
    if fresh:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        _thin(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        for number, leaf in leaves:
            os.pwrite(descriptor, bytes.fromhex(leaf), number % LEAVES_PER_FILE * _BYTES)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if fresh:
        for folder in (path.parent, path.parent.parent, path.parent.parent.parent):
            sync_folder(folder)


def _thin(folder: Path) -> None:
    """Delete the files with the lowest numbers, so that there is room for one more."""
    files = sorted(folder.glob("*.leaves"), key=lambda file: int(file.stem))
    for file in files[: max(0, len(files) - MOST_FILES + 1)]:
        file.unlink(missing_ok=True)


def _file(media: Path, camera_id: int, block: int) -> Path:
    return media / FOLDER / str(camera_id) / f"{block}.leaves"


class FootageChain:
    """Linker of segments without a hash, which are adopted files. Keep `run` alive as a task.

    Files are hashed one after another in a thread beside the recording, because a start must not wait for that.
    """

    def __init__(self, *, links: ChainLinks, media: Path) -> None:
        self._links = links
        self._media = media
        self._adopted = asyncio.Event()

    def wake(self) -> None:
        """Look for unlinked segments now, because files were adopted."""
        self._adopted.set()

    async def run(self) -> None:
        """Link all unlinked segments, now, after each `wake` and every minute, until cancelled."""
        while True:
            self._adopted.clear()
            try:
                await self.link_all()
            except StoreError as error:
                log.warning("segments_not_linked", error=str(error))
            try:
                async with asyncio.timeout(_LOOK_SECONDS):
                    await self._adopted.wait()
            except TimeoutError:
                continue

    async def link_all(self) -> int:
        """Hash and link all segments without a place in the chain; return how many were linked. Raises StoreError."""
        linked = at = 0
        while page := await self._links.unlinked(after=at, limit=_AT_A_TIME):
            at = page[-1][0]
            hashes = [
                (segment_id, path, sha256)
                for segment_id, path in page
                if (sha256 := await asyncio.to_thread(_hash, self._media / path))
            ]
            if hashes:
                await self._links.link(hashes)
                linked += len(hashes)
        return linked

    async def leaves(self, camera_id: int, *, after: int, before: int) -> tuple[str, ...] | None:
        """Return the leaves of all segments between two numbers, both excluded, in order; None if some are unknown.

        Raises StoreError.
        """
        first, last = after + 1, before - 1
        if last < first:
            return ()
        found = await self._links.leaves(camera_id, first, last)
        if len(found) <= last - first:
            try:
                found |= await asyncio.to_thread(kept_leaves, self._media, camera_id, first, last)
            except OSError as error:
                raise StoreError(text("refused.media_unreadable", why=str(error.strerror))) from error
        return tuple(found[number] for number in range(first, last + 1)) if len(found) > last - first else None


def _hash(path: Path) -> str:
    """Return the file's SHA-256 in hex; "" if it cannot be read, to be tried again later."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        log.warning("segment_not_hashed", path=path.name, error=error.strerror)
        return ""
