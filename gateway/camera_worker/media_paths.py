"""Paths of requests in the media folder, and files that appear complete or not at all. Blocking."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from gateway.runtime.durable_files import sync_folder


class BadRequest(ValueError):
    """Invalid request; the text says why."""


class MediaMissing(LookupError):
    """A requested segment is missing or unreadable."""


def inside(media: Path, relative: str) -> Path:
    """Return the absolute path of `relative` in the media folder.

    Raises:
        BadRequest: `relative` is absolute, empty, or leads out of the folder.
    """
    path = PurePosixPath(relative)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise BadRequest("a path must be relative to the media folder and stay inside")
    return media / path


@contextmanager
def written_whole(output: Path) -> Iterator[Path]:
    """Give the block a temporary path to write to. If it succeeds, the file becomes `output`, durably; otherwise none.

    So `output` is complete or does not change.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        descriptor = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        temporary.rename(output)
        sync_folder(output.parent)
    finally:
        temporary.unlink(missing_ok=True)
