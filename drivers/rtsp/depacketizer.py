"""Conversion of RTP packets to pictures: H.264 (RFC 6184) and H.265 (RFC 7798). Pure.

Lost, repeated and invalid packets are expected.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from drivers.rtsp import h264, h265
from drivers.rtsp.compiled import compiled
from drivers.rtsp.frames import Entry, Picture, VideoCodec
from drivers.rtsp.rtp_packets import MOST_LATE, payload_offset

LARGEST_PICTURE = 8_000_000
"""The greatest size of a picture in bytes; a larger one is dropped."""
_HEAD = struct.Struct("!BBHII")
_COMMON = struct.Struct("!Q4xI")
"""The begin of a packet: RTP's first two bytes, sequence and timestamp as one number; (SSRC;) the payload's begin."""
_NEXT = 1 << 32
_PLAIN_HEAD = 12
_MIDDLE_OF = {VideoCodec.H264: (0x1FC00000, 0x1C000000, 14), VideoCodec.H265: (0x7E00C000, 0x62000000, 15)}
"""For each codec: the mask and the value that show a middle fragment in the payload, and the offset of its data."""
_SLICE_OF = {VideoCodec.H264: (0x9F000000, 0x01000000), VideoCodec.H265: (0xFC000000, 0x00000000)}
"""For each codec: the mask and the value that show a slice in the payload that is of no entry point."""
_ENDS_OF = {
    VideoCodec.H264: (0x9FFF8000, 0x1C818000, 0x9FFF0000, 0x1C410000),
    VideoCodec.H265: (0xFE00FE80, 0x62008080, 0xFE00FE00, 0x62004000),
}
"""For each codec: masks and values that show the first and the last fragment of a picture's first slice, no entry."""
_MOST_AT_ONCE = 256
_MOST_OTHERS = 128
"""The units of a picture that are no slices. Cameras send some ten; each is compared with those before it."""
_MARK = 0x80 << 48
_STAP_A, _FU_A = 24, 28
_AP, _FU = 48, 49
_START = h264.START_CODE
_INNER_START = _START[1:]
_UNIT_AT = len(_START)
_SLICE_HEAD = 16
"""The bytes of a slice's begin that show its type."""


