"""H.264 (RFC 6184, packetization mode 1) and H.265 (RFC 7798) into RTP (RFC 3550). Pure."""

from __future__ import annotations

import struct

from drivers.camera import h264, h265
from drivers.camera.frames import EncodedFrame, VideoCodec

PAYLOAD_TYPE = 96
_HEADER = struct.Struct("!BBHII")
_FU_A, _FU = 28, 49
_MARKER = 0x80


class Packetizer:
    """Frames of one stream to RTP packets; keeps the sequence number.

    Args:
        ssrc: the stream's identifier.
        sequence: the first packet's sequence number.
        timestamp: added to each frame's time; random by RFC 3550.
        largest: bytes of a whole packet, header included; 1400 passes every network that carries video.
    """

    def __init__(self, *, ssrc: int, sequence: int, timestamp: int, largest: int = 1400) -> None:
        self._ssrc = ssrc
        self._sequence = sequence
        self._timestamp = timestamp
        self._largest = largest - _HEADER.size

    @property
    def next_sequence(self) -> int:
        """The sequence number of the packet that comes next."""
        return self._sequence

    def timestamp(self, pts: int) -> int:
        """The RTP time of a presentation time."""
        return (self._timestamp + pts) & 0xFFFFFFFF

    def packets(self, frame: EncodedFrame) -> list[bytes]:
        """The frame's packets, the last one marked. A unit that fits goes alone, a larger one in fragments."""
        payloads: list[bytes] = []
        for unit in h264.nal_units(frame.data):
            if frame.codec is VideoCodec.H265:
                if h265.nal_type(unit) != h265.DELIMITER:
                    payloads += [unit] if len(unit) <= self._largest else _fragments_h265(unit, self._largest - 3)
            elif h264.nal_type(unit) != h264.DELIMITER:
                payloads += [unit] if len(unit) <= self._largest else _fragments(unit, self._largest - 2)
        timestamp = self.timestamp(frame.pts)
        last = len(payloads) - 1
        return [self._header(timestamp, marked=index == last) + payload for index, payload in enumerate(payloads)]

    def _header(self, timestamp: int, *, marked: bool) -> bytes:
        sequence = self._sequence
        self._sequence = (sequence + 1) & 0xFFFF
        return _HEADER.pack(0x80, PAYLOAD_TYPE | (_MARKER if marked else 0), sequence, timestamp, self._ssrc)


def _fragments(unit: bytes, size: int) -> list[bytes]:
    indicator = unit[0] & 0xE0 | _FU_A
    kind = unit[0] & 0x1F
    parts = [unit[at : at + size] for at in range(1, len(unit), size)]
    last = len(parts) - 1
    return [
        bytes((indicator, kind | (0x80 if index == 0 else 0) | (0x40 if index == last else 0))) + part
        for index, part in enumerate(parts)
    ]


def _fragments_h265(unit: bytes, size: int) -> list[bytes]:
    head = bytes((unit[0] & 0x81 | _FU << 1, unit[1]))
    kind = h265.nal_type(unit)
    parts = [unit[at : at + size] for at in range(2, len(unit), size)]
    last = len(parts) - 1
    return [
        head + bytes((kind | (0x80 if index == 0 else 0) | (0x40 if index == last else 0),)) + part
        for index, part in enumerate(parts)
    ]
