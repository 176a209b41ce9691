"""Conversion of RTP packets to pictures: H.264 (RFC 6184) and H.265 (RFC 7798). Pure.

Lost, repeated and invalid packets are expected.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from drivers.rtsp import h264, h265
from drivers.rtsp.frames import Entry, VideoCodec

LARGEST_PICTURE = 8_000_000
"""The greatest size of a picture in bytes; a larger one is dropped."""
_HEAD = struct.Struct("!BBHII")
_MIDDLE = struct.Struct("!HHI4xI")
"""The begin of a packet with a fragment: RTP's first two bytes, sequence, timestamp, (SSRC,) the fragment's header."""
_MIDDLE_OF = {VideoCodec.H264: (0x1FC00000, 0x1C000000, 14), VideoCodec.H265: (0x7E00C000, 0x62000000, 15)}
"""For each codec: the mask and the value that show a middle fragment in its header, and the offset of its payload."""
_STAP_A, _FU_A = 24, 28
_AP, _FU = 48, 49
_START = h264.START_CODE


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture as its packets carried it.

    Attributes:
        units: its NAL units, without start codes.
        timestamp: the RTP timestamp, 32 bits.
        keyframe: whether decoding can start here.
        entry: the kind of entry point of a keyframe.
        recovery: the number of pictures from a recovery point to the first complete one.
        damaged: whether a part of it was lost; it may have no units then.
        after_loss: whether packets were lost just before it, perhaps whole pictures.
        bidirectional: whether it is shown before a picture that was decoded earlier; only known for H.264.
    """

    units: tuple[bytes, ...]
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
        return _START + _START.join(self.units)


