"""Received RTP packets: where their payload begins, and the order of those that come as datagrams. Pure."""

from __future__ import annotations

_LEAST_SIZE = 12
"""The length of RTP's fixed header (RFC 3550, 5.1)."""


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
        self._early: dict[int, tuple[bytes, float]] = {}

    def push(self, packet: bytes, now: float) -> list[bytes]:
        """Take a packet that arrived at `now`; return the packets that are next in order, perhaps none."""
        if len(packet) < _LEAST_SIZE:
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
