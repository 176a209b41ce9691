"""Encoded frames and their formats, as they go from cameras to recorders and viewers. Nothing is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

TICKS_PER_SECOND = 90_000
"""The unit of all presentation and decoding times here: 1/90000 s, as in RTP and MPEG-TS for video."""


class VideoCodec(StrEnum):
    """A video codec that can be recorded."""

    H264 = "h264"
    H265 = "h265"


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """The format of a video stream, which a decoder needs before the first frame.

    Attributes:
        sps: the sequence parameter set, without start code.
        pps: the picture parameter set, without start code.
        width: the shown width in pixels, after cropping.
        height: the shown height in pixels, after cropping.
        codec: the RFC 6381 name, e.g. `avc1.42c01e` or `hvc1.1.6.L93.90`.
        vps: the video parameter set, without start code; empty for H.264, which has none.
        reordering: how many pictures may precede one in decoding order and follow it in presentation; None: unknown.
    """

    sps: bytes
    pps: bytes
    width: int
    height: int
    codec: str
    vps: bytes = b""
    reordering: int | None = None

    @property
    def kind(self) -> VideoCodec:
        """The codec, without its parameters."""
        return VideoCodec.H265 if self.vps else VideoCodec.H264

    @property
    def head(self) -> bytes:
        """The parameter sets in Annex B form, as they stand before a keyframe."""
        return b"".join(b"\x00\x00\x00\x01" + unit for unit in (self.vps, self.sps, self.pps) if unit)


class Entry(StrEnum):
    """A kind of entry point: a picture at which decoding, and so a segment of a recording, can begin."""

    IDR = "idr"
    """No later picture refers to an earlier one."""
    RECOVERY = "recovery"
    """A recovery point, or an open group of pictures: some later pictures refer to earlier ones."""
    NONE = "none"
    """No known entry point. A keyframe of this kind cuts a stream that has had no entry point for a long time."""


class Picture(NamedTuple):
    """One picture as its packets carried it. A tuple, because one is made some thirty times a second for each camera.

    Attributes:
        units: its NAL units, each behind a start code.
        others: those of its units that are no slices, without start codes.
        timestamp: the RTP timestamp, 32 bits.
        keyframe: whether decoding can start here.
        entry: the kind of entry point of a keyframe.
        recovery: the number of pictures from a recovery point to the first complete one.
        damaged: whether a part of it was lost; it may have no units then.
        after_loss: whether packets were lost just before it, perhaps whole pictures.
        bidirectional: whether it is shown before a picture that was decoded earlier; only known for H.264.
    """

    units: tuple[bytes, ...]
    others: tuple[bytes, ...]
    timestamp: int
    keyframe: bool
    damaged: bool
    after_loss: bool = False
    bidirectional: bool = False
    entry: Entry = Entry.NONE
    recovery: int = 0

    @property
    def data(self) -> bytes:
        """The picture in Annex B form (with start codes)."""
        return self.units[0] if len(self.units) == 1 else b"".join(self.units)


@dataclass(frozen=True, slots=True, weakref_slot=True)
class EncodedFrame:
    """One access unit.

    Attributes:
        data: H.264 or H.265 in Annex B form (start codes).
        pts: the presentation time in ticks, counted from any origin that is the same for all of a connection.
        dts: the decoding time in ticks, at most `pts`, growing within a connection.
        keyframe: whether a segment can begin here, and a viewer can join.
        arrived: when the frame was complete, in monotonic seconds.
        codec: the codec of `data`.
        entry: the kind of entry point of a keyframe.
        recovery: the number of pictures from a recovery point to the first complete one.
        jumped: whether the camera's timestamp was implausible, so that `pts` follows from the time of arrival.
        pace: the seconds that the camera's timestamps count in a real one, where that is known to be another than 1.
    """

    data: bytes
    pts: int
    dts: int
    keyframe: bool
    arrived: float
    codec: VideoCodec = VideoCodec.H264
    entry: Entry = Entry.IDR
    recovery: int = 0
    jumped: bool = False
    pace: float = 1.0


class AudioCodec(StrEnum):
    """An audio codec of cameras that can be recorded."""

    AAC = "aac"
    PCMU = "pcmu"
    PCMA = "pcma"
    OPUS = "opus"


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """The format of a sound stream, which a decoder needs before the first sound.

    Attributes:
        codec: the codec.
        rate: samples per second; for AAC, those of its core.
        channels: 1 for mono, 2 for stereo; other numbers as in ISO/IEC 14496-3, 1.6.3.4.
        object_type: AAC's audio object type (ISO/IEC 14496-3, 1.5.1.1); 2 is AAC-LC. Ignored for other codecs.
    """

    codec: AudioCodec
    rate: int
    channels: int
    object_type: int = 2

    @property
    def name(self) -> str:
        """The RFC 6381 name; only right for AAC."""
        return f"mp4a.40.{self.object_type}"


@dataclass(frozen=True, slots=True)
class EncodedAudio:
    """A piece of sound that decodes alone.

    Attributes:
        data: one raw access unit of AAC, one packet of Opus, or samples of G.711.
        pts: the presentation time in ticks, on the time line of the same connection's video.
        arrived: when it was complete, in monotonic seconds.
        format: the format of `data`.
    """

    data: bytes
    pts: int
    arrived: float
    format: AudioFormat
