"""What is asked of a cutter, the process in which libav works for a worker, and what it answers; lines of JSON."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gateway.domain.footage import ClipCut, CutClip, TakeThumbnail, ThumbnailTaken


class CutOrder(BaseModel):
    """Make this of what is in the media folder."""

    model_config = ConfigDict(frozen=True)

    media: str
    job: CutClip | TakeThumbnail


class CutOutcome(BaseModel):
    """What was made; or why it was not, in the one of the other fields that is set."""

    model_config = ConfigDict(frozen=True)

    made: ClipCut | ThumbnailTaken | None = None
    bad_request: str = ""
    missing: str = ""
    disk: tuple[int, str] | None = None
    """An OSError's number and text."""
