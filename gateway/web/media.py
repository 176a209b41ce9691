"""Files as answers: sent by sendfile, with Range and ETag, and kept by the caller's own cache alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

_MAKING_SECONDS = 60.0
MP4 = "video/mp4"
SEGMENT = "video/MP2T"
PLAYLIST = "application/vnd.apple.mpegurl"
JPEG = "image/jpeg"


def as_file(path: Path, media_type: str) -> web.FileResponse:
    """A file that never changes under its address; a cache asks again, by its ETag."""
    return web.FileResponse(path, headers={"Content-Type": media_type, "Cache-Control": "private, no-cache"})


@asynccontextmanager
async def in_time() -> AsyncIterator[None]:
    """Bound the making of media; it fails with TimeoutError after a minute."""
    async with asyncio.timeout(_MAKING_SECONDS):
        yield
