"""What travels between cameras, recorders and viewers: encoded frames, never decoded ones."""

from __future__ import annotations

from dataclasses import dataclass

TICKS_PER_SECOND = 90_000
"""All presentation and decoding times here are counted in these, as RTP and MPEG-TS do for video."""


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """What a viewer must know before the first frame.

    Attributes:
        sps: H.264 sequence parameter set, without start code.
        pps: H.264 picture parameter set, without start code.
        width: pixels shown, after cropping.
        height: pixels shown, after cropping.
    """

    sps: bytes
    pps: bytes
    width: int
    height: int

    @property
    def codec(self) -> str:
        """RFC 6381 name, e.g. `avc1.42c01e`."""
        return f"avc1.{self.sps[1:4].hex()}"


@dataclass(frozen=True, slots=True)
class EncodedFrame:
    """One access unit.

    Attributes:
        data: H.264 in Annex B form (start codes).
        pts: presentation time in ticks; any origin, growing within a connection.
        dts: decoding time in ticks, at most `pts`.
        keyframe: whether decoding can start here.
        arrived: monotonic seconds when the frame was complete.
    """

    data: bytes
    pts: int
    dts: int
    keyframe: bool
    arrived: float