class Depacketizer:
    """The maker of one stream's pictures from its packets, which must come in order.

    A picture ends with a packet that has the marker bit, or where the timestamp changes. Parameter sets that come
    alone belong to the picture after them. A unit that holds start codes is taken as the units between them. A
    fragmented unit without an end is complete where the next unit or picture follows it without a loss.
    """

    def __init__(self, *, codec: VideoCodec) -> None:
        self.codec = codec
        self._units: list[bytes] = []
        self._others: list[bytes] = []
        self._fragment: list[bytes | memoryview] | None = None
        self._kept = 0
        self._size = 0
        self._timestamp = -1
        self._damaged = False
        self._after_loss = False
        self._has_slice = False
        self._lost_slice = False
        self._entry = Entry.NONE
        self._recovery: int | None = None
        self._sequence: int | None = None
        self._sender = 0
        self._head = 0
        self._ended_at = -1
        self._marker_lies = False
        self.lost = 0
        """The number of packets that never came."""
        self.refused = 0
        """The number of invalid packets and units."""

    def take(self, packets: Sequence[bytes | memoryview], at: int) -> int:
        """Take common packets from place `at` on; return the place of the first packet that was not taken.

        Common are middle fragments of the present unit, and further slices of the present picture. Most packets are,
        and they make most of the cost of a camera, so this method checks no more than it must. The packet at the
        returned place must be given to `push`. All packets must stay valid until none is left.
        """
        if self._sequence is not None and at < len(packets):
            came = packets[at : at + min(_MOST_AT_ONCE, 0xFFFF - self._sequence)]
            if self._fragment is not None:
                taken = self._take_fragments(self._fragment, came)
            else:
                taken = self._take_slices(came) if self._has_slice else 0
            self._sequence += taken
            at += taken
        if at >= len(packets) and self._fragment is not None:
            self._fragment[self._kept :] = [b"".join(self._fragment[self._kept :])]
            self._kept = len(self._fragment)
        return at

    def _take_fragments(self, fragment: list[bytes | memoryview], came: Sequence[bytes | memoryview]) -> int:
        """Take middle fragments from the begin of these packets on; return how many there were."""
        wanted, unpack = self._wanted, _COMMON.unpack_from
        bits, middle, begin = _MIDDLE_OF[self.codec]
        before = len(fragment)
        for packet in came:
            try:
                head, payload = unpack(packet)
            except struct.error:
                break
            if head != wanted or payload & bits != middle:
                break
            wanted += _NEXT
            fragment.append(packet[begin:])
        taken = len(fragment) - before
        if taken:
            self._size += sum(map(len, fragment[before:]))
            if self._size > LARGEST_PICTURE:
                self._fragment = None
                self._damaged = True
        return taken

    def _take_slices(self, came: Sequence[bytes | memoryview]) -> int:
        """Take slices of the present picture from the begin of these packets on; return how many there were."""
        wanted, unpack = self._wanted, _COMMON.unpack_from
        bits, plain = _SLICE_OF[self.codec]
        taken = 0
        for packet in came:
            try:
                head, payload = unpack(packet)
            except struct.error:
                break
            if head != wanted or payload & bits != plain or self._size > LARGEST_PICTURE // 2:
                break
            wanted += _NEXT
            taken += 1
            unit = _START + packet[_PLAIN_HEAD:]
            self._size += len(unit)
            self._units.append(unit)
        return taken

    def wholes(self, packets: list[bytes | memoryview], at: int) -> tuple[list[Picture], int]:
        """Return the usual pictures whose packets begin at place `at`, and the place of the packet after them.

        Usual is one slice of no entry point, in fragments that are all there and in order. The packet at the returned
        place must be given to `push`, which would also make the same pictures, at several times the cost.
        """
        if not self._expects_picture:
            return [], at
        is_h265 = self.codec is VideoCodec.H265
        slices, after = _whole_slices(packets, at, is_h265, self._wanted >> 32, self._timestamp, LARGEST_PICTURE)
        if not slices:
            return [], at
        found = []
        for unit, timestamp in slices:
            is_b = not is_h265 and h264.is_bidirectional(unit[_UNIT_AT : _UNIT_AT + _SLICE_HEAD])
            found.append(Picture((unit,), (), timestamp, keyframe=False, damaged=False, bidirectional=is_b))
        self._sequence = (self._sequence or 0) + after - at & 0xFFFF
        self._timestamp = self._ended_at = timestamp
        return found, after

    @property
    def _expects_picture(self) -> bool:
        """True when the last picture is complete, and nothing was lost since."""
        if self._sequence is None:
            return False
        in_picture = self._units or self._fragment is not None or self._lost_slice
        return not (in_picture or self._damaged or self._after_loss or self._marker_lies)

    @property
    def _wanted(self) -> int:
        """The begin of the next packet of the present picture, without a mark, as one number."""
        return self._head << 48 | ((self._sequence or 0) + 1) << 32 | self._timestamp

    def push(self, packet: bytes | memoryview) -> list[Picture]:
        """Return the pictures that this packet completes: mostly none or one; two where a marker was lost."""
        payload_at = payload_offset(packet)
        if payload_at is None:
            self.refused += 1
            return []
        _, second, sequence, timestamp, sender = _HEAD.unpack_from(packet)
        end = len(packet) - (packet[-1] if packet[0] & 0x20 else 0)
        finished: list[Picture] = []
        missing, is_new = self._missing_before(sequence, sender, is_same_picture=timestamp == self._timestamp)
        if missing < 0:
            return []  # late or a duplicate
        lost = missing > 0 or (is_new and timestamp != self._timestamp and not self._expects_picture)
        if lost:
            self.lost += missing
            self._drop_fragment()
            # for a picture that has not begun, `_unit` sees at its first slice whether a part is missing
            self._damaged = self._damaged or self._has_slice or self._lost_slice or bool(self._units)
        self._sequence, self._sender = sequence, sender
        self._head = 0x8000 | second & 0x7F
        if timestamp != self._timestamp:
            if (picture := self._finish()) is not None:
                finished.append(picture)
            self._timestamp = timestamp
        self._after_loss = self._after_loss or lost
        if end <= payload_at:
            return finished
        if self.codec is VideoCodec.H264:
            self._h264(packet, payload_at, end)
        else:
            self._h265(packet, payload_at, end)
        # a mark on a fragment that is not its unit's last lies, or the camera marks no ends: the next packet tells
        is_marked = second & 0x80 and self._fragment is None and not self._marker_lies
        if is_marked and (picture := self._finish()) is not None:
            self._ended_at = timestamp
            finished.append(picture)
        return finished

    def _missing_before(self, sequence: int, sender: int, *, is_same_picture: bool) -> tuple[int, bool]:
        """Return the number of packets missing before one, below 0 for a late or repeated one; and if a count begins.

        Packets come in order. So a number far from the last one, or before it in another picture, is of a new count.
        """
        if self._sequence is None or sequence == self._sequence + 1 & 0xFFFF:
            return 0, False
        behind = self._sequence - sequence & 0xFFFF
        if sender != self._sender or (behind < 0x8000 and not (is_same_picture and behind < MOST_LATE)):
            return 0, True
        return (-1, False) if behind < 0x8000 else (0xFFFF - behind, False)

    def _h264(self, packet: bytes | memoryview, at: int, end: int) -> None:
        kind = packet[at] & 0x1F
        if kind == _FU_A and end - at > 2:
            head = packet[at + 1]
            if head & 0x80:
                self._begin_fragment(_START + bytes((packet[at] & 0xE0 | head & 0x1F,)))
            self._go_on(packet[at + 2 : end], last=bool(head & 0x40), entry=_lost_h264(head & 0x1F))
        elif kind == _STAP_A:
            self._aggregate(packet, at + 1, end)
        elif kind < _STAP_A:
            self._unit(_START + packet[at:end])
        else:
            self.refused += 1

    def _h265(self, packet: bytes | memoryview, at: int, end: int) -> None:
        kind = packet[at] >> 1 & 0x3F
        if kind == _FU and end - at > 3:
            head = packet[at + 2]
            if head & 0x80:
                self._begin_fragment(_START + bytes((packet[at] & 0x81 | (head & 0x3F) << 1, packet[at + 1])))
            self._go_on(packet[at + 3 : end], last=bool(head & 0x40), entry=_lost_h265(head & 0x3F))
        elif kind == _AP:
            self._aggregate(packet, at + 2, end)
        elif kind < _AP:
            self._unit(_START + packet[at:end])
        else:
            self.refused += 1

    def _begin_fragment(self, head: bytes) -> None:
        self._end_fragment()
        self._fragment = [head]
        self._kept = 0
        self._size += len(head)

    def _drop_fragment(self) -> None:
        """Drop a fragmented unit of which a part was lost, and note the damage."""
        if self._fragment is None:
            return
        header = bytes(self._fragment[0][_UNIT_AT : _UNIT_AT + 1])
        if self.codec is VideoCodec.H264:
            self._lose(_lost_h264(h264.nal_type(header)))
        else:
            self._lose(_lost_h265(h265.nal_type(header)))
        self._fragment = None

    def _lose(self, entry: Entry) -> None:
        """Note that a part of a unit is lost, and which entry point with it."""
        self._damaged = self._lost_slice = True
        if entry is not Entry.NONE:
            self._entry = entry

    def _go_on(self, part: bytes | memoryview, *, last: bool, entry: Entry) -> None:
        if self._fragment is None:
            self._lose(entry)  # its beginning was lost
            return
        self._size += len(part)
        if self._size > LARGEST_PICTURE:
            self._drop_fragment()
            return
        self._fragment.append(part)
        if last:
            self._end_fragment()

    def _end_fragment(self) -> None:
        """Take a fragmented unit, of which all parts have come."""
        if self._fragment is not None:
            unit = b"".join(self._fragment)
            self._fragment = None
            self._size -= len(unit)
            self._unit(unit)

    def _aggregate(self, packet: bytes | memoryview, at: int, end: int) -> None:
        while at + 2 < end:
            size = packet[at] << 8 | packet[at + 1]
            at += 2
            if not size or at + size > end:
                self.refused += 1
                return
            self._unit(_START + packet[at : at + size])
            at += size

    def _unit(self, unit: bytes) -> None:
        """Take a whole unit, which stands behind a start code, or the units in it."""
        kind = self._kind_of(unit)
        if kind.is_slice or unit.find(_INNER_START, _UNIT_AT) < 0:
            self._take_unit(unit, kind)  # a slice may hold more slices, which players find by their start codes
            return
        for each in h264.nal_units(unit):
            self._take_unit(_START + each, self._kind_of(_START + each))

    def _kind_of(self, unit: bytes) -> _Kind:
        if self.codec is VideoCodec.H264:
            return _h264_kind(unit)
        return _h265_kind(unit) if len(unit) > _UNIT_AT + 2 else _UNKNOWN

    def _take_unit(self, unit: bytes, kind: _Kind) -> None:
        is_known, is_slice, continues, entry = kind
        if not is_known:
            self.refused += unit[_UNIT_AT] & 0x80 > 0 or kind is _UNKNOWN
            return
        if not is_slice:
            unit = unit.rstrip(b"\x00")
        if not is_slice and (len(self._others) >= _MOST_OTHERS or unit[_UNIT_AT:] in self._others):
            return  # some cameras repeat parameter sets before every slice, which readers take for a new picture
        if continues and not self._has_slice:
            if self._ended_at == self._timestamp:
                self._marker_lies = True  # this camera marks every slice, so only a new timestamp ends its pictures
            if self._marker_lies or self._after_loss:
                self._damaged = True  # without its first slice
        self._size += len(unit)
        if self._size > LARGEST_PICTURE:
            self._damaged = True
            return
        self._units.append(unit)
        self._has_slice = self._has_slice or is_slice
        if entry is not Entry.NONE:
            self._entry = entry
        if not is_slice:
            self._others.append(other := unit[_UNIT_AT:])
            if (recovery := self._recovery_in(other)) is not None:
                self._recovery = recovery

    def _recovery_in(self, unit: bytes) -> int | None:
        """Return the recovery count in an SEI unit; None for another unit, or without a recovery point."""
        if self.codec is VideoCodec.H265:
            return h265.recovery_pictures(unit) if h265.nal_type(unit) == h265.PREFIX_SEI else None
        return h264.recovery_frames(unit) if h264.nal_type(unit) == h264.SEI else None

    def _is_sequence_set(self, unit: bytes) -> bool:
        if self.codec is VideoCodec.H265:
            return h265.nal_type(unit) == h265.SPS
        return h264.nal_type(unit) == h264.SPS

    def _finish(self) -> Picture | None:
        self._end_fragment()
        if not self._has_slice and not self._lost_slice:
            if self._size > LARGEST_PICTURE // 8:
                self._units.clear()
                self._others.clear()
                self._size = 0
            return None
        entry, recovery = self._entry, 0
        if entry is Entry.NONE and self._recovery is not None:
            entry, recovery = Entry.RECOVERY, self._recovery
        # of a lost keyframe, only the parameter sets before it may have come
        lost_keyframe = self._damaged and any(self._is_sequence_set(unit) for unit in self._others)
        picture = Picture(
            units=tuple(self._units),
            others=tuple(self._others),
            timestamp=self._timestamp,
            keyframe=entry is not Entry.NONE or lost_keyframe,
            damaged=self._damaged,
            after_loss=self._after_loss,
            bidirectional=self.codec is VideoCodec.H264 and _is_b(self._units),
            entry=entry,
            recovery=recovery,
        )
        self._units, self._others = [], []
        self._size = 0
        self._has_slice = self._lost_slice = self._damaged = self._after_loss = False
        self._entry, self._recovery = Entry.NONE, None
        return picture


