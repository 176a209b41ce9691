"""The RTP packets of one outgoing stream of pictures, and those to send again (RFC 3550, RFC 4585, RFC 4588). Pure."""

from __future__ import annotations

import secrets
import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

_HEADER = struct.Struct("!BBHII")
_EXTENSIONS = struct.Struct("!HH")
_SEQUENCE = struct.Struct("!H")
_VERSION, _EXTENDED = 0x80, 0x10
_MARKER = 0x80
_MOST_KEPT = 1_024
"""Packets kept to be sent again: two seconds of 5 Mbit/s. The viewers of a picture share its payloads."""
_MOST_AGAIN = 256
_MOST_OF_A_RUN = 32
"""43 kB, a fifth of what receive buffers hold by default."""


@dataclass(frozen=True, slots=True)
class PicturePayloads:
    """The payloads of a picture's packets, which its viewers share.

    Attributes:
        payloads: the payloads.
        runs: where runs of equal payloads, whose last may be smaller, begin and end.
        octets: their size together.
    """

    payloads: Sequence[bytes]
    runs: Sequence[tuple[int, int]]
    octets: int

    @classmethod
    def of(cls, payloads: Sequence[bytes]) -> Self:
        """Divide a picture's payloads into runs of at most 32."""
        runs: list[tuple[int, int]] = []
        begin = 0
        for at in range(1, len(payloads) + 1):
            if (
                at == len(payloads)
                or len(payloads[at]) > len(payloads[begin])
                or len(payloads[at - 1]) < len(payloads[begin])
                or at - begin == _MOST_OF_A_RUN
            ):
                runs.append((begin, at))
                begin = at
        return cls(payloads, runs, sum(map(len, payloads)))


@dataclass(frozen=True, slots=True)
class SentPicture:
    """A picture with its numbers: the first packet's sequence number, and the RTP time."""

    first: int
    timestamp: int
    payloads: Sequence[bytes]


class OutgoingRtp:
    """The maker of one stream's packets.

    Args:
        ssrc: the stream's identifier.
        payload_type: the payload type of the stream.
        resent_ssrc: the identifier of the stream of retransmissions.
        resent_payload_type: its payload type; None: packets are sent again as they were.
        extensions: the profile and the value of each packet's header extensions (RFC 8285).
    """

    def __init__(
        self,
        *,
        ssrc: int,
        payload_type: int,
        resent_ssrc: int,
        resent_payload_type: int | None,
        extensions: tuple[int, bytes] = (0, b""),
    ) -> None:
        self._ssrc = ssrc
        self._payload_type = payload_type
        self._resent_ssrc = resent_ssrc
        self._resent_payload_type = resent_payload_type
        profile, value = extensions
        self._flags = _VERSION | _EXTENDED if value else _VERSION
        self._extensions = _EXTENSIONS.pack(profile, len(value) // 4) + value if value else b""
        self._origin = secrets.randbits(32)
        # far from a wrap, which a receiver that misses the first packets would not notice (RFC 3711, 3.3.1)
        self._next, self._next_resent = secrets.randbits(15), secrets.randbits(15)
        self._pictures: deque[SentPicture] = deque()
        self._kept = 0
        self.timestamp = 0
        """The RTP time of the newest picture."""
        self.packets_sent = self.octets_sent = 0
        """The number of packets, and of their payloads' bytes; those that are sent again do not count."""

    def number(self, picture: PicturePayloads, *, time: int) -> SentPicture:
        """Give a picture its numbers, and keep it to be sent again. `time` is in ticks, counted from any origin."""
        self.timestamp = (self._origin + time) & 0xFFFFFFFF
        sent = SentPicture(self._next, self.timestamp, picture.payloads)
        count = len(picture.payloads)
        self._next = (self._next + count) & 0xFFFF
        self._pictures.append(sent)
        self._kept += count
        self.packets_sent += count
        self.octets_sent += picture.octets
        while self._kept - len(self._pictures[0].payloads) >= _MOST_KEPT:
            self._kept -= len(self._pictures.popleft().payloads)
        return sent

    def packets(self, sent: SentPicture, begin: int, end: int) -> list[bytes]:
        """Return packets of a picture. The last one of the picture is marked."""
        pack, flags, extensions, ssrc, kind = (
            _HEADER.pack,
            self._flags,
            self._extensions,
            self._ssrc,
            self._payload_type,
        )
        first, timestamp, last = sent.first, sent.timestamp, len(sent.payloads) - 1
        return [
            pack(flags, kind if at < last else kind | _MARKER, (first + at) & 0xFFFF, timestamp, ssrc)
            + extensions
            + payload
            for at, payload in enumerate(sent.payloads[begin:end], begin)
        ]

    def again(self, lost: Sequence[int]) -> list[bytes]:
        """Return packets that a receiver lost, as far as they are kept; at most 256."""
        found: list[bytes] = []
        for number in lost[:_MOST_AGAIN]:
            for sent in reversed(self._pictures):
                at = (number - sent.first) & 0xFFFF
                if at < len(sent.payloads):
                    found.append(self._packet_again(sent, at, number))
                    break
        return found

    def _packet_again(self, sent: SentPicture, at: int, number: int) -> bytes:
        if self._resent_payload_type is None:
            return self.packets(sent, at, at + 1)[0]
        kind = self._resent_payload_type | (_MARKER if at == len(sent.payloads) - 1 else 0)
        sequence, self._next_resent = self._next_resent, (self._next_resent + 1) & 0xFFFF
        head = _HEADER.pack(self._flags, kind, sequence, sent.timestamp, self._resent_ssrc)
        return head + self._extensions + _SEQUENCE.pack(number) + sent.payloads[at]
