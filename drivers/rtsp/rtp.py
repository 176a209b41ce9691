"""Packing of H.264 (RFC 6184, packetization mode 1), H.265 (RFC 7798) and AAC (RFC 3640, AAC-hbr) into RTP (RFC
3550). Pure.
"""

from __future__ import annotations

import struct

from drivers.rtsp import h264, h265
from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedAudio, EncodedFrame, VideoCodec

PAYLOAD_TYPE = 96
SOUND_PAYLOAD_TYPE = 97
_HEADER = struct.Struct("!BBHII")
_FU_A, _FU = 28, 49
_MARKER = 0x80
_SENDER_REPORT = struct.Struct("!BBHIIIIII")
_REPORT_TYPE = 200
_NTP_EPOCH = 2_208_988_800
"""Seconds from 1900, where NTP counts from, to 1970."""


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
        """Convert a presentation time to RTP time."""
        return (self._timestamp + pts) & 0xFFFFFFFF

    def packets(self, frame: EncodedFrame) -> list[bytes]:
        """Packetize a frame; the last packet is marked. A unit that fits goes alone, a larger one in fragments."""
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


class SoundPacketizer:
    """AAC of one stream to RTP packets, one access unit in each; keeps the sequence number.

    Args:
        ssrc: the stream's identifier.
        sequence: the first packet's sequence number.
        timestamp: added to each unit's time; random by RFC 3550.
        rate: samples per second, in which RTP counts its time.
        largest: bytes of a whole packet, header included.
    """

    def __init__(self, *, ssrc: int, sequence: int, timestamp: int, rate: int, largest: int = 1400) -> None:
        self._ssrc = ssrc
        self._sequence = sequence
        self._timestamp = timestamp
        self._rate = rate
        self._largest = largest - _HEADER.size - 4

    @property
    def next_sequence(self) -> int:
        """The sequence number of the packet that comes next."""
        return self._sequence

    def timestamp(self, pts: int) -> int:
        """Convert a presentation time to RTP time."""
        return (self._timestamp + pts * self._rate // TICKS_PER_SECOND) & 0xFFFFFFFF

    def packets(self, sound: EncodedAudio) -> list[bytes]:
        """Packetize a unit in one packet, or where it does not fit in fragments; the last one is marked."""
        timestamp, data = self.timestamp(sound.pts), sound.data
        head = struct.pack("!HH", 16, len(data) << 3 & 0xFFFF)  # the bits of the headers that follow; size, index 0
        made = []
        for at in range(0, len(data), self._largest):
            marker = _MARKER if at + self._largest >= len(data) else 0
            rtp = _HEADER.pack(0x80, SOUND_PAYLOAD_TYPE | marker, self._sequence, timestamp, self._ssrc)
            made.append(rtp + head + data[at : at + self._largest])
            self._sequence = (self._sequence + 1) & 0xFFFF
        return made


def sender_report(*, ssrc: int, timestamp: int, seconds: float, packets: int, octets: int) -> bytes:
    """Encode a sender report, which ties RTP time to the clock of all streams (RFC 3550, 6.4.1).

    `seconds` since 1970 of that clock at `timestamp`.
    """
    whole = int(seconds)
    return _SENDER_REPORT.pack(
        0x80, _REPORT_TYPE, _SENDER_REPORT.size // 4 - 1, ssrc, (whole + _NTP_EPOCH) & 0xFFFFFFFF,
        int((seconds - whole) * 2**32) & 0xFFFFFFFF, timestamp, packets & 0xFFFFFFFF, octets & 0xFFFFFFFF,
    )  # fmt: skip


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
