"""Encoded frames and their formats, on the way from cameras to recorders and viewers. Nothing is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

TICKS_PER_SECOND = 90_000
"""All presentation and decoding times here are counted in these, as RTP and MPEG-TS do for video."""


class VideoCodec(StrEnum):
    """Video codecs that are recorded as the camera encoded them."""

    H264 = "h264"
    H265 = "h265"


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """Parameters that a decoder needs before the first frame.

    Attributes:
        sps: sequence parameter set, without start code.
        pps: picture parameter set, without start code.
        width: pixels shown, after cropping.
        height: pixels shown, after cropping.
        codec: RFC 6381 name, e.g. `avc1.42c01e` or `hvc1.1.6.L93.90`.
        vps: video parameter set, without start code; H.265 alone has one.
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
        """The codec alone."""
        return VideoCodec.H265 if self.vps else VideoCodec.H264

    @property
    def head(self) -> bytes:
        """The parameter sets in Annex B form, as they stand before a keyframe."""
        return b"".join(b"\x00\x00\x00\x01" + unit for unit in (self.vps, self.sps, self.pps) if unit)


class Entry(StrEnum):
    """Kinds of places at which decoding, and with it a segment of a recording, begins."""

    IDR = "idr"
    """Nothing that follows needs what came before."""
    RECOVERY = "recovery"
    """A recovery point, or an open group of pictures: some pictures after it need what came before."""
    NONE = "none"
    """No entry point, or none that is known: the stream has had none for a long time and is cut here all the same."""


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    """One access unit.

    Attributes:
        data: H.264 or H.265 in Annex B form (start codes).
        pts: presentation time in ticks; any origin, growing within a connection.
        dts: decoding time in ticks, at most `pts`.
        keyframe: whether a segment can begin here, and a viewer join.
        arrived: monotonic seconds when the frame was complete.
        codec: what `data` is.
        entry: the kind of entry point of a keyframe.
        recovery: how many pictures after a recovery point the first whole one comes.
        jumped: whether the camera gave a time that cannot be true, in place of which `pts` has the time of arrival.
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


class AudioCodec(StrEnum):
    """Audio codecs of cameras that are recorded."""

    AAC = "aac"
    PCMU = "pcmu"
    PCMA = "pcma"
    OPUS = "opus"


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """Parameters that a decoder needs before the first sound.

    Attributes:
        codec: how it is encoded.
        rate: samples per second, of AAC those of its core.
        channels: 1 mono, 2 stereo; other numbers as ISO/IEC 14496-3, 1.6.3.4 counts them.
        object_type: of AAC, as ISO/IEC 14496-3, 1.5.1.1 counts them; 2 is AAC-LC.
    """

    codec: AudioCodec
    rate: int
    channels: int
    object_type: int = 2

    @property
    def name(self) -> str:
        """RFC 6381 name of AAC."""
        return f"mp4a.40.{self.object_type}"


@dataclass(frozen=True, slots=True)
class EncodedAudio:
    """A piece of sound that decodes alone.

    Attributes:
        data: one raw access unit of AAC, one packet of Opus, or samples of G.711.
        pts: presentation time in ticks, on the time line of the same connection's video.
        arrived: monotonic seconds when it was complete.
        format: what `data` is.
    """

    data: bytes
    pts: int
    arrived: float
    format: AudioFormat
