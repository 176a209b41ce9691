"""Packetizing of H.264 (RFC 6184, mode 1), H.265 (RFC 7798) and AAC (RFC 3640, AAC-hbr) for RTP (RFC 3550). Pure."""

from __future__ import annotations

import struct

from drivers.rtsp import h264, h265
from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedAudio, EncodedFrame, VideoCodec

PAYLOAD_TYPE = 96
SOUND_PAYLOAD_TYPE = 97
LARGEST_PACKET = 1_400
"""Bytes of a packet that pass every network that carries video, with its header."""
_HEADER = struct.Struct("!BBHII")
_FU_A, _FU = 28, 49
_MARKER = 0x80
_SENDER_REPORT = struct.Struct("!BBHIIIIII")
_REPORT_TYPE = 200
_NTP_EPOCH = 2_208_988_800
"""Seconds from 1900, the begin of NTP's count, to 1970."""


class Packetizer:
    """The maker of RTP packets from one stream's frames. It counts the sequence numbers.

    Args:
        ssrc: the stream's identifier.
        sequence: the first packet's sequence number.
        timestamp: the offset added to each frame's time; random, as RFC 3550 demands.
        largest: the greatest size of a packet in bytes, header included.
    """

    def __init__(self, *, ssrc: int, sequence: int, timestamp: int, largest: int = LARGEST_PACKET) -> None:
        self._ssrc = ssrc
        self._sequence = sequence
        self._timestamp = timestamp
        self._largest = largest - _HEADER.size

    @property
    def next_sequence(self) -> int:
        """The sequence number of the next packet."""
        return self._sequence

    def timestamp(self, pts: int) -> int:
        """Convert a presentation time to RTP time."""
        return (self._timestamp + pts) & 0xFFFFFFFF

    def packets(self, frame: EncodedFrame) -> list[bytes]:
        """Return the packets of a frame, the last one marked."""
        parts = payloads(frame, largest=self._largest)
        timestamp = self.timestamp(frame.pts)
        last = len(parts) - 1
        return [self._header(timestamp, marked=index == last) + part for index, part in enumerate(parts)]

    def _header(self, timestamp: int, *, marked: bool) -> bytes:
        sequence = self._sequence
        self._sequence = (sequence + 1) & 0xFFFF
        return _HEADER.pack(0x80, PAYLOAD_TYPE | (_MARKER if marked else 0), sequence, timestamp, self._ssrc)


class SoundPacketizer:
    """The maker of RTP packets from one stream's AAC, one access unit in each. It counts the sequence numbers.

    Args:
        ssrc: the stream's identifier.
        sequence: the first packet's sequence number.
        timestamp: the offset added to each unit's time; random, as RFC 3550 demands.
        rate: samples per second, which is the rate of the RTP clock.
        largest: the greatest size of a packet in bytes, header included.
    """

    def __init__(self, *, ssrc: int, sequence: int, timestamp: int, rate: int, largest: int = LARGEST_PACKET) -> None:
        self._ssrc = ssrc
        self._sequence = sequence
        self._timestamp = timestamp
        self._rate = rate
        self._largest = largest - _HEADER.size - 4

    @property
    def next_sequence(self) -> int:
        """The sequence number of the next packet."""
        return self._sequence

    def timestamp(self, pts: int) -> int:
        """Convert a presentation time to RTP time."""
        return (self._timestamp + pts * self._rate // TICKS_PER_SECOND) & 0xFFFFFFFF

    def packets(self, sound: EncodedAudio) -> list[bytes]:
        """Return the packet of an access unit, or its fragments when it does not fit; the last one is marked."""
        timestamp, data = self.timestamp(sound.pts), sound.data
        head = struct.pack("!HH", 16, len(data) << 3 & 0xFFFF)  # the bits of the headers that follow; size, index 0
        made = []
        for at in range(0, len(data), self._largest):
            marker = _MARKER if at + self._largest >= len(data) else 0
            rtp = _HEADER.pack(0x80, SOUND_PAYLOAD_TYPE | marker, self._sequence, timestamp, self._ssrc)
            made.append(rtp + head + data[at : at + self._largest])
            self._sequence = (self._sequence + 1) & 0xFFFF
        return made


def payloads(frame: EncodedFrame, *, largest: int) -> list[bytes]:
    """Return the payloads of a frame's packets: each NAL unit, or fragments of one of more than `largest` bytes."""
    found: list[bytes] = []
    for unit in h264.nal_units(frame.data):
        if frame.codec is VideoCodec.H265:
            if h265.nal_type(unit) != h265.DELIMITER:
                found += [unit] if len(unit) <= largest else _fragments_h265(unit, largest - 3)
        elif h264.nal_type(unit) != h264.DELIMITER:
            found += [unit] if len(unit) <= largest else _fragments(unit, largest - 2)
    return found


def sender_report(*, ssrc: int, timestamp: int, seconds: float, packets: int, octets: int) -> bytes:
    """Encode a sender report, which relates a stream's RTP time to a clock that all streams share (RFC 3550, 6.4.1).

    Args:
        ssrc: the stream's identifier.
        timestamp: the RTP time of the report.
        seconds: the shared clock's time at `timestamp`, in seconds since 1970.
        packets: the number of packets sent so far.
        octets: the number of payload bytes sent so far.
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