class Depacketizer:
    """The maker of one stream's pictures from its packets, which must come in order.

    A picture ends with a packet that has the marker bit, or where the timestamp changes. Parameter sets that come
    alone belong to the picture after them.
    """

    def __init__(self, *, codec: VideoCodec) -> None:
        self.codec = codec
        self._units: list[bytes] = []
        self._fragment: list[bytes] | None = None
        self._size = 0
        self._timestamp = -1
        self._damaged = False
        self._after_loss = False
        self._has_slice = False
        self._lost_slice = False
        self._entry = Entry.NONE
        self._recovery: int | None = None
        self._sequence: int | None = None
        self._head = 0
        self._ended_at = -1
        self._marker_lies = False
        self.lost = 0
        """The number of packets that never came."""
        self.refused = 0
        """The number of invalid packets and units."""

    def take(self, packets: Sequence[bytes | memoryview], at: int) -> int:
        """Take middle fragments of the present unit from place `at` on; return the place of the first other packet.

        That packet must be given to `push`. Most packets are middle fragments, and they make most of the cost of a
        camera, so this method checks no more than it must.
        """
        fragment, before = self._fragment, self._sequence
        if fragment is None or before is None:
            return at
        timestamp, wanted, unpack = self._timestamp, self._head, _MIDDLE.unpack_from
        bits, middle, begin = _MIDDLE_OF[self.codec]
        parts: list[bytes | memoryview] = []
        for packet in packets[at:] if at else packets:
            try:
                head, sequence, time, kind = unpack(packet)
            except struct.error:
                break
            if head != wanted or sequence != before + 1 & 0xFFFF or time != timestamp or kind & bits != middle:
                break
            before = sequence
            parts.append(packet[begin:])
        if parts:
            part = b"".join(parts)
            fragment.append(part)
            self._sequence = before
            self._size += len(part)
            if self._size > LARGEST_PICTURE:
                self._fragment = None
                self._damaged = True
        return at + len(parts)

    def push(self, packet: bytes | memoryview) -> list[Picture]:
        """Return the pictures that this packet completes: mostly none or one; two where a marker was lost."""
        payload_at = payload_offset(packet)
        if payload_at is None:
            self.refused += 1
            return []
        _, second, sequence, timestamp, _ = _HEAD.unpack_from(packet)
        end = len(packet) - (packet[-1] if packet[0] & 0x20 else 0)
        finished: list[Picture] = []
        missing = 0
        if self._sequence is not None and sequence != self._sequence + 1 & 0xFFFF:
            missing = sequence - self._sequence - 1 & 0xFFFF
            if missing >= 0x8000:
                return []  # late or a duplicate
            self.lost += missing
            self._drop_fragment()
            # for a picture that has not begun, `_unit` sees at its first slice whether a part is missing
            self._damaged = self._damaged or self._has_slice or self._lost_slice or bool(self._units)
        self._sequence = sequence
        self._head = 0x8000 | second & 0x7F
        if timestamp != self._timestamp:
            if (picture := self._finish()) is not None:
                finished.append(picture)
            self._timestamp = timestamp
        self._after_loss = self._after_loss or missing > 0
        if end <= payload_at:
            return finished
        if self.codec is VideoCodec.H264:
            self._h264(packet, payload_at, end)
        else:
            self._h265(packet, payload_at, end)
        if second & 0x80 and not self._marker_lies and (picture := self._finish()) is not None:
            self._ended_at = timestamp
            finished.append(picture)
        return finished

    def _h264(self, packet: bytes | memoryview, at: int, end: int) -> None:
        kind = packet[at] & 0x1F
        if kind == _FU_A and end - at > 2:
            head = packet[at + 1]
            if head & 0x80:
                self._begin_fragment(bytes((packet[at] & 0xE0 | head & 0x1F,)))
            entry = Entry.IDR if head & 0x1F == h264.IDR else Entry.NONE
            self._go_on(packet[at + 2 : end], last=bool(head & 0x40), entry=entry)
        elif kind == _STAP_A:
            self._aggregate(packet, at + 1, end)
        elif 1 <= kind <= 23:
            self._unit(bytes(packet[at:end]))
        else:
            self.refused += 1

    def _h265(self, packet: bytes | memoryview, at: int, end: int) -> None:
        kind = packet[at] >> 1 & 0x3F
        if kind == _FU and end - at > 3:
            head = packet[at + 2]
            if head & 0x80:
                self._begin_fragment(bytes((packet[at] & 0x81 | (head & 0x3F) << 1, packet[at + 1])))
            self._go_on(packet[at + 3 : end], last=bool(head & 0x40), entry=h265.entry_of(head & 0x3F))
        elif kind == _AP:
            self._aggregate(packet, at + 2, end)
        elif kind < _AP:
            self._unit(bytes(packet[at:end]))
        else:
            self.refused += 1

    def _begin_fragment(self, head: bytes) -> None:
        self._drop_fragment()
        self._fragment = [head]

    def _drop_fragment(self) -> None:
        """Drop a fragmented unit whose end never came, and note the damage."""
        if self._fragment is not None:
            self._fragment = None
            self._damaged = self._lost_slice = True

    def _go_on(self, part: bytes | memoryview, *, last: bool, entry: Entry) -> None:
        if entry is not Entry.NONE:
            self._entry = entry
        if self._fragment is None:
            self._damaged = self._lost_slice = True  # its beginning was lost
            return
        self._size += len(part)
        if self._size > LARGEST_PICTURE:
            self._fragment = None
            self._damaged = True
            return
        self._fragment.append(bytes(part))
        if last:
            unit = b"".join(self._fragment)
            self._fragment = None
            self._size -= len(unit) - 1
            self._unit(unit)

    def _aggregate(self, packet: bytes | memoryview, at: int, end: int) -> None:
        while at + 2 < end:
            size = packet[at] << 8 | packet[at + 1]
            at += 2
            if not size or at + size > end:
                self.refused += 1
                return
            self._unit(bytes(packet[at : at + size]))
            at += size

    def _unit(self, unit: bytes) -> None:
        if unit[0] & 0x80 or (self.codec is VideoCodec.H265 and len(unit) < 3):
            self.refused += 1
            return
        if self.codec is VideoCodec.H264:
            kind = unit[0] & 0x1F
            is_slice = h264.SLICE <= kind <= h264.IDR
            entry = Entry.IDR if kind == h264.IDR else Entry.NONE
            known = is_slice or kind in (h264.SEI, h264.SPS, h264.PPS)
            continues = is_slice and len(unit) > 1 and not unit[1] & 0x80
        else:
            kind = h265.nal_type(unit)
            is_slice = h265.is_slice(kind)
            entry = h265.entry_of(kind)
            known = is_slice or kind in (h265.VPS, h265.SPS, h265.PPS, h265.PREFIX_SEI, h265.SUFFIX_SEI)
            continues = is_slice and not unit[2] & 0x80
        if not known or (not is_slice and unit in self._units):
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
        elif not is_slice and (recovery := self._recovery_in(unit)) is not None:
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
        self._drop_fragment()
        if not self._has_slice and not self._lost_slice:
            if self._size > LARGEST_PICTURE // 8:
                self._units.clear()
                self._size = 0
            return None
        entry, recovery = self._entry, 0
        if entry is Entry.NONE and self._recovery is not None:
            entry, recovery = Entry.RECOVERY, self._recovery
        # of a lost keyframe, only the parameter sets before it may have come
        lost_keyframe = self._damaged and any(self._is_sequence_set(unit) for unit in self._units)
        picture = Picture(
            units=tuple(self._units),
            timestamp=self._timestamp,
            keyframe=entry is not Entry.NONE or lost_keyframe,
            damaged=self._damaged,
            after_loss=self._after_loss,
            bidirectional=self.codec is VideoCodec.H264 and _is_b(self._units),
            entry=entry,
            recovery=recovery,
        )
        self._units = []
        self._size = 0
        self._has_slice = self._lost_slice = self._damaged = self._after_loss = False
        self._entry, self._recovery = Entry.NONE, None
        return picture