def whole_slices(  # noqa: PLR0917 -- as the compiled function takes them
    packets: list[bytes | memoryview],
    at: int,
    is_h265: bool,  # noqa: FBT001
    follows: int,
    timestamp: int,
    largest: int,
) -> tuple[list[tuple[bytes, int]], int]:
    """Return the slices, each alone in its picture, in fragments from `at` on, and the place after them.

    Each comes with its start code and with its timestamp. `follows` is the begin of the first packet: RTP's first two
    bytes and sequence. `timestamp` is that of the picture before it, and `largest` the greatest size of a slice.
    """
    found: list[tuple[bytes, int]] = []
    unpack, codec, least = _COMMON.unpack_from, VideoCodec.H265 if is_h265 else VideoCodec.H264, _COMMON.size
    bits, middle, begin = _MIDDLE_OF[codec]
    first_bits, first_value, last_bits, last_value = _ENDS_OF[codec]
    wanted, parts, following = -1, list[bytes | memoryview](), _NEXT
    for packet in packets[at:] if at else packets:
        if len(packet) < least:
            break
        head, payload = unpack(packet)
        if head == wanted and payload & bits == middle:
            parts.append(packet[begin:])
            wanted += following
        elif not parts and head >> 32 == follows and payload & first_bits == first_value:
            if head & 0xFFFFFFFF == timestamp or not follows & 0xFFFF:  # no new picture, or the sequence wraps
                break
            parts = [_unit_head(codec, payload), packet[begin:]]
            wanted = head + _NEXT
        elif head == wanted | _MARK and payload & last_bits == last_value and wanted >> 48 == follows >> 16:
            unit = b"".join((*parts, packet[begin:]))
            if len(unit) > largest:
                break
            follows, timestamp = (wanted >> 32) + 1, head & 0xFFFFFFFF
            found.append((unit, timestamp))
            at += len(parts)
            wanted, parts = -1, []
        else:
            break
    return found, at


