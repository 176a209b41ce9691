"""Received RTP packets: where their payload begins, and the order of those that come as datagrams. Pure."""

from __future__ import annotations

_LEAST_SIZE = 12
"""The length of RTP's fixed header (RFC 3550, 5.1)."""
MOST_LATE = 256
"""A late packet is at most this many numbers behind the newest one; others belong to a new count of the sender."""
_LONGEST_LATE = 900_000
"""The greatest age of a late packet in units of the usual RTP clock: 10 s."""
_MOST_LATE_RUN = 32
"""Packets that follow one another, all late, are of a new count: a network repeats or holds up fewer at a time."""


def payload_offset(packet: bytes | memoryview) -> int | None:
    """Return the offset of an RTP packet's payload; None when it is no valid RTP packet (RFC 3550, 5.1)."""
    if len(packet) < _LEAST_SIZE or packet[0] & 0xC0 != 0x80:
        return None
    at = _LEAST_SIZE + 4 * (packet[0] & 0x0F)
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
        self._newest = b""
        self._late_run = 0
        self._early: dict[int, tuple[bytes, float]] = {}

    def push(self, packet: bytes, now: float) -> list[bytes]:
        """Take a packet that arrived at `now`; return the packets that are next in order, perhaps none."""
        if len(packet) < _LEAST_SIZE:
            return []
        sequence = packet[2] << 8 | packet[3]
        if self._next is None or sequence == self._next:
            self._next, self._newest, self._late_run = sequence + 1 & 0xFFFF, packet, 0
            return [packet, *self._follow()] if self._early else [packet]
        if self._is_new_count(packet, behind=self._next - sequence & 0xFFFF):
            after = self._next
            waiting = sorted(self._early, key=lambda early: early - after & 0xFFFF)
            ready = [self._early.pop(early)[0] for early in waiting]
            self._next, self._newest, self._late_run = sequence + 1 & 0xFFFF, packet, 0
            return [*ready, packet]
        if self._next - sequence & 0xFFFF < 0x8000:
            self._late_run += 1
            return []
        self._late_run = 0
        self._early.setdefault(sequence, (packet, now))
        return self._give_up(now)

    def _is_new_count(self, packet: bytes, *, behind: int) -> bool:
        """Return whether the sender began a new count with this packet: it is `behind` the next one, and not late."""
        if packet[8:12] != self._newest[8:12]:
            return True
        if behind >= 0x8000:
            return False
        age = _timestamp(self._newest) - _timestamp(packet) & 0xFFFFFFFF
        return behind > MOST_LATE or age > _LONGEST_LATE or self._late_run >= _MOST_LATE_RUN

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
            self._newest = self._early.pop(self._next)[0]
            ready.append(self._newest)
            self._next = self._next + 1 & 0xFFFF
        return ready


def _timestamp(packet: bytes) -> int:
    return int.from_bytes(packet[4:8], "big")
