"""Muxing of frames to MPEG-TS (ISO/IEC 13818-1; AAC by 13818-7, 6.2), and reading of the segments written so. Pure.

One muxer serves a connection, so that counters and times go on.

libavformat is not used for muxing: it takes more memory than all the rest of the worker, and a crash in C code would
end the recording of every camera in the process.

For reading it takes several times as long, because it examines each packet. A unit that is damaged ends before the
damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from drivers.contract import ProtocolViolation
from drivers.rtsp.compiled import compiled
from drivers.rtsp.frames import TICKS_PER_SECOND, AudioFormat, EncodedAudio, EncodedFrame, Entry, VideoCodec

SOUND_PID = 0x101
TRANSPORT_PACKET = 188
PACKET_ROOM = TRANSPORT_PACKET - 4
TABLE_PID = 0x1000
SOUND_TYPE = 0x0F
_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
_ADTS_SIZE = 7
_UNIT_SAMPLES = 1024
_SOUND_IDS = range(0xC0, 0xE0)
"""The length of a PES header with a presentation and a decoding time (2.4.3.6)."""


class SoundStream:
    """The muxer of one transport stream's sound."""

    def __init__(self, format_: AudioFormat) -> None:
        self._format = format_
        self._continuity = 0

    def packets(self, sound: EncodedAudio, *, at: int) -> bytes:
        """Build the transport packets of one AAC unit that plays at `at`, in ticks."""
        data = _adts(self._format, len(sound.data)) + sound.data
        head = b"\x00\x00\x01\xc0" + (len(data) + 8).to_bytes(2, "big") + b"\x84\x80\x05"
        return b"".join(self._split(head + written_time(at, mark=0x20) + data))

    def _split(self, unit: bytes) -> Iterator[bytes]:
        for at in range(0, len(unit), PACKET_ROOM):
            part = unit[at : at + PACKET_ROOM]
            missing = PACKET_ROOM - len(part)
            yield packet_head(SOUND_PID, self._continuity, begins=not at, field=missing > 0)
            yield stuffing(missing)
            yield part
            self._continuity = self._continuity + 1 & 0x0F


def packet_head(pid: int, counter: int, *, begins: bool = False, field: bool = False) -> bytes:
    """Build a transport packet's four-byte header (2.4.3.2). `begins`: a unit starts; `field`: adaptation field."""
    return bytes((0x47, (0x40 if begins else 0) | pid >> 8, pid & 0xFF, (0x30 if field else 0x10) | counter))


def stuffing(size: int) -> bytes:
    """Return this many bytes of an empty adaptation field."""
    if size < 2:
        return b"\x00" * size
    return bytes((size - 1, 0)) + b"\xff" * (size - 2)


def written_time(ticks: int, *, mark: int) -> bytes:
    """Encode a time for a PES header (2.4.3.6). `mark` is 0x20 for a single time, 0x30 and 0x10 for a pair."""
    # three parts of 3, 15 and 15 bits, each with a one behind it
    parts = (ticks & 0x1_C000_0000) << 3 | (ticks & 0x3FFF_8000) << 2 | (ticks & 0x7FFF) << 1
    return (mark << 32 | 0x01_0001_0001 | parts).to_bytes(5, "big")


def decoded_time(stamp: bytes) -> int:
    """Decode a time of a PES header (ISO/IEC 13818-1, 2.4.3.6)."""
    return (stamp[0] >> 1 & 7) << 30 | stamp[1] << 22 | (stamp[2] >> 1) << 15 | stamp[3] << 7 | stamp[4] >> 1


def sound_name(packets: bytes) -> str:
    """Return the RFC 6381 name of the sound in these transport packets; "" when there is none."""
    for at in range(0, len(packets) - TRANSPORT_PACKET + 1, TRANSPORT_PACKET):
        payload = _payload(packets, at)
        begins = packets[at + 1] & 0x40 and len(payload) > _ADTS_SIZE + 9 and payload[:3] == b"\x00\x00\x01"
        if begins and payload[3] in _SOUND_IDS:
            adts = payload[9 + payload[8] :]
            return f"mp4a.40.{(adts[2] >> 6) + 1}" if len(adts) > 2 else ""
    return ""


def sound_ticks(adts: bytes) -> int:
    """Return the duration of a piece of AAC in ticks, by its ADTS header; 0 when that is invalid."""
    rate = adts[2] >> 2 & 0x0F if len(adts) >= _ADTS_SIZE else len(_RATES)
    return _UNIT_SAMPLES * TICKS_PER_SECOND // _RATES[rate] if rate < len(_RATES) else 0


