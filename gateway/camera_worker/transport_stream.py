"""Muxing of frames to MPEG-TS (ISO/IEC 13818-1). One muxer serves a connection, so that counters and times go on. Pure.

libavformat is not used for it: it takes more memory than all the rest of the worker, and a crash in C code would end
the recording of every camera in the process.
"""

from __future__ import annotations

from struct import Struct

from drivers.contract import ProtocolViolation
from drivers.rtsp.frames import AudioFormat, EncodedAudio, EncodedFrame, Entry, VideoCodec
from gateway.camera_worker.sound_stream import (
    PACKET_ROOM,
    SOUND_PID,
    SOUND_TYPE,
    TABLE_PID,
    TRANSPORT_PACKET,
    SoundStream,
    packet_head,
    stuffing,
    written_time,
)

PICTURE_PID = 0x100
_SHIFT = 90_000
"""One second, added to all times, because with reordered pictures the first one may be decoded before time 0."""
_PICTURE_TYPES = {
    VideoCodec.H264: bytes((0x1B, 0xE0 | PICTURE_PID >> 8, PICTURE_PID & 0xFF, 0xF0, 0)),
    VideoCodec.H265: bytes((0x24, 0xE0 | PICTURE_PID >> 8, PICTURE_PID & 0xFF, 0xF0, 6)) + b"\x05\x04HEVC",
}
_DELIMITERS = {VideoCodec.H264: b"\x00\x00\x00\x01\x09\xf0", VideoCodec.H265: b"\x00\x00\x00\x01\x46\x01\x50"}
"""Access unit delimiters that allow all kinds of slices (2.14.1 demands one for each picture of H.264)."""
_PROGRAMS = b"\x00\xb0\x0d\x00\x01\xc1\x00\x00" + bytes((0x00, 0x01, 0xE0 | TABLE_PID >> 8, TABLE_PID & 0xFF))
_RANDOM_ACCESS, _HAS_CLOCK = 0x40, 0x10
_FIRST_HEADS = [packet_head(PICTURE_PID, counter, begins=True, field=True) for counter in range(16)]
_LAST_HEADS = [packet_head(PICTURE_PID, counter, field=True) for counter in range(16)]
_MIDDLE_HEAD = bytearray(packet_head(PICTURE_PID, 0))
_STUFFING = [stuffing(size) for size in range(PACKET_ROOM)]
_MOST_AT_ONCE = 128
_CUT = [Struct(f"{PACKET_ROOM}s" * count).unpack_from for count in range(_MOST_AT_ONCE + 1)]
"""By index: a function that cuts that many packet payloads out of a buffer at once, which is the fastest way."""
_CONTROLS = bytes(0x10 | counter for counter in range(16)) * 2
"""The last bytes of the heads of packets that follow one another, from any counter on."""


class TransportMuxer:
    """The muxer of one connection. Each frame becomes packets of its own; the tables stand before each keyframe."""

    def __init__(self, *, codec: VideoCodec, sound: AudioFormat | None = None) -> None:
        self.codec = codec
        self._sound = None if sound is None else SoundStream(sound)
        kinds = _PICTURE_TYPES[codec]
        if sound is not None:
            kinds += bytes((SOUND_TYPE, 0xE0 | SOUND_PID >> 8, SOUND_PID & 0xFF, 0xF0, 0))
        # its own length, then the program, its version, and which stream has the clock (2.4.4.8)
        head = bytes((0x02, 0xB0, 9 + len(kinds) + 4, 0x00, 0x01, 0xC1, 0x00, 0x00))
        clock = bytes((0xE0 | PICTURE_PID >> 8, PICTURE_PID & 0xFF, 0xF0, 0x00))
        self._tables = (_section(_PROGRAMS), _section(head + clock + kinds))
        self._tables_sent = 0
        self._counter = 0
        self._begun = False

    def mux(self, frame: EncodedFrame, data: bytes) -> bytes | bytearray:
        """Build the transport packets of one frame. `data` is used in place of `frame.data`.

        Raises:
            ProtocolViolation: the frame cannot be muxed.
        """
        if frame.pts < frame.dts or not data.startswith((b"\x00\x00\x00\x01", b"\x00\x00\x01")):
            raise ProtocolViolation("a frame cannot be written as MPEG-TS")
        self._begun = True
        dts = frame.dts + _SHIFT
        if frame.pts == frame.dts:
            times = b"\x84\x80\x05" + written_time(dts, mark=0x20)
        else:
            times = b"\x84\xc0\x0a" + written_time(frame.pts + _SHIFT, mark=0x30) + written_time(dts, mark=0x10)
        head = b"".join((b"\x00\x00\x01\xe0\x00\x00", times, _DELIMITERS[self.codec]))
        clock = ((dts & 0x1_FFFF_FFFF) << 15 | 0x7E00).to_bytes(6, "big")
        is_entry = frame.keyframe and frame.entry is not Entry.NONE
        flags = bytes((_HAS_CLOCK | (_RANDOM_ACCESS if is_entry else 0),))
        begin = self._table_packets() if frame.keyframe else []
        return self._packets(begin, flags + clock, head, data)

    def mux_sound(self, sound: EncodedAudio) -> bytes:
        """Build the transport packets of a piece of AAC; none before the first frame, or for a stream without sound."""
        if self._sound is None or not self._begun:
            return b""
        return self._sound.packets(sound, at=sound.pts + _SHIFT)

    def _table_packets(self) -> list[bytes]:
        counter = self._tables_sent
        self._tables_sent = counter + 1 & 0x0F
        return [
            packet_head(pid, counter, begins=True) + table
            for pid, table in zip((0, TABLE_PID), self._tables, strict=True)
        ]

    def _packets(self, begin: list[bytes], field: bytes, head: bytes, data: bytes) -> bytearray:
        """Packetize one frame behind `begin`. `field` is the content of the first adaptation field (2.4.3.4).

        The code only cuts and joins bytes, because there are some thousand packets a second.
        """
        first = PACKET_ROOM - 1 - len(field) - len(head)
        field += b"\xff" * (first - len(data))
        begin += _FIRST_HEADS[self._counter], bytes((len(field),)), field, head, data[:first]
        pieces = [b"".join(begin)]
        whole = max(0, len(data) - first) // PACKET_ROOM
        until = first + whole * PACKET_ROOM
        for at in range(first, until, _MOST_AT_ONCE * PACKET_ROOM):
            pieces += _CUT[min(_MOST_AT_ONCE, (until - at) // PACKET_ROOM)](data, at)
        packets = _MIDDLE_HEAD.join(pieces)
        counter = self._counter + 1 & 0x0F
        controls = _CONTROLS[counter : counter + 16] * (whole // 16 + 1)
        packets[len(pieces[0]) + 3 :: TRANSPORT_PACKET] = controls[:whole]
        counter = counter + whole & 0x0F
        if until < len(data):
            rest = data[until:]
            packets += _LAST_HEADS[counter] + _STUFFING[PACKET_ROOM - len(rest)] + rest
            counter = counter + 1 & 0x0F
        self._counter = counter
        return packets


def _section(body: bytes) -> bytes:
    """Return a table as the payload of one packet, with its checksum and padding."""
    section = b"\x00" + body + _checksum(body).to_bytes(4, "big")
    return section + b"\xff" * (TRANSPORT_PACKET - 4 - len(section))


def _checksum(data: bytes) -> int:
    """Compute the CRC-32/MPEG-2."""
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ (0x04C11DB7 if value & 0x80000000 else 0)) & 0xFFFFFFFF
    return value
