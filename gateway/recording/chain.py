"""Each camera's chain of segments: adopted files are hashed and linked, and the leaves of deleted ones can be read."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import structlog

from gateway.domain.errors import StoreError
from gateway.recording import leaf_log
from gateway.store.footage.chain_links import ChainLinks

log = structlog.get_logger(__name__)

_AT_A_TIME = 20
_LOOK_SECONDS = 60.0


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
                found |= await asyncio.to_thread(leaf_log.leaves, self._media, camera_id, first, last)
            except OSError as error:
                raise StoreError(f"the media folder cannot be read: {error.strerror}") from error
        return tuple(found[number] for number in range(first, last + 1)) if len(found) > last - first else None


def _hash(path: Path) -> str:
    """Return the file's SHA-256 in hex; "" if it cannot be read, to be tried again later."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        log.warning("segment_not_hashed", path=path.name, error=error.strerror)
        return ""
