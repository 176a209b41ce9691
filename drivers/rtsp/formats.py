"""Format of a video stream, read from a keyframe. Pure."""

from __future__ import annotations

from drivers.rtsp import h264, h265
from drivers.rtsp.frames import EncodedFrame, Entry, VideoCodec, VideoFormat


def told_by(frame: EncodedFrame, *, known: VideoFormat | None = None) -> VideoFormat | None:
    """Read the format of a keyframe with all its parameter sets, or None; `known` itself if it is that.

    Raises:
        ProtocolViolation: the parameter sets describe no picture.
    """
    if known is not None and known.kind is frame.codec and frame.data.startswith(known.head):
        return known
    found = of_units(frame.codec, frame.data)
    return known if found == known else found


def of_units(codec: VideoCodec, data: bytes) -> VideoFormat | None:
    """Read the format before the first slice of Annex B data, or None where a parameter set is missing.

    Raises:
        ProtocolViolation: the parameter sets describe no picture.
    """
    if codec is VideoCodec.H265:
        vps, sps, pps = h265.parameter_sets(data)
        return h265.video_format(vps, sps, pps) if vps and sps and pps else None
    sps, pps = h264.parameter_sets(data)
    return h264.video_format(sps, pps) if sps and pps else None


def entry_of(codec: VideoCodec, data: bytes) -> tuple[Entry, int]:
    """Find the entry point that Annex B data begins with, and a recovery point's picture count."""
    recovery: int | None = None
    for unit in h264.nal_units(data):
        if codec is VideoCodec.H265:
            is_slice, entry = h265.is_slice(h265.nal_type(unit)), h265.entry_of(h265.nal_type(unit))
            found = h265.recovery_pictures(unit) if h265.nal_type(unit) == h265.PREFIX_SEI else None
        else:
            kind = h264.nal_type(unit)
            is_slice, entry = h264.SLICE <= kind <= h264.IDR, Entry.IDR if kind == h264.IDR else Entry.NONE
            found = h264.recovery_frames(unit) if kind == h264.SEI else None
        if is_slice:
            return (entry, 0) if entry is not Entry.NONE or recovery is None else (Entry.RECOVERY, recovery)
        recovery = found if found is not None else recovery
    return Entry.NONE, 0
