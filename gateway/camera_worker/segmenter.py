"""Conversion of frames to durable MPEG-TS segments that begin at keyframes. Blocking: belongs in a writing thread.

One muxer serves a whole connection, so that continuity counters and timestamps go on from file to file. A new file
begins just before a keyframe. Each file begins with PAT, PMT, SPS, PPS and a keyframe, and can be decoded alone as far
as the kind of its entry point allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from drivers.rtsp import formats, h264
from drivers.rtsp.frames import (
    TICKS_PER_SECOND,
    AudioFormat,
    EncodedAudio,
    EncodedFrame,
    Entry,
    VideoCodec,
    VideoFormat,
)
from gateway.camera_worker.pre_roll import OpenFile, Shelf, Start
from gateway.camera_worker.segment_file import PART_SUFFIX, SegmentFile
from gateway.camera_worker.transport_stream import TransportMuxer
from gateway.domain.footage import GapReason, PartWritten, SegmentFinished, segment_path
from gateway.runtime.clock import Stamp

_LONGEST_GROUP_TICKS = 10 * TICKS_PER_SECOND
LARGEST_SEGMENT_BYTES = 256_000_000
_ROOM_TICKS = TICKS_PER_SECOND // 50
_MOST_HELD_BYTES = 1_000_000
_LONGEST_STEP_TICKS = 10 * TICKS_PER_SECOND
_LONGEST_RARE_TICKS = 120 * TICKS_PER_SECOND
"""The longest step of a camera that sends rarely; once two pictures came closer together, a longer one is a gap."""
_FARTHEST_SOUND_TICKS = 2 * TICKS_PER_SECOND

LONGEST_DRIFT_MICROS = 500_000
"""A larger difference is no drift but a clock that was set: the anchor is set again at a segment's boundary. Frames
that are late by this much may only have been delayed, so lateness is judged over a window."""
EASY_DRIFT_MICROS = 150_000
"""A smaller difference is ignored, because a reader that batches frames delays them; segments then touch exactly."""
WINDOW_TICKS = 4 * 90_000
"""The time over which a drift is judged, because on a busy machine all frames of one segment may arrive late."""
LONGEST_SLEW_MICROS = 10_000
"""The largest correction of a drift from one segment to the next. It is far smaller than the distance at which two
segments no longer count as one run of footage."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a segment for low-latency HLS: a byte range of its file, cut while it is written.

    Attributes:
        index: its number in the segment, counted from 0.
        offset: its first byte in the segment's file.
        length: its bytes.
        ticks: its duration.
        independent: whether a player can begin in it, because it holds an entry point.
    """

    index: int
    offset: int
    length: int
    ticks: int
    independent: bool


class Parts:
    """The frames of one segment with their places in its file, and the parts that they make.

    Frames are noted whether or not anybody watches, so that a first viewer gets parts from the present segment on.
    """

    def __init__(self) -> None:
        self._frames: list[tuple[int, int, bool]] = []
        self._from = 0
        self._made = 0

    def note(self, frame: EncodedFrame, *, at: int) -> None:
        """Note the next frame, whose bytes begin at this offset of the file."""
        self._frames.append((at, frame.dts, frame.keyframe and frame.entry is not Entry.NONE))

    def ended(self, ticks: int) -> Iterator[Part]:
        """Yield the parts that have ended since the last call, each as near to `ticks` as its frames allow.

        A part ends when the frame after it is known.
        """
        for place in range(self._from + 1, len(self._frames)):
            at, dts, _ = self._frames[place]
            step = dts - self._frames[place - 1][1]
            lasts = dts - self._frames[self._from][1]
            if 2 * lasts + step >= 2 * ticks:
                yield self._made_until(place, end=at, ticks=lasts)

    def rest(self, *, size: int, ticks: int) -> Part:
        """Return the last part of a segment that ends with `size` bytes after `ticks` in all."""
        lasts = ticks - (self._frames[self._from][1] - self._frames[0][1])
        return self._made_until(len(self._frames), end=size, ticks=max(1, lasts))

    def _made_until(self, place: int, *, end: int, ticks: int) -> Part:
        frames = self._frames[self._from : place]
        part = Part(
            index=self._made,
            offset=frames[0][0],
            length=end - frames[0][0],
            ticks=ticks,
            independent=any(entry for _, _, entry in frames),
        )
        self._from = place
        self._made += 1
        return part


class _Open:
    """The segment being written. `name` is that of its file, and `follows` that of the segment it continues, or ""."""

    def __init__(
        self, *, file: OpenFile, name: str, follows: str, first: EncodedFrame, format_: VideoFormat, trusted: bool
    ) -> None:
        self.file = file
        self.name = name
        self.follows = follows
        self.parts = Parts()
        self.first_pts = first.pts
        self.last_pts = first.pts
        self.format = format_
        self.trusted = trusted
        self.frames = 0
        self.sound: AudioFormat | None = None
        self.entry = first.entry
        self._whole_pts = first.pts
        self._recovers_in = first.recovery

    def take(self, frame: EncodedFrame, *, at: int) -> None:
        """Note a frame that goes into the segment, at this offset of its file."""
        self.last_pts = max(self.last_pts, frame.pts)
        self.parts.note(frame, at=at)
        if self._recovers_in and self.frames and (frame.codec is VideoCodec.H265 or h264.is_reference(frame.data)):
            self._recovers_in -= 1
            self._whole_pts = max(self._whole_pts, frame.pts)
        self.frames += 1

    def recovery_ticks(self, step: int) -> int:
        """Return the ticks from the segment's start to its first complete picture.

        If the segment ends before that, the missing pictures are counted at this step.
        """
        return self._whole_pts - self.first_pts + self._recovers_in * step


class Timeline:
    """The conversion of presentation times to a clock's times, for one run of continuous timestamps.

    `at` is the clock's time, in microseconds, of the presentation time `pts`: the anchor.
    """

    def __init__(self, *, pts: int, at: int) -> None:
        self._pts = pts
        self._at = at
        self._earliest: int | None = None
        self._from: int | None = None
        self._until = 0
        self._least: int | None = None
        self._owed = 0

    def moment_of(self, pts: int) -> int:
        """Return the clock's time of a presentation time, in microseconds."""
        return self._at + (pts - self._pts) * 100 // 9

    def observe(self, *, pts: int, arrived: int) -> None:
        """Note a frame's presentation time and its arrival in microseconds."""
        offset = arrived - self._at - (pts - self._pts) * 100 // 9
        if self._earliest is None or offset < self._earliest:
            self._earliest = offset
        if self._from is None:
            self._from = pts
        self._until = pts

    @property
    def lateness(self) -> int:
        """The least delay of a frame since the last call of `settle`, in microseconds."""
        return self._earliest or 0

    def settle(self, *, first: bool, set_by: int = 0) -> bool:
        """Adjust the anchor to the frames observed since the last call.

        Return True when it was set again, so that the next segment does not touch the one before. In the first segment
        of a connection the anchor may move to any earlier time, since no segment precedes it. This serves cameras that
        send cached frames in one burst.

        Args:
            first: whether this is the first segment of a connection.
            set_by: the microseconds by which the clock was set meanwhile; up to `LONGEST_DRIFT_MICROS` this is followed
                like any drift.
        """
        offset = self.lateness
        self._earliest = None
        if first:
            self._at += min(offset, 0)
            return False
        by = set_by if abs(set_by) > LONGEST_DRIFT_MICROS else min(offset, 0)  # a frame cannot arrive before its time
        if abs(by) > LONGEST_DRIFT_MICROS:
            self._renew(by)
            return True
        return self._follow(offset)

    def _renew(self, by: int) -> None:
        self._at += by
        self._from = self._least = None
        self._owed = 0

    def _follow(self, offset: int) -> bool:
        """Move the anchor a step towards the arrivals, once they have differed from it for long enough."""
        self._least = offset if self._least is None else min(self._least, offset)
        if self._from is not None and self._until - self._from >= WINDOW_TICKS:
            if self._least > LONGEST_DRIFT_MICROS:
                self._renew(self._least)
                return True
            beyond = max(0, abs(self._least) - EASY_DRIFT_MICROS)
            self._owed = beyond if self._least > 0 else -beyond
            self._from = self._least = None
        step = max(-LONGEST_SLEW_MICROS, min(LONGEST_SLEW_MICROS, self._owed))
        self._at += step
        self._owed -= step
        if self._least is not None:
            self._least -= step
        return False


