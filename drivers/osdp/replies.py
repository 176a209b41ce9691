"""Parsing of replies on an OSDP line, before libosdp sees them. Pure.

libosdp 3.2.9 has three weaknesses. It loses a reply whose first bytes come alone, as they do at 9600 baud. It leaves a
reader alone for five minutes after one wrong bit. And it says only that a reader is away. So replies are put together
and checked here first, and a wrong one is dropped as if the reader were silent. The codes of replies tell a technician
why a reader is away: it is silent, it has another key, or it opens no secure channel.

A frame: 0x53, address (0x80 added in replies), length low, length high, control, a security block when control has
0x08 set (its first byte is its length), then the code of the reply, which is never encrypted, and its data. At the end
stands a CRC of two bytes when control has 0x04 set, otherwise a sum of one byte.
"""

from __future__ import annotations

from binascii import crc_hqx
from dataclasses import dataclass
from enum import StrEnum

_START = 0x53
_IS_REPLY = 0x80
_HAS_SECURITY_BLOCK = 0x08
_HAS_CRC = 0x04
_CRC_START = 0x1D0F
_SHORTEST = 7
_LONGEST = 1440

CRYPTOGRAM = 0x76
"""The code of the reply that proves the reader's key. If no reply follows it, the proof was wrong."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply: its sender, its code and its bytes."""

    address: int
    code: int
    frame: bytes


class ReplyFrames:
    """The parser of the single reply to each command, from bytes in any pieces.

    Noise before the reply and all bytes behind it are dropped. So are wrong replies, those of other readers, and the
    echo of the command, which some two-wire adapters return.
    """

    def __init__(self) -> None:
        self._held = b""
        self._address: int | None = None

    def expect(self, command: bytes) -> int | None:
        """Begin to parse the reply to this command; return the address that it asks, None when it has none."""
        self._held = b""
        head = command[command.find(_START) :]
        self._address = head[1] if len(head) > 1 else None
        return self._address

    def feed(self, data: bytes) -> Reply | None:
        """Take bytes; return the reply once it is complete, None before."""
        if self._address is None:
            return None
        held, at = self._held + data, 0
        while (at := held.find(_START, at)) >= 0:
            length = int.from_bytes(held[at + 2 : at + 4], "little")
            is_short = len(held) < at + 4 or (_SHORTEST <= length <= _LONGEST and len(held) < at + length)
            if is_short:
                self._held = held[at:]
                return None
            reply = reply_of(held[at : at + length]) if _SHORTEST <= length <= _LONGEST else None
            if reply is not None and reply.address == self._address:
                self._held, self._address = b"", None
                return reply
            at += 1
        self._held = b""
        return None


def reply_of(frame: bytes) -> Reply | None:
    """Parse a frame; None when it is no reply, or its check value is wrong."""
    if len(frame) < _SHORTEST or not frame[1] & _IS_REPLY:
        return None
    if frame[4] & _HAS_CRC:
        is_sound = crc_hqx(frame[:-2], _CRC_START) == int.from_bytes(frame[-2:], "little")
    else:
        is_sound = sum(frame) & 0xFF == 0
    if not is_sound:
        return None
    at = 5 + (frame[5] if frame[4] & _HAS_SECURITY_BLOCK else 0)
    return Reply(frame[1] & ~_IS_REPLY, frame[at], frame) if at < len(frame) else None


class Absence(StrEnum):
    """The reason why a reader is away, in words."""

    SILENT = "no reply comes from it"
    OTHER_KEY = "answers, but has another key"
    NO_CHANNEL = "answers, but opens no secure channel"


def why_absent(code: int | None) -> Absence:
    """Return the reason why a reader is away, by the code of its last reply (None when it did not reply)."""
    if code is None:
        return Absence.SILENT
    return Absence.OTHER_KEY if code == CRYPTOGRAM else Absence.NO_CHANNEL
