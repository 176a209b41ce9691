"""Contents of a proof package as it describes them. These very bytes are signed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MANIFEST = "manifest.json"
SIGNATURE = "manifest.sig"
PUBLIC_KEY = "site-key.pem"
MOST_BETWEEN = 5000
FILE_NAME = r"^clip-[0-9]{1,19}(-[0-9]{1,19})?\.mp4$"
MOST_CLIPS = 48
MOST_TOLD = 500

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EventEntry(_Part):
    """The event as it was recorded; `data` is its JSON text."""

    id: int
    type: int
    name: str
    description: str
    lane_id: str
    device_id: int
    date_at: str
    clock_trusted: bool
    data: str
    trace: tuple[str, ...] = Field(description="each rule of the decision, in order; empty for an event without one")


class SegmentEntry(_Part):
    """A piece of recorded footage that the clip was made from, as it was on the site's disk.

    `number`, `previous` and `link` are its place in its camera's chain (see gateway.domain.footage_chain), null for a
    segment that has none yet. `between` are the leaves of what stands in the chain between the segment listed with the
    next lower number and this one: null when they are not known any more.
    """

    path: str
    started_at: str
    duration_micros: int
    clock_trusted: bool
    gap_before: str = Field(description="why footage before it is missing; none: continuous")
    sha256: Sha256
    number: int | None = Field(default=None, ge=1)
    previous: Sha256 | None = None
    link: Sha256 | None = None
    between: tuple[Sha256, ...] | None = Field(default=(), max_length=MOST_BETWEEN)


class GapEntry(_Part):
    """A stretch within a clip's time that it does not show."""

    begin: str
    micros: int = Field(ge=0)
    reason: str = Field(description="in words")


class ClipEntry(_Part):
    """A camera's clip of an event: of the one that the package is of, or of another of the same visit.

    `begin` and `end`: from when until when footage was to be kept.
    """

    camera_id: int
    camera: str
    event_id: int = 0
    begin: str = ""
    end: str = ""
    gaps: tuple[GapEntry, ...] = ()
    file: str = Field(pattern=FILE_NAME)
    size: int = Field(ge=0)
    sha256: Sha256
    segments: tuple[SegmentEntry, ...]


class MissingEntry(_Part):
    """A camera's clip that could not be had, and why."""

    camera_id: int
    camera: str
    event_id: int
    reason: str


class Manifest(_Part):
    """The whole of it. Times are UTC. `visit`: all events of the vehicle's visit, the package's own among them."""

    format: Literal["edge-gateway evidence 1", "edge-gateway evidence 2"] = "edge-gateway evidence 2"
    site: str
    made_at: str
    made_by: str
    clock_trusted: bool
    gateway: str
    event: EventEntry
    visit: tuple[EventEntry, ...] = Field(default=(), max_length=MOST_TOLD)
    clips: tuple[ClipEntry, ...] = Field(max_length=MOST_CLIPS)
    missing: tuple[MissingEntry, ...] = Field(default=(), max_length=MOST_TOLD)
