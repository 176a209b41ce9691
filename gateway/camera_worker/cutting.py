"""Requests to a cutter process, which uses libav for a worker, and its answers: lines of JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gateway.domain.footage import ClipCut, CutClip, TakeThumbnail, ThumbnailTaken

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
