"""The manifest of a proof package, which describes its contents. The signature is over the manifest's bytes.

Times are ISO 8601 in UTC.
"""

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
    """An event as it was recorded; `data` is JSON text."""

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
    """A segment that the clip was made from, as it was on the site's disk.

    `number`, `previous` and `link` are its place in its camera's chain (see gateway.domain.footage_chain), null for a
    segment that is not linked yet. `between` are the leaves in the chain between the listed segment with the next lower
    number and this one, null if they are not known any more.
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
    """A time span of an event that its clip does not show."""

    begin: str
    micros: int = Field(ge=0)
    reason: str = Field(description="in words")


class ClipEntry(_Part):
    """A camera's clip of the package's event or of another event of the same visit.

    `begin` and `end`: the time span that the event pinned.
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
    """A camera's clip that could not be included, and why."""

    camera_id: int
    camera: str
    event_id: int
    reason: str


class Manifest(_Part):
    """The manifest. `visit`: all events of the vehicle's visit, the package's own event included."""

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