def announces_sound(packets: bytes) -> bool:
    """Return whether the program map in these transport packets names any sound."""
    at = _table_at(packets)
    return at is not None and any(kind == SOUND_TYPE for kind in _kinds(packets[at + 4 : at + TRANSPORT_PACKET]))


def video_type(packets: bytes) -> int | None:
    """Return the stream type of the video in the program map of these transport packets; None when there is none."""
    at = _table_at(packets)
    if at is None:
        return None
    return next((kind for kind in _kinds(packets[at + 4 : at + TRANSPORT_PACKET]) if kind != SOUND_TYPE), None)


def _payload(packets: bytes, at: int) -> bytes:
    control = packets[at + 3] >> 4 & 3
    skip = 4 + (1 + packets[at + 4] if control & 2 else 0)
    return packets[at + skip : at + TRANSPORT_PACKET] if control & 1 else b""


def _table_at(packets: bytes) -> int | None:
    """Return the offset of the packet with the program map; None when there is none before the first picture."""
    for at in range(0, len(packets) - TRANSPORT_PACKET + 1, TRANSPORT_PACKET):
        pid = (packets[at + 1] & 0x1F) << 8 | packets[at + 2]
        if pid == TABLE_PID:
            return at
        if TABLE_PID > pid >= 0x100:
            return None
    return None


def _kinds(table: bytes) -> Iterator[int]:
    """Iterate over the stream types in a program map (2.4.4.8). `table` is a packet's payload, from the pointer on.

    A table longer than its packet, from another muxer or a damaged file, is read only up to the packet's end.
    """
    end = min(1 + 3 + ((table[2] & 0x0F) << 8 | table[3]) - 4, len(table))
    at = 1 + 12 + ((table[11] & 0x0F) << 8 | table[12])
    while at + 5 <= end:
        yield table[at]
        at += 5 + ((table[at + 3] & 0x0F) << 8 | table[at + 4])


