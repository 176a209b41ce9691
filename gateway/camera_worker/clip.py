"""Segments into one MP4 that starts at once (`moov` first): remuxed, never decoded. Blocking."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import av.error
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

from drivers.camera.frames import TICKS_PER_SECOND
from gateway.camera_worker.media_paths import BadRequest, MediaMissing, inside, written_whole
from gateway.domain.footage import ClipCut, CutClip, parse_segment_path

_TIME_BASE = Fraction(1, TICKS_PER_SECOND)


def cut_clip(media: Path, request: CutClip) -> ClipCut:
    """Make the clip.

    Segments follow one another without a pause, each as long as its name says; where footage is missing between two,
    the clip goes on with what comes next.

    Raises:
        BadRequest: a path leads out of the media folder, or is no segment's.
        MediaMissing: a segment is gone or unreadable.
        OSError: the output cannot be written.
    """
    sources = [_segment(media, path) for path in request.segments]
    output = inside(media, request.output)
    total = sum(duration for _, duration in sources)
    with written_whole(output) as temporary:
        target = av.open(str(temporary), "w", format="mp4", options={"movflags": "+faststart"})
        try:
            _copy_all(sources, target)
            target.close()
        except av.error.FFmpegError as error:
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror) from error
            raise MediaMissing(f"the clip cannot be made from these segments ({type(error).__name__})") from error
    return ClipCut(output=request.output, size=output.stat().st_size, duration=total)


def _segment(media: Path, path: str) -> tuple[Path, int]:
    parsed = parse_segment_path(path)
    if parsed is None:
        raise BadRequest("not the path of a segment")
    return inside(media, path), parsed[2]


def _copy_all(sources: list[tuple[Path, int]], target: OutputContainer) -> None:
    stream: Stream | None = None
    passed = 0
    for path, duration in sources:
        try:
            source = av.open(str(path), "r", format="mpegts")
        except (av.error.FFmpegError, OSError) as error:
            raise MediaMissing(f"segment {path.name} cannot be read ({type(error).__name__})") from error
        with source:
            if not source.streams.video:
                raise MediaMissing(f"segment {path.name} holds no video")
            if stream is None:
                stream = target.add_stream_from_template(source.streams.video[0])
            _copy(source, target, stream, begin=_ticks(passed), end=_ticks(passed + duration))
        passed += duration


def _copy(source: InputContainer, target: OutputContainer, stream: Stream, *, begin: int, end: int) -> None:
    """Copy a segment's packets so that the first is decoded at `begin` and the last lasts until `end`."""
    shift: int | None = None
    held: Packet[VideoStream] | None = None
    for packet in source.demux(source.streams.video[0]):
        if not packet.size or packet.dts is None or packet.pts is None:
            continue
        if shift is None:
            shift = begin - packet.dts
        packet.dts += shift
        packet.pts += shift
        packet.time_base = _TIME_BASE
        packet.stream = stream  # type: ignore[assignment]  # a packet changes its stream when it is remuxed
        if held is not None:
            held.duration = packet.dts - (held.dts or 0)
            target.mux_one(held)
        held = packet
    if held is not None:
        held.duration = max(1, end - (held.dts or 0))
        target.mux_one(held)


def _ticks(micros: int) -> int:
    return round(micros * 9 / 100)
