"""Types that the gateway and its camera workers share: segments, their chain, clips, gaps and camera health.

These models are what the two processes exchange: JSON over HTTP on a Unix socket. Paths are relative to the media
folder. The path of a finished segment holds its camera, wall start and duration, so that a file whose report was lost
can still be adopted: `<camera_id>/<yyyymmddhh>/<start micros>_<duration micros>.ts`.

In a camera's chain, each link proves its own segment and all earlier ones. A leaf is the SHA-256 of a segment's path
(camera, start and duration as recorded) and of the SHA-256 of its bytes. A link is the SHA-256 of the link before it
and the leaf. Links are numbered from 1 in the order in which segments became known, which is nearly that of time. From
one link of a camera, anybody can prove a later one with the leaves between them, even if their footage was deleted. All
values are 64 hexadecimal digits. Pure.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from drivers.listening.places import Crowd
from drivers.rtsp.frames import Entry
from gateway.domain.viewing import LiveViewing
from gateway.runtime.clock import ClockOffset
from gateway.texts import Text, text

CAMERAS_PER_WORKER = 24
TOUCHING_MICROS = 50_000
"""Segments follow one another without a gap if one begins no further than this from the other's end."""

_SEEN_MICROS = 300_000
"""Shorter gaps without a reason are ignored: clocks and the unknown length of the last picture cause them."""

_SEGMENT_PATH = re.compile(r"^(\d+)/(\d{10})/(\d{1,17})_(\d{1,12})\.ts$")


_EARLIEST_MICROS = 1_577_836_800_000_000
"""The beginning of 2020; a clock that shows an earlier time was never set."""

GENESIS = "0" * 64
"""The link before a camera's first segment."""


