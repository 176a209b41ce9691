"""Reading of segments: the pictures and pieces of sound in the transport packets that `TransportMuxer` wrote. Pure.

libavformat takes several times as long for it, because it examines each packet. A unit that is damaged ends before the
damage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct

from gateway.camera_worker.sound_stream import PACKET_ROOM, SOUND_PID, TRANSPORT_PACKET, decoded_time
from gateway.camera_worker.transport_stream import PICTURE_PID

_SYNC = b"\x47"
_GOES_ON = bytes((PICTURE_PID >> 8,))
"""The second byte of a packet that continues a unit: the high bits of both streams' PIDs."""
_BEGINS = bytes((0x40 | PICTURE_PID >> 8,))
_PICTURE, _SOUND = bytes((PICTURE_PID & 0xFF,)), bytes((SOUND_PID & 0xFF,))
_MOST_AT_ONCE = 128
_PAYLOADS = [Struct(f"4x{PACKET_ROOM}s" * count).unpack_from for count in range(_MOST_AT_ONCE + 1)]
"""By index: a function that returns the payloads of that many packets at once, which is the fastest way."""
_TIMED_HEAD = 14
"""The length of a PES header with a presentation time (ISO/IEC 13818-1, 2.4.3.6)."""


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
