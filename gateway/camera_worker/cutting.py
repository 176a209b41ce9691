"""Requests to a cutter process, in which libav works for a worker, and its answers: lines of JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gateway.domain.footage import ClipCut, CutClip, TakeThumbnail, ThumbnailTaken

BEGUN = b"begun\n"
"""A cutter's first answer to an order: one that ends without it did not end of that order."""


class CutOrder(BaseModel):
    """Request to make a file from files in the media folder."""

    model_config = ConfigDict(frozen=True)

    media: str
    job: CutClip | TakeThumbnail


class CutOutcome(BaseModel):
    """Result of a request: the file that was made, or the reason for a failure in the one other field that is set."""

    model_config = ConfigDict(frozen=True)

    made: ClipCut | ThumbnailTaken | None = None
    bad_request: str = ""
    missing: str = ""
    disk: tuple[int, str] | None = None
    """An OSError's number and text."""
