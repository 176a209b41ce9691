"""Remuxing of segments to one MP4 with `moov` first, so that players can start at once. Never decodes. Blocking.

Each segment is read twice: first for the times of its pictures, because a picture's order and duration depend on
pictures that are decoded later; then to copy them. libav only examines the first one, and writes the MP4.
"""

from __future__ import annotations

import io
import os
import shutil
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from pathlib import Path
from typing import BinaryIO

import av
import av.error
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

from drivers.contract import ProtocolViolation
from drivers.rtsp.formats import entry_of, of_units
from drivers.rtsp.frames import TICKS_PER_SECOND, VideoCodec, VideoFormat
from gateway.camera_worker.clip_times import ClipPlan, Footage, Placed, plan
from gateway.camera_worker.cut_orders import BadRequest, MediaMissing, inside, written_whole
from gateway.camera_worker.sample_descriptions import Run, first_description, movie_with
from gateway.camera_worker.transport_stream import (
    AccessUnit,
    access_units,
    announces_sound,
    picture_times,
    sound_ticks,
    video_type,
)
from gateway.domain.footage import ClipCut, CutClip, fits, parse_segment_path

_CONTAINERS = frozenset({b"moov", b"trak", b"edts"})
_BOX = struct.Struct(">I4s")
_DURATION_AT = {b"mvhd": (16, 24), b"tkhd": (20, 28), b"elst": (8, 8)}
"""The offset of the duration in a box's content, by version 0 and 1."""
_LENGTHS = (struct.Struct(">I"), struct.Struct(">Q"))

_TIME_BASE = Fraction(1, TICKS_PER_SECOND)
_HEAD_BYTES = 4 * 188
_HARDLY_DECODED = {"skip_frame": "nokey", "skip_loop_filter": "all"}
"""Options with which libav examines a segment by its keyframes alone, because pictures take most of the time."""
_MOST_FORMATS = 50
_COPIED_AT_ONCE = 1_048_576
_LONGEST_SOUND_TICKS = TICKS_PER_SECOND
_LEAST_SOUND_TICKS = 90
"""Two pieces of sound that begin closer together than this are the same one; a piece always lasts longer."""


def end_at(file: Path, *, seconds: Fraction) -> None:
    """Limit the durations of an MP4 and all its tracks to `seconds`, so that players show nothing later.

    Some pictures after the end must be in the file, because others refer to them.
    """
    with file.open("r+b") as opened:
        scale = 0
        for kind, at in _boxes(opened, 0, file.stat().st_size):
            opened.seek(at)
            version = opened.read(1)[0] & 1
            if kind == b"mvhd":
                opened.seek(at + (20 if version else 12))
                (scale,) = struct.unpack(">I", opened.read(4))
            limit = round(seconds * scale)
            if kind == b"elst":
                _end_edits(opened, at, version, limit)
            else:
                _lower(opened, at + _DURATION_AT[kind][version], version, limit)


def _boxes(opened: BinaryIO, at: int, end: int) -> Iterator[tuple[bytes, int]]:
    """Iterate over the boxes that hold a duration, with the offset of their content; the movie's own comes first."""
    while at + _BOX.size <= end:
        opened.seek(at)
        size, kind = _BOX.unpack(opened.read(_BOX.size))
        if size < _BOX.size:
            return  # a box with a 64-bit size, or one up to the end of the file, is no header
        if kind in _CONTAINERS:
            yield from _boxes(opened, at + _BOX.size, at + size)
        elif kind in _DURATION_AT:
            yield kind, at + _BOX.size
        at += size


def _end_edits(opened: BinaryIO, at: int, version: int, limit: int) -> None:
    """Shorten the edits of an edit list so that together they last at most `limit`."""
    opened.seek(at + 4)
    (count,) = struct.unpack(">I", opened.read(4))
    length = _LENGTHS[version]
    place, left = at + 8, limit
    for _ in range(count):
        left -= _lower(opened, place, version, left)
        place += 2 * length.size + 4


def _lower(opened: BinaryIO, at: int, version: int, limit: int) -> int:
    """Lower a duration in the file to at most `limit`; return its new value."""
    length = _LENGTHS[version]
    opened.seek(at)
    (written,) = length.unpack(opened.read(length.size))
    lowered = min(written, max(0, limit))
    if lowered != written:
        opened.seek(at)
        opened.write(length.pack(lowered))
    return int(lowered)


