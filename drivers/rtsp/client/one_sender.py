"""The choice of one sender among those whose packets come on one channel. Pure.

Older RTSP servers go on sending a session that was cut off, on the connection that follows it; recorders send several
cameras to one port.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

_Packet = TypeVar("_Packet", bytes, bytes | memoryview)

_SSRC_AT, _SSRC_UNTIL = 8, 12
_GONE_SECONDS = 2.0
_MOST_LEFT = 16


class OneSender:
    """The sender (SSRC) of one medium. A new one is followed at once; the one before it then only if the new one ends.

    Args:
        payload_types: the payload types of the medium. Packets of others are none of its sender's, and are passed on.
    """

    def __init__(self, payload_types: Collection[int]) -> None:
        self._payload_types = frozenset(payload_types)
        self._left: set[bytes] = set()
        self._heard_at = 0.0
        self.ssrc = b""
        """The sender's SSRC; empty before its first packet."""

    def packets(self, came: list[_Packet], now: float) -> list[_Packet]:
        """Return the packets without those of other senders. `now` is when they came, in monotonic seconds."""
        ssrc = self.ssrc
        if (
            not self._left and came[0][_SSRC_AT:_SSRC_UNTIL] == ssrc and came[-1][_SSRC_AT:_SSRC_UNTIL] == ssrc
        ):  # as good as always: the packets between two of one sender are its own
            self._heard_at = now
            return came
        return [packet for packet in came if self._is_own(packet, now)]

    def _is_own(self, packet: bytes | memoryview, now: float) -> bool:
        if len(packet) < _SSRC_UNTIL or packet[1] & 0x7F not in self._payload_types:
            return True
        ssrc = bytes(packet[_SSRC_AT:_SSRC_UNTIL])
        if ssrc != self.ssrc:
            if ssrc in self._left and now - self._heard_at < _GONE_SECONDS:
                return False
            self._left.discard(ssrc)
            if self.ssrc:
                self._left.add(self.ssrc)
            if len(self._left) > _MOST_LEFT:  # it has a new one for each packet
                self._left.clear()
            self.ssrc = ssrc
        self._heard_at = now
        return True