def _is_b(units: list[bytes]) -> bool:
    """Return whether a picture's first slice is a B slice."""
    first = next((unit for unit in units if unit[0] & 0x1F in (h264.SLICE, h264.IDR)), b"")
    return bool(first) and first[0] & 0x1F == h264.SLICE and h264.is_bidirectional(first)


def payload_offset(packet: bytes | memoryview) -> int | None:
    """Return the offset of an RTP packet's payload; None when it is no valid RTP packet (RFC 3550, 5.1)."""
    if len(packet) < _HEAD.size or packet[0] & 0xC0 != 0x80:
        return None
    at = _HEAD.size + 4 * (packet[0] & 0x0F)
    if packet[0] & 0x10:
        if len(packet) < at + 4:
            return None
        at += 4 + 4 * (packet[at + 2] << 8 | packet[at + 3])
    if packet[0] & 0x20 and (len(packet) < at or len(packet) - packet[-1] < at):
        return None
    return at if at <= len(packet) else None


class Reordering:
    """The sorter of datagrams into the order in which they were sent.

    An early packet waits for those before it, for at most `seconds` and while at most `most` packets wait.
    """

    def __init__(self, *, most: int = 128, seconds: float = 0.15) -> None:
        self._most = most
        self._seconds = seconds
        self._next: int | None = None
        self._early: dict[int, tuple[bytes, float]] = {}

    def push(self, packet: bytes, now: float) -> list[bytes]:
        """Take a packet that arrived at `now`; return the packets that are next in order, perhaps none."""
        if len(packet) < _HEAD.size:
            return []
        sequence = packet[2] << 8 | packet[3]
        if self._next is None or sequence == self._next:
            self._next = sequence + 1 & 0xFFFF
            return [packet, *self._follow()] if self._early else [packet]
        ahead = sequence - self._next & 0xFFFF
        if ahead >= 0x8000:
            if ahead < 0xFF00:  # too far behind to be late: the sender began a new count
                self._next, ready = sequence + 1 & 0xFFFF, [packet]
                self._early.clear()
                return ready
            return []
        self._early.setdefault(sequence, (packet, now))
        return self._give_up(now)

    def _give_up(self, now: float) -> list[bytes]:
        """Skip missing packets when too many wait or they have waited too long; return those that follow."""
        if self._next is None or not self._early:
            return []
        waited = now - next(iter(self._early.values()))[1]
        if len(self._early) < self._most and waited < self._seconds:
            return []
        after = self._next
        self._next = min(self._early, key=lambda sequence: sequence - after & 0xFFFF)
        return self._follow()

    def _follow(self) -> list[bytes]:
        ready = []
        while self._next in self._early:
            ready.append(self._early.pop(self._next)[0])
            self._next = self._next + 1 & 0xFFFF
        return ready