class Segmenter:
    """The cutter of one camera's frames into segments.

    Args:
        camera_id: the camera's id.
        media: the media folder.
        segment_seconds: a segment of this length, or up to an eighth less, ends at the next keyframe.
        finished: called with each durable segment, unless there is a `shelf`.
        part_written: called with each part that is in its file, while `part_ticks` is not 0.
        gap: the reason why footage is missing before the first segment.
        shelf: the shelf for segments; None to write them to the disk at once.
        marker: the name of a file in the media folder without which nothing may be written there; "" for none.
        boot_id: the id of the machine's present run, in which the monotonic times of segments count.
    """

    def __init__(
        self,
        *,
        camera_id: int,
        media: Path,
        segment_seconds: float,
        shelf: Shelf,
        part_written: Callable[[PartWritten], None] = lambda _: None,
        gap: GapReason = GapReason.STARTED,
        marker: str = "",
        boot_id: str = "",
    ) -> None:
        self._shelf = shelf
        self._part_written = part_written
        self.part_ticks = 0
        """The wanted duration of parts; 0 while nobody wants parts."""
        self.longest_ticks = 0
        """The duration below which segments must stay, because a playlist promises it; 0 while nobody watches."""
        self._marker = media / marker if marker else None
        self._boot_id = boot_id
        self._camera_id = camera_id
        self._media = media
        self._segment_ticks = int(segment_seconds * TICKS_PER_SECOND)
        self._shortest_ticks = self._segment_ticks * 7 // 8
        self._gap = gap
        self._format: VideoFormat | None = None
        self._sound: AudioFormat | None = None
        self._muxer: TransportMuxer | None = None
        self._timeline: Timeline | None = None
        self._uptime: Timeline | None = None
        self._open: _Open | None = None
        self._before: _Open | None = None
        self._pieces: list[bytes | bytearray] = []
        self._held = 0
        self._first_of_run = True
        self._last_dts = 0
        self._step = TICKS_PER_SECOND // 25
        self._longest_step = _LONGEST_STEP_TICKS

    @property
    def writing(self) -> bool:
        """True while a segment is open."""
        return self._open is not None

    def connect(self, announced: VideoFormat | None, sound: AudioFormat | None = None) -> None:
        """Begin a connection, whose timestamps start again. `sound` is the format of its AAC, None for none."""
        self.disconnect(GapReason.NONE)
        self._format = announced
        self._sound = sound

    def disconnect(self, gap: GapReason) -> None:
        """End the connection, for this reason. The open segment ends with its last frame.

        Raises:
            DiskFailed: the last segment could not be made durable.
        """
        try:
            self._finish(end=None)
        finally:
            self._muxer = None
            self._timeline = self._uptime = None
            self._before = None
            self.missing(gap)

    def missing(self, gap: GapReason) -> None:
        """Note that footage is missing from here on. The next segment reports the first reason noted."""
        if self._gap is GapReason.NONE:
            self._gap = gap

    def lose(self, gap: GapReason) -> None:
        """Note lost frames: the open segment ends with its last frame, and the next opens at a keyframe.

        Raises:
            DiskFailed: the open segment could not be made durable.
        """
        try:
            self._finish(end=None)
        finally:
            self.missing(gap)

    def push(self, frame: EncodedFrame, arrived: Stamp) -> bool:
        """Add a frame that arrived at wall time `arrived`; return False when it is dropped for lack of a keyframe.

        Raises:
            DiskFailed: the segment could not be written or made durable, and is given up.
            ProtocolViolation: the frame is invalid; the caller should end the connection's segments.
        """
        if self._timeline is not None and not self._continues(frame):
            self.disconnect(GapReason.CAMERA)
        if self._muxer is not None and self._muxer.codec is not frame.codec:
            self.disconnect(GapReason.NONE)
        if not frame.keyframe and self._is_overlong(frame):
            frame = replace(frame, keyframe=True, entry=Entry.NONE)
        if frame.keyframe and self._is_boundary(frame):
            self._finish(end=frame.pts)
            if not self._begin(frame, arrived):
                return False
        if self._muxer is None or self._timeline is None or self._uptime is None:
            return False
        self._step = frame.dts - self._last_dts
        self._last_dts = frame.dts
        if self._open is None:
            return False
        self._timeline.observe(pts=frame.pts, arrived=arrived.micros)
        self._uptime.observe(pts=frame.pts, arrived=int(frame.arrived * 1_000_000))
        self._open.take(frame, at=self._open.file.size + self._held)
        data = self._with_parameter_sets(frame) if frame.keyframe else frame.data
        self._hold(self._muxer.mux(frame, data))
        return True

    def push_sound(self, sound: EncodedAudio) -> bool:
        """Add a piece of sound; return False when it is dropped, as without an open segment or in another format.

        Raises:
            DiskFailed: the segment could not be written, and is given up.
        """
        current, muxer = self._open, self._muxer
        if current is None or muxer is None or sound.format != self._sound:
            return False
        if abs(sound.pts - self._last_dts) > _FARTHEST_SOUND_TICKS:
            return False
        current.sound = sound.format
        self._hold(muxer.mux_sound(sound))
        return True

    def flush(self) -> None:
        """Write the frames pushed since the last call; one write for several frames costs far less.

        Raises:
            DiskFailed: the segment could not be written, and is given up.
        """
        current, pieces = self._open, self._pieces
        self._pieces, self._held = [], 0
        if current is None:
            return
        try:
            if pieces:
                current.file.write(pieces)
        except OSError:
            self._open = None
            self.missing(GapReason.DISK)
            raise
        if self.part_ticks:
            for part in current.parts.ended(self.part_ticks):
                self._tell_part(current, part)

    def _tell_part(self, current: _Open, part: Part) -> None:
        """Report a part, unless its segment follows an interruption: it can be numbered only once it is finished."""
        if not current.follows:
            return
        self._part_written(
            PartWritten(
                camera_id=self._camera_id,
                file=current.name,
                follows=current.follows,
                index=part.index,
                offset=part.offset,
                length=part.length,
                duration=part.ticks * 100 // 9,
                independent=part.independent,
            )
        )

    def _hold(self, data: bytes | bytearray) -> None:
        self._pieces.append(data)
        self._held += len(data)
        if self._held > _MOST_HELD_BYTES:
            self.flush()

    def _continues(self, frame: EncodedFrame) -> bool:
        step = frame.dts - self._last_dts
        if step < _LONGEST_STEP_TICKS:
            self._longest_step = _LONGEST_STEP_TICKS
        return 0 < step < self._longest_step

    def _is_boundary(self, frame: EncodedFrame) -> bool:
        current = self._open
        if current is None:
            return True
        if frame.pts - current.first_pts >= self._shortest_ticks or self._is_overlong(frame):
            return True
        if current.entry is Entry.NONE and frame.entry is not Entry.NONE:
            return True  # players can begin here, but not at the segment's first picture, where it was cut by time
        return formats.told_by(frame, known=current.format) not in (None, current.format)

    def _is_overlong(self, frame: EncodedFrame) -> bool:
        current = self._open
        if current is None:
            return False
        lasts = frame.pts - current.first_pts
        if lasts > self._segment_ticks + _LONGEST_GROUP_TICKS:
            return True
        # with one frame more it would be too long
        breaks_promise = 0 < self.longest_ticks <= lasts + self._step + _ROOM_TICKS and current.frames > 1
        return breaks_promise or current.file.size + self._held > LARGEST_SEGMENT_BYTES

    def _begin(self, frame: EncodedFrame, arrived: Stamp) -> bool:
        told = formats.told_by(frame, known=self._format)
        if told is not None:
            self._format = told
        if self._format is None or self._format.kind is not frame.codec:
            return False
        if self._muxer is None or self._timeline is None:
            self._muxer = TransportMuxer(codec=frame.codec, sound=self._sound)
            self._timeline = Timeline(pts=frame.pts, at=arrived.micros)
            self._uptime = Timeline(pts=frame.pts, at=int(frame.arrived * 1_000_000))
            self._first_of_run = True
            self._longest_step = _LONGEST_RARE_TICKS
            self._last_dts = frame.dts - self._step
        start = self._timeline.moment_of(frame.pts)
        name = f"{self._camera_id}/{utc_hour(start)}/{start}{PART_SUFFIX}"
        try:
            uptime = int(frame.arrived * 1_000_000) if self._uptime is None else self._uptime.moment_of(frame.pts)
            file = self._shelf.opened(
                SegmentFile(part=self._media / name, marker=self._marker), Start(wall=start, uptime=uptime)
            )
        except OSError:
            self.missing(GapReason.DISK)
            raise
        self._open = _Open(
            file=file,
            name=name,
            follows=self._continued(self._format),
            first=frame,
            format_=self._format,
            trusted=arrived.trusted,
        )
        return True

    def _continued(self, format_: VideoFormat) -> str:
        """Return the name of the segment that one in this format would continue without a discontinuity, or ""."""
        before = self._before
        if before is None or self._gap is not GapReason.NONE:
            return ""
        old, new = ((each.codec, each.width, each.height) for each in (before.format, format_))
        return before.name if old == new else ""

    def _with_parameter_sets(self, frame: EncodedFrame) -> bytes:
        if self._format is None or formats.told_by(frame, known=self._format) is not None:
            return frame.data
        return self._format.head + frame.data

    def _finish(self, *, end: int | None) -> None:
        self.flush()
        current, timeline, uptime = self._open, self._timeline, self._uptime
        self._open = None
        if current is None or timeline is None or uptime is None:
            return
        end_pts = current.last_pts + self._step if end is None else end
        if self.part_ticks:
            self._tell_part(current, current.parts.rest(size=current.file.size, ticks=end_pts - current.first_pts))
        set_by = timeline.lateness - uptime.lateness  # late frames are late by both clocks, unless one clock was set
        moved = timeline.settle(first=self._first_of_run, set_by=set_by)
        uptime.settle(first=self._first_of_run)
        start = timeline.moment_of(current.first_pts)
        why_moved = GapReason.CLOCK if abs(set_by) > LONGEST_DRIFT_MICROS else GapReason.TIMES
        gap = why_moved if moved and self._gap is GapReason.NONE else self._gap
        duration = timeline.moment_of(end_pts) - timeline.moment_of(current.first_pts)
        segment = SegmentFinished(
            camera_id=self._camera_id,
            path=segment_path(self._camera_id, start, duration, utc_hour(start)),
            grew_as=current.name,
            started_at=start,
            clock_trusted=current.trusted,
            duration=duration,
            size=current.file.size,
            gap=gap,
            codec=",".join([current.format.codec, *([current.sound.name] if current.sound else [])]),
            width=current.format.width,
            height=current.format.height,
            frames=current.frames,
            boot_id=self._boot_id,
            monotonic=uptime.moment_of(current.first_pts),
            entry=current.entry,
            whole_after=current.recovery_ticks(self._step) * 100 // 9,
        )
        try:
            self._shelf.take(current.file, segment)
        except OSError:
            self.missing(GapReason.DISK)
            raise
        self._first_of_run = False
        self._before = current
        self._gap = GapReason.NONE


def utc_hour(micros: int) -> str:
    """Return the UTC hour of a wall time in microseconds, as yyyymmddhh."""
    return Stamp(micros=micros, trusted=False).as_datetime().strftime("%Y%m%d%H")