_whole_slices = compiled(whole_slices)


class _Kind(NamedTuple):
    """The kind of a unit: if it is known, a slice, and a slice that continues its picture; and its entry point."""

    is_known: bool
    is_slice: bool
    continues: bool
    entry: Entry


_UNKNOWN = _Kind(is_known=False, is_slice=False, continues=False, entry=Entry.NONE)


def _h264_kind(unit: bytes) -> _Kind:
    kind = unit[_UNIT_AT] & 0x9F  # with the bit that must be 0
    is_slice = h264.SLICE <= kind <= h264.IDR
    continues = is_slice and len(unit) > _UNIT_AT + 1 and not unit[_UNIT_AT + 1] & 0x80
    is_known = is_slice or kind in (h264.SEI, h264.SPS, h264.PPS)
    return _Kind(is_known, is_slice, continues, Entry.IDR if kind == h264.IDR else Entry.NONE)


def _h265_kind(unit: bytes) -> _Kind:
    kind = unit[_UNIT_AT] >> 1  # with the bit that must be 0
    is_slice = h265.is_slice(kind) and unit[_UNIT_AT + 1] & 7 > 0  # else the begin of a start code
    is_known = is_slice or kind in (h265.VPS, h265.SPS, h265.PPS, h265.PREFIX_SEI, h265.SUFFIX_SEI)
    return _Kind(is_known, is_slice, is_slice and not unit[_UNIT_AT + 2] & 0x80, h265.entry_of(kind))