class _Wire(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GapReason(StrEnum):
    """Reason for missing footage before a segment or in an event's clip."""

    NONE = "none"
    STARTED = "started"
    CAMERA = "camera"
    NETWORK = "network"
    BACK_PRESSURE = "back_pressure"
    DISK = "disk"
    CLOCK = "clock"
    TIMES = "times"
    """The camera's timestamps and the arrivals of its pictures moved apart for long."""
    WORKER = "worker"
    NO_EVENT = "no_event"
    CHANGED = "changed"
    PACKETS = "packets"
    REFUSED = "refused"
    UNSUPPORTED = "unsupported"
    NEVER = "never"
    """No segment of the camera was ever recorded."""
    AWAY = "away"
    """Nothing has been recorded from the camera since."""
    REMOVED = "removed"
    DELETED = "deleted"
    LOST = "lost"
    CODEC = "codec"
    """The footage was recorded, but is left out of an event's clip, which can have only one codec."""


_AWAY = frozenset(
    {
        GapReason.CAMERA,
        GapReason.NETWORK,
        GapReason.DISK,
        GapReason.WORKER,
        GapReason.REFUSED,
        GapReason.UNSUPPORTED,
    }
)
"""Reasons that may still hold now."""


def why_missing(reason: GapReason, *, lasts: bool = False) -> Text:
    """Write for people why footage is missing; `lasts`: the reason may still hold now."""
    if reason is GapReason.NONE:
        return text("footage.missing_unknown")
    if lasts and reason in _AWAY:
        return text(f"footage.away.{reason}")
    return text(f"footage.missing.{reason}")


class CameraCondition(StrEnum):
    """Condition of a camera, reported by its worker."""

    STARTING = "starting"
    RECORDING = "recording"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    UNSUPPORTED = "unsupported"
    STALLED = "stalled"
    DISK_FAILED = "disk_failed"


class StreamFault(StrEnum):
    """A fault of a camera's stream that does not keep it from being recorded."""

    NO_ENTRY_POINTS = "no_entry_points"
    TIMES_JUMP = "times_jump"
    OFF_PACE = "off_pace"
    """Its timestamps run at another pace than real time."""
    PACKETS_LOST = "packets_lost"
    """Pictures are lost on the network."""
    LEAVES_OUT = "leaves_out"
    """The camera leaves pictures out, or sends what cannot be used."""
    FALLS_BEHIND = "falls_behind"
    """The machine does not take pictures as fast as they come."""


class WorkerCamera(_Wire):
    """Settings of one camera for its worker. The URLs may hold credentials: never log or show them."""

    camera_id: int
    url: str = Field(repr=False)
    live_url: str | None = Field(default=None, repr=False, description="a second stream, for viewers alone")
    audio: bool = Field(default=False, description="record its sound too, where it is AAC, G.711 or Opus")
    transport: Literal["tcp", "udp"] = "tcp"
    segment_seconds: float = Field(default=2.0, ge=0.5, le=30)
    stall_seconds: float = Field(default=5.0, ge=1, le=120)
    record: Literal["continuous", "events"] = "continuous"
    pre_roll_seconds: float = Field(default=60.0, ge=1, le=3600, description="held in memory when `record` is events")


class RtspServing(_Wire):
    """Address and account for re-serving cameras by RTSP, with digest authentication."""

    host: str
    port: int = Field(ge=0, le=65535)
    username: str
    password: str = Field(repr=False)


class WorkerAssignment(_Wire):
    """`PUT /cameras`: all the cameras of a worker. Only cameras whose settings changed are restarted."""

    media: str
    marker: str = Field(default="", description="a file that is in the media folder while its disk is mounted")
    may_write: bool = Field(default=True, description="no: only cameras recorded for events, and those into memory")
    cameras: tuple[WorkerCamera, ...]
    live: LiveViewing = LiveViewing()
    rtsp: RtspServing | None = None


class Pin(_Wire):
    """Request to keep a camera's footage from `begin` until `until` (wall micros)."""

    camera_id: int
    begin: int
    until: int
    clock_offset: int | None = Field(
        default=None, description="by how much they are ahead of this run's monotonic micros; null: not known"
    )


class PinnedFootage(_Wire):
    """`PUT /pins`: all footage to keep, of cameras that record events only."""

    pins: tuple[Pin, ...] = Field(max_length=10_000)


class SegmentFinished(_Wire):
    """Report that a segment is durable under its final name."""

    kind: Literal["segment"] = "segment"
    camera_id: int
    path: str
    grew_as: str = Field(default="", description="the path of its file while it was written; empty: not known")
    started_at: int = Field(description="wall micros of the first frame")
    clock_trusted: bool
    duration: int = Field(description="media micros")
    size: int = Field(description="bytes")
    gap: GapReason = Field(default=GapReason.NONE, description="why footage before it is missing; none: continuous")
    codec: str = Field(default="", description="RFC 6381, e.g. avc1.64001f, with sound avc1.64001f,mp4a.40.2")
    width: int = 0
    height: int = 0
    frames: int = Field(default=0, description="0: not known")
    sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$", description="of the file; empty: not known yet")
    boot_id: str = Field(default="", description="of the machine's run that `monotonic` counts in; empty: not known")
    monotonic: int = Field(default=0, description="monotonic micros of the first frame")
    gap_from: int | None = Field(default=None, description="wall micros since when footage is missing, where known")
    entry: Entry = Field(default=Entry.IDR, description="the kind of entry point that it begins with")
    whole_after: int = Field(
        default=0, ge=0, description="micros from its start until pictures are whole when decoding begins there"
    )


class WantParts(_Wire):
    """`POST /parts`: report the parts of a camera's segments for some seconds, because somebody watches."""

    camera_id: int
    part_seconds: float = Field(gt=0, le=30, description="how long each part should last")
    longest_seconds: float = Field(gt=0, description="a segment must be shorter, also within a group of pictures")
    seconds: float = Field(gt=0, le=60)


class PartWritten(_Wire):
    """Report that a part of a growing segment is in its file, for low-latency HLS. It is not durable yet."""

    kind: Literal["part"] = "part"
    camera_id: int
    file: str = Field(description="the path of the segment's file while it is written")
    follows: str = Field(description="that of the segment before, which this one continues without a discontinuity")
    index: int = Field(ge=0, description="counted from 0 in each segment")
    offset: int = Field(ge=0, description="its first byte in the file")
    length: int = Field(ge=0, description="bytes")
    duration: int = Field(gt=0, description="media micros")
    independent: bool = Field(description="whether a player can begin in it")


class CameraReported(_Wire):
    """Report of a camera's condition and figures: when the condition changes, and every 2 s while recording."""

    kind: Literal["camera"] = "camera"
    camera_id: int
    condition: CameraCondition
    detail: str = Field(default="", description="one sentence, without secrets")
    why: GapReason = Field(default=GapReason.NONE, description="why footage is missing in this condition, if known")
    faults: tuple[StreamFault, ...] = ()
    pace: float = Field(default=1.0, description="the seconds that the camera's timestamps count in a real one")
    frames: int = 0
    dropped: int = 0
    reconnects: int = 0
    bits_per_second: int = 0


class WorkerBeat(_Wire):
    """The worker's heartbeat, sent every second."""

    kind: Literal["beat"] = "beat"
    cameras: int
    viewers: int = 0
    unreported_segments: int = Field(default=0, description="their reports were given up; adopt the files")
    rtsp_crowd: Crowd | None = Field(default=None, description="those for whom its RTSP server had no room")


class WorkerHealth(_Wire):
    """Answer of `GET /health`."""

    cameras: tuple[CameraReported, ...]
    unreported_segments: int


WorkerReport = Annotated[SegmentFinished | PartWritten | CameraReported | WorkerBeat, Field(discriminator="kind")]


class CutClip(_Wire):
    """`POST /clips`: remux these consecutive segments into one faststart MP4 at `output`, never decoding.

    The clip plays from `skip` micros on, exactly to the frame. The frames before, back to the keyframe, are in the
    file but hidden by an edit list. Left out are frames that begin in the last `leave_off` micros, and segments in
    another codec than that of most of the clip.
    """

    segments: tuple[str, ...] = Field(min_length=1, max_length=1000)
    output: str
    skip: int = Field(default=0, ge=0)
    leave_off: int = Field(default=0, ge=0)


class ClipCut(_Wire):
    """The clip is durable in its output file."""

    output: str
    size: int
    duration: int = Field(description="micros")


class TakeThumbnail(_Wire):
    """`POST /thumbnails`: write the picture nearest to a moment as a JPEG to `output`.

    The moment is `at` micros after the first picture. The consecutive segments are decoded up to it.
    """

    segments: tuple[str, ...] = Field(min_length=1, max_length=100)
    at: int = Field(default=0, ge=0)
    output: str
    width: int = Field(default=640, ge=64, le=3840)


class ThumbnailTaken(_Wire):
    """The thumbnail is durable in its output file."""

    output: str
    size: int


class WorkerFailed(_Wire):
    """Body of any worker answer with status 4xx or 5xx."""

    error: str


@dataclass(frozen=True, slots=True)
class Edge:
    """The facts of a segment that decide whether another can follow it: times (wall micros), gap before it, format."""

    started_at: int
    ended_at: int
    gap: GapReason
    format: tuple[str, int, int]


def continues(before: Edge, after: Edge) -> bool:
    """Return whether a player can go from one segment to the next without a discontinuity mark. Pure."""
    touches = abs(after.started_at - before.ended_at) <= TOUCHING_MICROS
    return after.gap is GapReason.NONE and touches and before.format == after.format


@dataclass(frozen=True, slots=True)
class Missing:
    """A span of time (wall micros) without footage, or whose footage is left out of a clip.

    With `reason` NONE the reason is not known. `lasts`: the span goes on until now.
    """

    begin: int
    end: int
    reason: GapReason
    lasts: bool = False

    @property
    def why(self) -> Text:
        """The reason in words."""
        return why_missing(self.reason, lasts=self.lasts)


def missing_between(edges: Iterable[Edge], begin: int, end: int, *, after: GapReason = GapReason.NONE) -> list[Missing]:
    """Return the spans of `[begin, end)` (wall micros) without footage, oldest first. Pure.

    `edges` are in order of start. `after` is the reason for a span that reaches `end`, if it is known.
    """
    found: list[Missing] = []
    reached = begin
    for edge in edges:
        if edge.started_at - reached > _SEEN_MICROS or (
            edge.gap is not GapReason.NONE and edge.started_at - reached > TOUCHING_MICROS
        ):
            found.append(Missing(reached, min(edge.started_at, end), edge.gap))
        reached = max(reached, edge.ended_at)
    is_empty = reached == begin and not found
    if end - reached > _SEEN_MICROS or is_empty:
        found.append(Missing(reached, end, after))
    return found


Extent = Literal["coming", "whole", "part", "none"]


def extent_of(missing: Sequence[Missing], begin: int, end: int) -> Extent:
    """Return how much of `[begin, end)` the footage covers. Pure."""
    if not missing:
        return "whole"
    return "none" if (missing[0].begin, missing[0].end) == (begin, end) else "part"


def segment_path(camera_id: int, started_at: int, duration: int, hour: str) -> str:
    """Return the relative path of a finished segment. `hour` is the UTC hour of the start as yyyymmddhh."""
    return f"{camera_id}/{hour}/{started_at}_{duration}.ts"


def parse_segment_path(path: str | PurePosixPath) -> tuple[int, int, int] | None:
    """Parse a segment's relative path into camera id, wall start and duration (micros); None for another path."""
    match = _SEGMENT_PATH.match(str(path))
    return (int(match[1]), int(match[3]), int(match[4])) if match else None


def as_found(segment: SegmentFinished, offset: ClockOffset) -> SegmentFinished:
    """Complete a segment that was found as a file with what the present clocks say about its times.

    While the clock is untrusted, the segment is taken to be of the present boot, with its wall clock not set since; so
    its monotonic time is known. A time before 2020 comes from a machine without a clock battery, in any boot, and is
    untrusted.
    """
    if segment.started_at < _EARLIEST_MICROS:
        segment = segment.model_copy(update={"clock_trusted": False})
    monotonic = segment.started_at - offset.micros
    if offset.trusted or not offset.boot_id or monotonic < 0:
        return segment
    return segment.model_copy(update={"boot_id": offset.boot_id, "monotonic": monotonic})


@dataclass(frozen=True, slots=True)
class ChainPlace:
    """Place of a segment in its camera's chain.

    Attributes:
        number: the number of its link, counted from 1 for each camera.
        previous: the link before its own.
    """

    number: int
    previous: str


def leaf_of(*, path: str, sha256: str) -> str:
    """Hash a segment for its link: its path in the media folder and the SHA-256 of its bytes."""
    return hashlib.sha256(f"edge-gateway segment\n{path}\n{sha256}\n".encode("ascii")).hexdigest()


def link_of(previous: str, leaf: str) -> str:
    """Compute the link after `previous`."""
    return hashlib.sha256(bytes.fromhex(previous) + bytes.fromhex(leaf)).hexdigest()


def walked(link: str, leaves: Iterable[str]) -> str:
    """Compute the link after adding `leaves` to `link` in order."""
    for leaf in leaves:
        link = link_of(link, leaf)
    return link


def fits(pieces: Iterable[tuple[str, int]]) -> list[bool]:
    """Return for each piece of footage whether the clip contains it. A piece is a codec and a duration in the clip.

    An unknown codec ("") counts as that of the piece before. If two codecs fill the same time, the first is chosen.
    """
    kinds: list[str] = []
    filled: dict[str, int] = {}
    told = list(pieces)
    kind = next((codec for codec, _ in told if codec), "")
    for codec, lasts in told:
        kind = codec or kind
        kinds.append(kind)
        filled[kind] = filled.get(kind, 0) + max(0, lasts)
    held = max(filled, key=filled.__getitem__, default="")
    return [kind == held for kind in kinds]


def of_clip(edges: Sequence[Edge], begin: int, end: int) -> list[bool]:
    """Return for each segment, in order of start, whether the clip of `[begin, end)` (wall micros) contains it."""
    return fits(
        (edge.format[0].partition(".")[0], min(edge.ended_at, end) - max(edge.started_at, begin)) for edge in edges
    )


def left_out(edges: Sequence[Edge], begin: int, end: int) -> list[Missing]:
    """Return the spans of `[begin, end)` (wall micros) whose footage is not in the clip, oldest first."""
    found: list[Missing] = []
    for edge, is_held in zip(edges, of_clip(edges, begin, end), strict=True):
        since, until = max(edge.started_at, begin), min(edge.ended_at, end)
        if is_held or until <= since:
            continue
        if found and abs(since - found[-1].end) <= TOUCHING_MICROS:
            since = found.pop().begin
        found.append(Missing(since, until, GapReason.CODEC))
    return found
