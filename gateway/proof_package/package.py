"""Writing of a proof package: a plain ZIP file without compression, so that any tool can open it. Blocking.

Its manifest describes the contents, and the signature is over the manifest's bytes. Times are ISO 8601 in UTC.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import StoreError
from gateway.proof_package.seal import SiteKey

_AT_A_TIME = 1 << 20

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

    `number`, `previous` and `link` are its place in its camera's chain (see gateway.domain.footage), null for a
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


@dataclass(frozen=True, slots=True)
class Clip:
    """A camera's clip for a package.

    Attributes:
        camera_id: the camera.
        camera: the camera's name.
        path: the clip's file.
        segments: the segments that it was made from: the file and the entry of each, whose hash is filled in later.
        event_id: the clip's event, 0 for the package's own.
        begin: the beginning of the time span that the event pinned.
        end: the end of that span.
        gaps: the parts of that span that the clip does not show.
    """

    camera_id: int
    camera: str
    path: Path
    segments: tuple[tuple[Path, SegmentEntry], ...]
    event_id: int = 0
    begin: str = ""
    end: str = ""
    gaps: tuple[GapEntry, ...] = ()


def write_package(
    output: Path, *, event: EventEntry, clips: Sequence[Clip], site: str, made: tuple[str, str, bool], gateway: str,
    key: SiteKey, visit: Sequence[EventEntry] = (), missing: Sequence[MissingEntry] = (),
) -> Manifest:  # fmt: skip
    """Write a package to `output`, as a whole or not at all. Raises StoreError.

    Clips are hashed as they are written, segments as they are on the disk now. If a segment is not what was recorded,
    it does not fit its link in the chain, and verification reports that.

    Args:
        output: the file to write.
        event: the package's event.
        clips: the clips of the visit.
        site: the site's name.
        made: when and by whom the package was made, and whether the clock was trusted.
        gateway: the version of the gateway.
        key: the site's key, which signs the manifest.
        visit: all events of the same visit.
        missing: the clips that cannot be included.
    """
    early = output.with_suffix(".new")
    try:
        output.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        with zipfile.ZipFile(early, "w", zipfile.ZIP_STORED, strict_timestamps=False) as package:
            entries = tuple(_put_clip(package, clip, event.id) for clip in clips)
            when, by, trusted = made
            manifest = Manifest(
                site=site,
                made_at=when,
                made_by=by,
                clock_trusted=trusted,
                gateway=gateway,
                event=event,
                clips=entries,
                visit=tuple(visit),
                missing=tuple(missing),
            )
            text = manifest.model_dump_json(indent=1).encode()
            package.writestr(MANIFEST, text)
            package.writestr(SIGNATURE, key.sign(text))
            package.writestr(PUBLIC_KEY, key.public_pem)
        with early.open("rb") as written:
            os.fsync(written.fileno())
        early.replace(output)
    except OSError as error:
        early.unlink(missing_ok=True)
        raise StoreError(f"the package cannot be made: {error.strerror}") from error
    return manifest


def _put_clip(package: zipfile.ZipFile, clip: Clip, own: int) -> ClipEntry:
    of_another = f"-{clip.event_id}" if clip.event_id not in (0, own) else ""
    name = f"clip-{clip.camera_id}{of_another}.mp4"
    digest, size = hashlib.sha256(), 0
    with clip.path.open("rb") as source, package.open(name, "w", force_zip64=True) as target:
        while data := source.read(_AT_A_TIME):
            digest.update(data)
            size += len(data)
            target.write(data)
    segments = tuple(entry.model_copy(update={"sha256": _hash(path)}) for path, entry in clip.segments)
    return ClipEntry(
        camera_id=clip.camera_id,
        camera=clip.camera,
        event_id=clip.event_id,
        begin=clip.begin,
        end=clip.end,
        gaps=clip.gaps,
        file=name,
        size=size,
        sha256=digest.hexdigest(),
        segments=segments,
    )


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
