"""Who answers on the line, and with what: the head of each reply, read beside libosdp. Pure.

libosdp says only that a reader is away. The head of its last reply tells a technician why: it is silent, it has another
key, or it cannot or will not speak in a secure channel.

A frame: 0x53, address (0x80 added in replies), length low, length high, control, a security block when control has
0x08 set (its first byte is its length), then the code of the reply. The code is never encrypted.
"""

from __future__ import annotations

from dataclasses import dataclass

_START = 0x53
_IS_REPLY = 0x80
_HAS_SECURITY_BLOCK = 0x08
_LONGEST_HEAD = 64

CRYPTOGRAM = 0x76
"""The reader's proof of its key; when it is the last word, the proof did not hold."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The head of a reply."""

    address: int
    code: int


class ReplyHead:
    """Collects the first bytes after a command until they tell who replied."""

    def __init__(self) -> None:
        self._held = b""
        self._is_told = False

    def expect(self) -> None:
        """A command goes out: what comes from now on is its reply."""
        self._held = b""
        self._is_told = False

    def feed(self, data: bytes) -> Reply | None:
        """The reply as soon as its head is complete, once for each command."""
        if self._is_told:
            return None
        self._held = (self._held + data)[:_LONGEST_HEAD]
        reply = head_of(self._held)
        self._is_told = reply is not None
        return reply


def head_of(data: bytes) -> Reply | None:
    """The first reply's head in these bytes, or None while it is not all there."""
    start = data.find(_START)
    frame = data[start:] if start >= 0 else b""
    if len(frame) < 6 or not frame[1] & _IS_REPLY:
        return None
    at = 5 + (frame[5] if frame[4] & _HAS_SECURITY_BLOCK else 0)
    return Reply(frame[1] & ~_IS_REPLY, frame[at]) if at < len(frame) else None


def why_absent(code: int | None) -> str:
    """Half a sentence for a reader whose last reply had this code, or that did not reply (None)."""
    if code is None:
        return "does not answer"
    if code == CRYPTOGRAM:
        return "answers, but has another key"
    return "answers, but opens no secure channel"
