"""Requests to a cutter process, which uses libav for a worker: orders, answers, paths, and files that appear whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict

from gateway.domain.footage import ClipCut, CutClip, TakeThumbnail, ThumbnailTaken
from gateway.runtime.durable_files import sync_folder

BEGUN = b"begun\n"
"""A cutter's first answer to an order. If it ends before this answer, the order was not the cause."""


class CutOrder(BaseModel):
    """A request to make a file from files in the media folder."""

    model_config = ConfigDict(frozen=True)

    media: str
    job: CutClip | TakeThumbnail


class CutOutcome(BaseModel):
    """The result of a request: `made` is the file, or one other field is set and says why there is none."""

    model_config = ConfigDict(frozen=True)

    made: ClipCut | ThumbnailTaken | None = None
    bad_request: str = ""
    missing: str = ""
    disk: tuple[int, str] | None = None
    """The number and the text of an OSError."""


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