def _lost_h264(kind: int) -> Entry:
    """Return the entry point that is lost with a fragment of this type. An SPS may hold a keyframe behind it."""
    return Entry.IDR if kind in (h264.IDR, h264.SPS) else Entry.NONE


def _lost_h265(kind: int) -> Entry:
    """Return the same as `_lost_h264`."""
    return Entry.IDR if kind in (h265.VPS, h265.SPS) else h265.entry_of(kind)


def _unit_head(codec: VideoCodec, payload: int) -> bytes:
    """Return the start code and header of the unit whose first fragment has this payload's begin."""
    if codec is VideoCodec.H264:
        return _START + bytes((payload >> 24 & 0xE0 | payload >> 16 & 0x1F,))
    return _START + bytes((payload >> 24 & 0x81 | payload >> 7 & 0x7E, payload >> 16 & 0xFF))


def _is_b(units: list[bytes]) -> bool:
    """Return whether a picture's first slice is a B slice."""
    first = next((unit for unit in units if unit[_UNIT_AT] & 0x1F in (h264.SLICE, h264.IDR)), None)
    if first is None or first[_UNIT_AT] & 0x1F != h264.SLICE:
        return False
    return h264.is_bidirectional(first[_UNIT_AT : _UNIT_AT + _SLICE_HEAD])
