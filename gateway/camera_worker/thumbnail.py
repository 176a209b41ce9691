"""The first keyframe of a segment as a JPEG. The one place that decodes, one frame at a time. Blocking."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import av.error
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame

from gateway.camera_worker.media_paths import BadRequest, MediaMissing, inside, written_whole
from gateway.domain.footage import TakeThumbnail, ThumbnailTaken, parse_segment_path


def take_thumbnail(media: Path, request: TakeThumbnail) -> ThumbnailTaken:
    """Make the thumbnail, in the picture's own proportions and never wider than the picture.

    Raises:
        BadRequest: a path leads out of the media folder, or is no segment's.
        MediaMissing: the segment is gone or its first frame cannot be decoded.
        OSError: the output cannot be written.
    """
    if parse_segment_path(request.segment) is None:
        raise BadRequest("not the path of a segment")
    output = inside(media, request.output)
    try:
        picture = _jpeg(_first_frame(inside(media, request.segment)), request.width)
    except (av.error.FFmpegError, FileNotFoundError) as error:
        raise MediaMissing(f"no picture in this segment ({type(error).__name__})") from error
    with written_whole(output) as temporary:
        temporary.write_bytes(picture)
    return ThumbnailTaken(output=request.output, size=len(picture))


def _first_frame(segment: Path) -> VideoFrame:
    with av.open(str(segment), "r", format="mpegts") as source:
        for frame in source.decode(video=0):
            return frame
    raise MediaMissing("no picture in this segment")


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
