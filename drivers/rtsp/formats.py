"""The format and entry point of a video stream, read from its frames. Pure."""

from __future__ import annotations

from drivers.rtsp import h264, h265
from drivers.rtsp.frames import EncodedFrame, Entry, VideoCodec, VideoFormat


def told_by(frame: EncodedFrame, *, known: VideoFormat | None = None) -> VideoFormat | None:
    """Return the format that a keyframe's parameter sets describe; None when one is missing.

    If that equals `known`, the same object is returned.

    Raises:
        ProtocolViolation: the parameter sets describe no picture.
    """
    if known is not None and known.kind is frame.codec and frame.data.startswith(known.head):
        return known
    found = of_units(frame.codec, frame.data)
    return known if found == known else found


def of_units(codec: VideoCodec, data: bytes) -> VideoFormat | None:
    """Return the format by the parameter sets before the first slice of Annex B data; None when one is missing.

    Raises:
        ProtocolViolation: the parameter sets describe no picture.
    """
    if codec is VideoCodec.H265:
        vps, sps, pps = h265.parameter_sets(data)
        return h265.video_format(vps, sps, pps) if vps and sps and pps else None
    sps, pps = h264.parameter_sets(data)
    return h264.video_format(sps, pps) if sps and pps else None


def entry_of(codec: VideoCodec, data: bytes) -> tuple[Entry, int]:
    """Return the entry point of a picture in Annex B form, and the picture count of a recovery point (otherwise 0)."""
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