def cut_clip(media: Path, request: CutClip) -> ClipCut:
    """Make the clip.

    Segments follow one another without a pause, each as long as its name says. Where footage is missing, the clip goes
    on with the next segment. Only segments of the codec that fills most of the clip are used; others are left out. The
    edit list hides frames before time 0 and after the end, which players decode only to show others (ISO/IEC 14496-12,
    8.6.6).

    Raises:
        BadRequest: a path leads out of the media folder, or is no segment's.
        MediaMissing: a segment is gone or unreadable.
        OSError: the output cannot be written.
    """
    sources = [_segment(media, path) for path in request.segments]
    output = inside(media, request.output)
    sources, skip, end = _in_one_codec(sources, skip=request.skip, leave_off=request.leave_off)
    with written_whole(output) as temporary:
        target = av.open(str(temporary), "w", format="mp4", options={"movflags": "+faststart"})
        try:
            planned = plan([Footage(each.duration, _times(each.path)) for each in sources], skip=skip, end=end)
            tracks = _copy_all(sources, target, planned)
            target.close()
            if len(tracks.formats) > 1:
                describe_all(temporary, [_description(each) for each in tracks.formats[1:]], tracks.runs)
        except ProtocolViolation as error:
            raise MediaMissing(f"the clip cannot be made from these segments ({error})") from error
        except av.error.FFmpegError as error:
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror) from error
            raise MediaMissing(f"the clip cannot be made from these segments ({type(error).__name__})") from error
        if planned.shows_after_end:
            end_at(temporary, seconds=planned.lasts * _TIME_BASE)
    return ClipCut(output=request.output, size=output.stat().st_size, duration=planned.lasts * 100 // 9)


@dataclass(frozen=True, slots=True)
class _Source:
    """A segment: its file, its duration in microseconds, and its first bytes, empty for an unreadable file."""

    path: Path
    duration: int
    head: bytes

    @property
    def codec(self) -> str:
        """The type of the video in its table of streams, as text; "" when there is none."""
        return str(video_type(self.head) or "")


def _segment(media: Path, path: str) -> _Source:
    parsed = parse_segment_path(path)
    if parsed is None:
        raise BadRequest("not the path of a segment")
    file = inside(media, path)
    try:
        with file.open("rb") as opened:
            return _Source(file, parsed[2], opened.read(_HEAD_BYTES))
    except OSError:  # copying it will raise MediaMissing
        return _Source(file, parsed[2], b"")


def _in_one_codec(sources: list[_Source], *, skip: int, leave_off: int) -> tuple[list[_Source], int, int]:
    """Return the segments in the codec of most of the clip, and the clip's begin and end within them.

    All times are in microseconds. One MP4 track describes one codec only.
    """
    whole = sum(source.duration for source in sources)
    skip = min(skip, max(0, whole - 1))
    end = max(skip + 1, whole - leave_off)
    lasting: list[int] = []
    hidden: list[int] = []
    passed = 0
    for source in sources:
        lasting.append(max(0, min(passed + source.duration, end) - max(passed, skip)))
        hidden.append(max(0, min(source.duration, skip - passed)))
        passed += source.duration
    fitting = fits((source.codec, lasts) for source, lasts in zip(sources, lasting, strict=True))
    skipped = sum(compress(hidden, fitting))
    return list(compress(sources, fitting)), skipped, skipped + sum(compress(lasting, fitting))


def describe_all(file: Path, more: Sequence[bytes], runs: Sequence[Run]) -> None:
    """Add sample descriptions to an MP4 whose movie box stands before the data.

    Raises:
        ProtocolViolation: the file is not as libav writes it.
    """
    written = file.with_name(f"{file.name}.described")
    try:
        with file.open("rb") as source, written.open("wb") as target:
            while head := source.read(_BOX.size):
                size, kind = _BOX.unpack(head)
                if kind == b"moov":
                    source.seek(-_BOX.size, os.SEEK_CUR)
                    target.write(movie_with(source.read(size), more=more, runs=runs))
                    break
                target.write(head + source.read(size - _BOX.size))
            shutil.copyfileobj(source, target, _COPIED_AT_ONCE)
        written.rename(file)
    finally:
        written.unlink(missing_ok=True)


def _description(path: Path) -> bytes:
    """Return the sample description of a segment's pictures, as libav writes it."""
    movie = io.BytesIO()
    with _opened(path) as source, av.open(movie, "w", format="mp4") as target:
        track = _track(target, source.streams.video[0])
        packet = Packet(next(unit.data for unit in access_units(_read(path)) if not unit.is_sound))
        packet.pts = packet.dts = 0
        packet.time_base = _TIME_BASE
        packet.stream = track
        target.mux_one(packet)
    return first_description(movie.getvalue())


def _track(target: OutputContainer, pictures: VideoStream) -> Stream:
    """Add a track for the pictures of a segment."""
    track = target.add_stream_from_template(pictures)
    if pictures.codec_context.name == "hevc":
        track.codec_context.codec_tag = "hvc1"  # hev1, the other, is not played by Apple's players
    return track


def _copy_all(sources: list[_Source], target: OutputContainer, planned: ClipPlan) -> _Tracks:
    sounding = next((source.path for source in sources if announces_sound(source.head)), None)
    with _opened(sources[0].path) as source:
        tracks = _Tracks(target, pictures=source.streams.video[0], sounding=sounding)
    for segment, place in zip(sources, planned.places, strict=True):
        tracks.copy(segment.path, place)
    tracks.show_hidden()
    return tracks


def _times(path: Path) -> list[int]:
    """Return the presentation times of a segment's pictures, in decoding order."""
    times = picture_times(_read(path))
    if not times:
        raise MediaMissing(f"segment {path.name} holds no video")
    return times


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MediaMissing(f"segment {path.name} cannot be read ({type(error).__name__})") from error


def _opened(path: Path) -> InputContainer:
    """Open a segment with libav, which examines its streams. Raises MediaMissing when it cannot be read."""
    try:
        return av.open(str(path), "r", format="mpegts", options=_HARDLY_DECODED)
    except (av.error.FFmpegError, OSError) as error:
        raise MediaMissing(f"segment {path.name} cannot be read ({type(error).__name__})") from error


class _Tracks:
    """The clip's pictures, and its sound where there is any."""

    def __init__(self, target: OutputContainer, *, pictures: VideoStream, sounding: Path | None) -> None:
        self._target = target
        self._pictures = _track(target, pictures)
        self._known: list[VideoFormat | None] = []
        self._format = 1
        self.formats: list[Path] = []
        """For each format of the pictures, a segment that has it."""
        self.runs: list[Run] = []
        """The pictures, by the number of their format from 1 on."""
        self._hidden: list[tuple[Packet[Stream], int]] | None = []
        self._codec = VideoCodec.H265 if pictures.codec_context.name == "hevc" else VideoCodec.H264
        self._has_pictures = False
        self._sound: Stream | None = None
        self._sound_until = -_LONGEST_SOUND_TICKS
        if sounding is not None:
            with _opened(sounding) as source:
                if source.streams.audio and source.streams.audio[0].codec_context.sample_rate:
                    self._sound = target.add_stream_from_template(source.streams.audio[0])

    def copy(self, segment: Path, place: Placed) -> None:
        """Copy the pictures and the sound of a segment that belong to the clip."""
        pictures = iter(place.pictures)
        format_ = 0
        for unit in access_units(_read(segment)):
            if unit.is_sound:
                self._hear(unit, place)
            elif (picture := next(pictures, None)) is not None and unit.data:
                format_ = format_ or self._number_of_format(segment, unit)
                packet = Packet(unit.data)
                packet.pts, packet.dts, packet.duration = picture.pts, picture.dts, picture.lasts
                packet.is_keyframe = self._is_point_to_begin(unit)
                self._show(packet, format_)

    def _show(self, packet: Packet[Stream], format_: int) -> None:
        """Write a picture. One before the clip's begin waits, since a later point to begin at makes it superfluous.

        libav counts the pictures before that point in only one of the tables that say which description is whose.
        """
        if self._hidden is None:
            self._write_picture(packet, format_)
            return
        pts = packet.pts or 0
        if packet.is_keyframe and pts <= 0:
            self._hidden.clear()
        self._hidden.append((packet, format_))
        if pts >= 0:
            self.show_hidden()

    def show_hidden(self) -> None:
        """Write the pictures that wait; no more will wait."""
        hidden, self._hidden = self._hidden or [], None
        for packet, format_ in hidden:
            self._write_picture(packet, format_)

    def _write_picture(self, packet: Packet[Stream], format_: int) -> None:
        before = self.runs.pop() if self.runs and self.runs[-1].description == format_ else Run(format_, 0)
        self.runs.append(Run(format_, before.pictures + 1))
        self._write(packet, self._pictures)

    def _number_of_format(self, segment: Path, first: AccessUnit) -> int:
        """Return the number of the format of a segment, from 1 on, by its first picture, which has parameter sets."""
        try:
            told = of_units(self._codec, first.data)
        except ProtocolViolation:
            told = None
        if told is None and self._known:
            return self._format
        if told not in self._known:
            if len(self._known) >= _MOST_FORMATS:
                return self._format
            self._known.append(told)
            self.formats.append(segment)
        self._format = self._known.index(told) + 1
        return self._format

    def _is_point_to_begin(self, unit: AccessUnit) -> bool:
        """Return whether a player that begins at this picture shows it complete.

        At a recovery point of intra refresh it would show nothing until the refresh is over, although the clip has the
        pictures before it. The clip's first picture always counts, because players begin nowhere else.
        """
        is_first, self._has_pictures = not self._has_pictures, True
        return is_first or (unit.is_entry and entry_of(self._codec, unit.data)[1] == 0)

    def _hear(self, unit: AccessUnit, place: Placed) -> None:
        """Copy a piece of sound if it begins within the clip, and after the last piece.

        A piece that begins before the clip is left out: players disagree on how much of it to play, and shift the rest.
        """
        pts = unit.pts + place.shift
        if self._sound is None or not unit.data or pts < max(0, self._sound_until) or pts >= place.sound_end:
            return
        packet = Packet(unit.data)
        packet.pts = packet.dts = pts
        packet.duration = sound_ticks(unit.data)
        self._sound_until = pts + _LEAST_SOUND_TICKS
        self._write(packet, self._sound)

    def _write(self, packet: Packet[Stream], track: Stream) -> None:
        packet.time_base = _TIME_BASE
        packet.stream = track
        self._target.mux_one(packet)
