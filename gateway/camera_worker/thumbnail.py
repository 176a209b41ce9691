"""Thumbnails: the picture at a moment as JPEG, decoded from the entry point before it. Blocking.

No other module decodes video.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import av.error
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from drivers.rtsp.frames import TICKS_PER_SECOND
from gateway.camera_worker.clip_times import ticks_of
from gateway.camera_worker.cut_orders import BadRequest, MediaMissing, inside, written_whole
from gateway.domain.footage import TakeThumbnail, ThumbnailTaken, parse_segment_path

_NEAR_TICKS = TICKS_PER_SECOND


def take_thumbnail(media: Path, request: TakeThumbnail) -> ThumbnailTaken:
    """Make the thumbnail, in the picture's proportions and at most as wide as the picture.

    Raises:
        BadRequest: a path leads out of the media folder, or is no segment's.
        MediaMissing: a segment is gone, or no picture of it can be decoded.
        OSError: the output cannot be written.
    """
    parsed = [parse_segment_path(path) for path in request.segments]
    output = inside(media, request.output)
    begins, passed = [], 0
    for segment in parsed:
        if segment is None:
            raise BadRequest("not the path of a segment")
        begins.append(ticks_of(passed))
        passed += segment[2]
    files = [(inside(media, path), begin) for path, begin in zip(request.segments, begins, strict=True)]
    try:
        picture = _jpeg(_nearest(files, ticks_of(request.at)), request.width)
    except (av.error.FFmpegError, FileNotFoundError) as error:
        raise MediaMissing(f"no picture in this segment ({type(error).__name__})") from error
    with written_whole(output) as temporary:
        temporary.write_bytes(picture)
    return ThumbnailTaken(output=request.output, size=len(picture))


def _nearest(files: list[tuple[Path, int]], moment: int) -> VideoFrame:
    """Return the undamaged picture nearest to `moment` (ticks), or a damaged one when there is no other.

    Raises MediaMissing when there is none at all.
    """
    found: tuple[tuple[bool, int], VideoFrame] | None = None
    for frame in _decoded(files, moment):
        rank = frame.is_corrupt, abs((frame.pts or 0) - moment)
        if found is None or rank < found[0]:
            found = rank, frame
        elif (frame.pts or 0) > moment and not found[0][0]:
            break
    if found is None:
        raise MediaMissing("no picture in this segment")
    return found[1]


def _decoded(files: list[tuple[Path, int]], moment: int) -> Iterator[VideoFrame]:
    """Decode the segments as one stream. Until 1 s before the moment, decode only pictures that others refer to."""
    decoder: VideoCodecContext | None = None
    for file, begin in files:
        with av.open(str(file), "r", format="mpegts") as source:
            if not source.streams.video:
                raise MediaMissing("no picture in this segment")
            if decoder is None:
                decoder = source.streams.video[0].codec_context
                decoder.flags |= int(av.codec.context.Flags.output_corrupt)
            for packet in _placed(source.demux(source.streams.video[0]), begin):
                decoder.skip_frame = "NONREF" if (packet.pts or 0) < moment - _NEAR_TICKS else "DEFAULT"
                with contextlib.suppress(av.error.InvalidDataError):  # skip a damaged picture
                    yield from decoder.decode(packet)
    if decoder is not None:
        yield from decoder.decode(None)


def _placed(packets: Iterator[Packet[VideoStream]], begin: int) -> Iterator[Packet[VideoStream]]:
    """Iterate over a segment's packets, shifted so that its first picture is at `begin` (ticks)."""
    shift: int | None = None
    for packet in packets:
        if not packet.size or packet.pts is None:
            continue
        shift = begin - packet.pts if shift is None else shift
        packet.pts += shift
        packet.dts = None
        yield packet


def _jpeg(frame: VideoFrame, width: int) -> bytes:
    width = min(width, frame.width) // 2 * 2
    height = max(2, round(frame.height * width / frame.width) // 2 * 2)
    encoder = av.CodecContext.create("mjpeg", "w")
    if not isinstance(encoder, VideoCodecContext):
        raise MediaMissing("this build has no JPEG encoder")
    encoder.width, encoder.height = width, height
    encoder.pix_fmt = "yuvj420p"
    encoder.time_base = Fraction(1, 25)
    scaled = frame.reformat(width=width, height=height, format="yuvj420p")
    scaled.pts = 0
    return b"".join(bytes(packet) for packet in [*encoder.encode(scaled), *encoder.encode(None)])