def _adts(format_: AudioFormat, size: int) -> bytes:
    profile = format_.object_type - 1 if format_.object_type <= 4 else 1  # the data itself describes added layers
    rate = _RATES.index(format_.rate)
    whole = size + _ADTS_SIZE
    return bytes(
        (
            0xFF,
            0xF1,
            profile << 6 | rate << 2 | format_.channels >> 2,
            (format_.channels & 3) << 6 | whole >> 11,
            whole >> 3 & 0xFF,
            (whole & 7) << 5 | 0x1F,
            0xFC,
        )
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

_SYNC = b"\x47"
_GOES_ON = bytes((PICTURE_PID >> 8,))
"""The second byte of a packet that continues a unit: the high bits of both streams' PIDs."""
_BEGINS = bytes((0x40 | PICTURE_PID >> 8,))
_PICTURE, _SOUND = bytes((PICTURE_PID & 0xFF,)), bytes((SOUND_PID & 0xFF,))
_PAYLOADS = [Struct(f"4x{PACKET_ROOM}s" * count).unpack_from for count in range(_MOST_AT_ONCE + 1)]
"""By index: a function that returns the payloads of that many packets at once, which is the fastest way."""
_TIMED_HEAD = 14
"""The length of a PES header with a presentation time (ISO/IEC 13818-1, 2.4.3.6)."""


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
        begin = self._table_packets() if frame.keyframe else b""
        packets = _transport_packets(begin, flags + clock, head, data, self._counter)
        self._counter = self._counter + (len(packets) - len(begin)) // TRANSPORT_PACKET & 0x0F
        return packets

    def mux_sound(self, sound: EncodedAudio) -> bytes:
        """Build the transport packets of a piece of AAC; none before the first frame, or for a stream without sound."""
        if self._sound is None or not self._begun:
            return b""
        return self._sound.packets(sound, at=sound.pts + _SHIFT)

    def _table_packets(self) -> bytes:
        counter = self._tables_sent
        self._tables_sent = counter + 1 & 0x0F
        return b"".join(
            packet_head(pid, counter, begins=True) + table
            for pid, table in zip((0, TABLE_PID), self._tables, strict=True)
        )


def transport_packets(begin: bytes, field: bytes, head: bytes, data: bytes, counter: int) -> bytearray:
    """Packetize one frame behind `begin`. `field` is the content of the first adaptation field (2.4.3.4).

    The first packet has the continuity counter `counter`. The code only cuts and joins bytes, because there are some
    thousand packets a second.

    Raises:
        ValueError: field and head do not fit into a packet.
    """
    first = PACKET_ROOM - 1 - len(field) - len(head)
    if first < 0:
        raise ValueError("a frame's head does not fit into a packet")
    field += b"\xff" * (first - len(data))
    pieces = [b"".join((begin, _FIRST_HEADS[counter & 0x0F], bytes((len(field),)), field, head, data[:first]))]
    whole = max(0, len(data) - first) // PACKET_ROOM
    until = first + whole * PACKET_ROOM
    for at in range(first, until, _MOST_AT_ONCE * PACKET_ROOM):
        pieces += _CUT[min(_MOST_AT_ONCE, (until - at) // PACKET_ROOM)](data, at)
    packets = _MIDDLE_HEAD.join(pieces)
    counter = counter + 1 & 0x0F
    controls = _CONTROLS[counter : counter + 16] * (whole // 16 + 1)
    packets[len(pieces[0]) + 3 :: TRANSPORT_PACKET] = controls[:whole]
    if until < len(data):
        rest = data[until:]
        packets += _LAST_HEADS[counter + whole & 0x0F] + _STUFFING[PACKET_ROOM - len(rest)] + rest
    return packets


_transport_packets = compiled(transport_packets)


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


@dataclass(frozen=True, slots=True)
class AccessUnit:
    """A picture in Annex B form, or a piece of AAC with its ADTS header.

    Attributes:
        is_sound: whether it is sound.
        pts: its presentation time in ticks, as written.
        is_entry: whether it is marked as an entry point.
        data: its bytes, without those after any damage.
    """

    is_sound: bool
    pts: int
    is_entry: bool
    data: bytes


def picture_times(segment: bytes) -> list[int]:
    """Return the presentation times of a segment's pictures, in decoding order."""
    return [begin.pts for begin in _begins(segment) if not begin.is_sound]


def access_units(segment: bytes) -> Iterator[AccessUnit]:
    """Iterate over the units of a segment, as they were written. The pictures are those of `picture_times`."""
    syncs, seconds, thirds = (segment[place::TRANSPORT_PACKET] for place in range(3))
    for begin in _begins(segment):
        first = begin.number + 1
        count = len(segment) // TRANSPORT_PACKET - first
        for heads, byte in ((seconds, _GOES_ON), (thirds, begin.pid), (syncs, _SYNC)):
            run = heads[first : first + count]
            count = len(run) - len(run.lstrip(byte))
        at, until = first * TRANSPORT_PACKET, (first + count) * TRANSPORT_PACKET
        pieces = [segment[begin.data_at : at]]
        for each in range(at, until, _MOST_AT_ONCE * TRANSPORT_PACKET):
            pieces += _PAYLOADS[min(_MOST_AT_ONCE, (until - each) // TRANSPORT_PACKET)](segment, each)
        if count:  # only the last packet has an adaptation field, as stuffing
            pieces[-1] = segment[_payload_at(segment, until - TRANSPORT_PACKET) : until]
        yield AccessUnit(begin.is_sound, begin.pts, begin.is_entry, b"".join(pieces))


@dataclass(frozen=True, slots=True)
class _Begin:
    """The begin of a unit.

    Attributes:
        number: the number of its packet.
        pid: the low byte of its stream's PID.
        pts: its presentation time.
        is_entry: whether it is marked as an entry point.
        data_at: the place of its first byte.
    """

    number: int
    pid: bytes
    pts: int
    is_entry: bool
    data_at: int

    @property
    def is_sound(self) -> bool:
        return self.pid == _SOUND


def _begins(segment: bytes) -> Iterator[_Begin]:
    seconds = segment[1::TRANSPORT_PACKET]
    number = seconds.find(_BEGINS)
    while number >= 0:
        at = number * TRANSPORT_PACKET
        packet = segment[at : at + TRANSPORT_PACKET]
        pid = packet[2:3]
        if len(packet) == TRANSPORT_PACKET and packet[:1] == _SYNC and pid in (_PICTURE, _SOUND):
            payload_at = _payload_at(packet, 0)
            head = packet[payload_at : payload_at + _TIMED_HEAD]
            if len(head) == _TIMED_HEAD and head.startswith(b"\x00\x00\x01") and head[7] & 0x80:
                is_entry = payload_at > 5 and packet[5] & 0x40 != 0
                data_at = at + min(payload_at + 9 + head[8], TRANSPORT_PACKET)
                yield _Begin(number, pid, decoded_time(head[9:]), is_entry, data_at)
        number = seconds.find(_BEGINS, number + 1)


def _payload_at(packets: bytes, at: int) -> int:
    """Return the place of the payload of the packet at `at`, behind its adaptation field if it has one."""
    return at + 4 + (1 + packets[at + 4] if packets[at + 3] & 0x20 else 0)
