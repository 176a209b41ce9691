"""One sender's RTP packets as they come from a network: their order, what is to be asked for again, what a receiver's
report says of them (RFC 3550, RFC 4585, RFC 4588). Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from drivers.rtsp.depacketizer import Reordering, payload_offset

_HEAD = struct.Struct("!BBHII")
_WAIT_SECONDS = 0.3
"""So long those after a missing packet wait for it."""
_MOST_WAITING = 1_024
_AGAIN_SECONDS = 0.08
_MOST_TIMES = 3
_MOST_ASKED = 256


@dataclass(frozen=True, slots=True)
class ReceptionReport:
    """Figures of a receiver's report, without the times of the sender's report (RFC 3550, 6.4.1).

    Attributes:
        fraction: lost since the report before, in 256ths.
        lost: packets that never came, at least 0.
        highest: sequence number, with the number of its cycles above its 16 bits.
        jitter: in units of the RTP clock.
    """

    fraction: int
    lost: int
    highest: int
    jitter: int


class RtpReception:
    """Reception of one stream, in order and counted. A new sender (SSRC) starts it again.

    Args:
        payload_types: of the stream.
        retransmits: payload types that repeat packets, each with the one it repeats.
        clock: of RTP's timestamps, a second.
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
        """The SSRC; 0 while nothing has come."""
        self._begin(0)

    def push(self, packet: bytes, now: float) -> None:
        """Take a packet that came at the monotonic second `now`."""
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
                return  # it came by itself meanwhile
        elif kind in self._payload_types:
            if sender != self.sender or self._highest < 0:
                self.sender = sender
                self._begin(sequence)
            self._count(sequence, timestamp, now)
        else:
            return
        self._ordered += self._order.push(packet, now)

    def take(self) -> list[bytes | memoryview]:
        """Take the packets that are in order since the last call."""
        ready, self._ordered = self._ordered, []
        return ready

    @property
    def has_any(self) -> bool:
        """Return whether `take` has any packet."""
        return bool(self._ordered)

    def missing(self, now: float) -> list[int]:
        """List sequence numbers to ask for again: each at once, and a few times more while it can still be of use."""
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
        """Make the report on what came since the last one; None while nothing has come."""
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
                if ahead <= _MOST_WAITING:
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
        """Unwrap a retransmitted packet: its number stands before its payload (RFC 4588, 4)."""
        at = payload_offset(packet)
        end = len(packet) - (packet[-1] if packet[0] & 0x20 else 0)
        if at is None or end < at + 2 or not self.sender:
            return None
        head = bytes((0x80, packet[1] & 0x80 | kind)) + packet[at : at + 2] + packet[4:8]
        return head + self.sender.to_bytes(4, "big") + packet[at + 2 : end]
