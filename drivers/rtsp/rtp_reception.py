"""Reception of one sender's RTP packets: their order, missing packets to request again, and receiver reports.

By RFC 3550, RFC 4585 and RFC 4588. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from drivers.rtsp.rtp_packets import Reordering, payload_offset

_HEAD = struct.Struct("!BBHII")
_WAIT_SECONDS = 0.3
"""The seconds for which later packets wait for a missing one."""
_MOST_WAITING = 1_024
"""Packets that wait, and packets that are missing; a sender with larger gaps is followed without requests."""
_AGAIN_SECONDS = 0.08
_MOST_TIMES = 3
_MOST_ASKED = 256


@dataclass(frozen=True, slots=True)
class ReceptionReport:
    """The figures of a receiver report, without the times of the last sender report (RFC 3550, 6.4.1).

    Attributes:
        fraction: the share of packets lost since the report before, in 1/256.
        lost: the number of packets lost since the begin, at least 0.
        highest: the highest sequence number received, with the count of its wraps above the lower 16 bits.
        jitter: the jitter of arrivals in units of the RTP clock.
    """

    fraction: int
    lost: int
    highest: int
    jitter: int


class RtpReception:
    """The reception of one stream: it sorts and counts packets. A new sender (SSRC) starts it again.

    Args:
        payload_types: the payload types of the stream.
        retransmits: the payload types of retransmitted packets, each with the one that it repeats.
        clock: the rate of the RTP clock.
    """

    _order: Reordering
    _missing: dict[int, tuple[float, float, int]]
    _first: int
    _highest: int
    _received: int
    _expected_before: int
    _received_before: int
    _jitter: float
    _transit: float | None

    def __init__(
        self, *, payload_types: Collection[int], retransmits: Mapping[int, int] | None = None, clock: int = 90_000
    ) -> None:
        self._payload_types = frozenset(payload_types)
        self._retransmits = dict(retransmits or {})
        self._clock = clock
        self._ordered: list[bytes | memoryview] = []
        self.sender = 0
        """The sender's SSRC; 0 before the first packet."""
        self._begin(0)

    def push(self, packet: bytes, now: float) -> None:
        """Take a packet that arrived at `now`, in monotonic seconds. Packets of other payload types are ignored."""
        if len(packet) < _HEAD.size or packet[0] & 0xC0 != 0x80:
            return
        _, second, sequence, timestamp, sender = _HEAD.unpack_from(packet)
        kind = second & 0x7F
        if kind in self._retransmits:
            original = self._unwrapped(packet, self._retransmits[kind])
            if original is None:
                return
            packet, sequence = original, original[2] << 8 | original[3]
            if self._missing.pop(sequence, None) is None:
                return  # the missing packet came meanwhile
        elif kind in self._payload_types:
            if sender != self.sender or self._highest < 0:
                self.sender = sender
                self._begin(sequence)
            self._count(sequence, timestamp, now)
        else:
            return
        self._ordered += self._order.push(packet, now)

    def take(self) -> list[bytes | memoryview]:
        """Return the packets that became next in order since the last call."""
        ready, self._ordered = self._ordered, []
        return ready

    @property
    def has_any(self) -> bool:
        """True when `take` would return packets."""
        return bool(self._ordered)

    def missing(self, now: float) -> list[int]:
        """Return the sequence numbers to request again now.

        Each is requested at once when it is missing, and up to two times more while later packets wait for it.
        """
        if not self._missing:
            return []
        wanted: list[int] = []
        for number, (since, asked_at, times) in list(self._missing.items()):
            if now - since > _WAIT_SECONDS:
                del self._missing[number]
            elif times < _MOST_TIMES and (not times or now - asked_at >= _AGAIN_SECONDS) and len(wanted) < _MOST_ASKED:
                self._missing[number] = (since, now, times + 1)
                wanted.append(number)
        return wanted

    def report(self) -> ReceptionReport | None:
        """Return the figures since the last report; None before the first packet."""
        if self._highest < 0:
            return None
        expected = self._highest - self._first + 1
        lost = max(0, expected - self._received)
        interval, received = expected - self._expected_before, self._received - self._received_before
        self._expected_before, self._received_before = expected, self._received
        missed = interval - received
        fraction = min(255, (missed << 8) // interval) if interval > 0 and missed > 0 else 0
        return ReceptionReport(fraction, min(lost, 0x7FFFFF), self._highest & 0xFFFFFFFF, int(self._jitter))

    def _begin(self, sequence: int) -> None:
        self._order = Reordering(most=_MOST_WAITING, seconds=_WAIT_SECONDS)
        self._missing = {}
        self._first = sequence
        self._highest = -1
        self._received = self._expected_before = self._received_before = 0
        self._jitter = 0.0
        self._transit = None

    def _count(self, sequence: int, timestamp: int, now: float) -> None:
        self._received += 1
        if self._highest < 0:
            self._highest = sequence
        else:
            ahead = sequence - self._highest & 0xFFFF
            if ahead >= 0x8000 or not ahead:
                self._missing.pop(sequence, None)
            else:
                if len(self._missing) + ahead <= _MOST_WAITING:
                    for step in range(1, ahead):
                        self._missing[self._highest + step & 0xFFFF] = (now, 0.0, 0)
                else:
                    self._missing.clear()
                self._highest += ahead
        transit = now * self._clock - timestamp
        if self._transit is not None:
            apart = abs((transit - self._transit + 0x80000000) % 0x100000000 - 0x80000000)
            self._jitter += (apart - self._jitter) / 16
        self._transit = transit

    def _unwrapped(self, packet: bytes, kind: int) -> bytes | None:
        """Return the original of a retransmitted packet, whose number stands before the payload (RFC 4588, 4).

        None when it is cut short, or no packet of the sender came before.
        """
        at = payload_offset(packet)
        end = len(packet) - (packet[-1] if packet[0] & 0x20 else 0)
        if at is None or end < at + 2 or not self.sender:
            return None
        head = bytes((0x80, packet[1] & 0x80 | kind)) + packet[at : at + 2] + packet[4:8]
        return head + self.sender.to_bytes(4, "big") + packet[at + 2 : end]
