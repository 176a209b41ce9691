"""Splitting of a stream of bytes into messages: lines of text, or frames. Pure."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

PAUSE_SECONDS = 0.2
"""Seconds of silence after which pending bytes are judged: whether they begin a message, or end one in another way."""
TORN_SECONDS = 5.0
"""Seconds of silence after which the begin of a message is given up.

The time is long because a serial server may hold back the rest of a line for as long as TCP takes to send it again. A
line that was given up never counts as a card, because half a number may be another card's number; nor does its rest,
however late it comes.
"""

SWITCHED_ON: Final = bytes((0x80, 0xC0, 0xE0, 0xFC, 0xFE, 0xFF))
"""Bytes that a line shows when it is switched on: zeros, then ones. No digit is one or two bits away from one."""
NOISE: Final = bytes((*range(0x21), 0x7F)) + SWITCHED_ON
"""Bytes that are no part of a card: control characters, blanks, and those of a line that is switched on."""
_FEWEST_BYTES: Final = 4
"""Fewer bytes may look like seven data bits or UTF-16 by accident."""
LONGEST_LINE = 256
_PAIRS = (b"\r\n", b"\n\r")
_LINE_ENDS = re.compile(rb"[\r\n]+")


class Splitter(ABC):
    """The finder of messages in bytes that come in any pieces.

    Attributes:
        dropped: how much was dropped because it is part of no message.
        last_dropped: the begin of what the last call has dropped.
    """

    def __init__(self, *, torn: bool) -> None:
        """Begin; `torn`: whether the first bytes may be the end of a message whose begin was missed."""
        self._torn = torn
        self._overlong = False
        self._given_up = False
        self.dropped = 0
        self.last_dropped = b""

    @property
    @abstractmethod
    def is_pending(self) -> bool:
        """True when the begin of a message waits for its end."""

    @property
    def is_mid_message(self) -> bool:
        """True when the next bytes may belong to a message that began before."""
        return self.is_pending or self._torn

    @property
    def awaits_rest(self) -> bool:
        """True when the begin of a message was given up, so that its rest may still come and look like a whole one."""
        return self._given_up

    @abstractmethod
    def feed(self, data: bytes) -> tuple[bytes, ...]:
        """Return the messages that these bytes complete."""

    @abstractmethod
    def pause(self) -> tuple[bytes, ...]:
        """Return the messages that end in the pending bytes after all. Call it after `PAUSE_SECONDS` without bytes."""

    @abstractmethod
    def end_of_silence(self) -> tuple[bytes, ...]:
        """Give up the begin of a message; return those hidden in it. Call it after `TORN_SECONDS` without bytes."""


def plain_bytes(data: bytes) -> bytes:
    """Return the characters of a line that was sent with seven data bits, or as UTF-16; other bytes unchanged.

    A port set to eight data bits and no parity shows a sender of seven with its parity bit on top. The line counts as
    such only when the parity of every byte is right, the same for all.
    """
    if len(data) >= _FEWEST_BYTES and max(data) >= 0x80 and len({byte.bit_count() % 2 for byte in data}) == 1:
        return bytes(byte & 0x7F for byte in data)
    if len(data) >= 2 * _FEWEST_BYTES and len(data) % 2 == 0:
        for characters, others in ((data[::2], data[1::2]), (data[1::2], data[::2])):
            if not any(others) and all(characters):
                return characters
    return data


def _never(_: bytes) -> bool:
    return False


class LineSplitter(Splitter):
    """The splitter of a reader's bytes, which come in any pieces, into lines.

    A line is complete only when its terminator has come. Empty lines are ignored. A line longer than `longest` is
    dropped up to its end. Where the terminator is CR and LF, one of them alone ends a line too, once `PAUSE_SECONDS`
    pass behind it; so a single wrong byte inside a line does not make two lines of it. Behind the begin of a line that
    was given up, the next line is dropped, which may be the rest of it.

    Args:
        terminator: the one or two bytes that end a line.
        longest: the greatest length of a line in bytes.
        torn: whether the first bytes may be the end of a line whose begin was missed. Everything up to the first
            terminator is dropped then, unless `TORN_SECONDS` of silence or foreign bytes come first.
        cut: whether the begin of such a line was seen. Then foreign bytes do not show that its end will not come.
        is_foreign: whether bytes before a pause cannot be the begin of a line, such as a serial server's heartbeat.
        is_whole: whether a line shows that it has its begin. Such a line counts where the rest of another is dropped.
    """

    def __init__(
        self,
        *,
        terminator: bytes,
        longest: int = LONGEST_LINE,
        torn: bool = False,
        cut: bool = False,
        is_foreign: Callable[[bytes], bool] = _never,
        is_whole: Callable[[bytes], bool] = _never,
    ) -> None:
        if not terminator:
            raise ValueError("lines need a terminator")
        super().__init__(torn=torn or cut)
        self._terminator = terminator
        self._blank = b"\r\n" if terminator in _PAIRS else b""
        self._longest = longest
        self._is_foreign = is_foreign
        self._is_whole = is_whole
        self._pending = bytearray()
        self._cut = cut

    @property
    def is_pending(self) -> bool:
        """True when the begin of a line waits for its end."""
        return bool(self._pending) or self._overlong

    def feed(self, data: bytes) -> tuple[bytes, ...]:
        """Return the lines that these bytes complete, without their terminators."""
        self._pending += data
        *whole, rest = bytes(self._pending).split(self._terminator)
        if whole and self._is_rest(whole[0]):
            self._overlong = False
            self._drop(whole.pop(0))
        lines = [line for line in (self._judged(line) for line in whole) if line]
        self._pending = bytearray(rest if self._torn else rest.lstrip(self._blank))
        if len(self._pending) > self._longest + len(self._terminator):
            # Keep only as many bytes as may be the begin of a terminator.
            self._overlong = True
            self.last_dropped = bytes(self._pending[: self._longest])
            del self._pending[: len(self._pending) - (len(self._terminator) - 1)]
        return tuple(lines)

    def pause(self) -> tuple[bytes, ...]:
        """Return the lines that end in the pending bytes after all, and drop bytes that are no begin of a line.

        Call it after `PAUSE_SECONDS` without bytes.
        """
        pending = bytes(self._pending)
        if self._overlong or not pending:
            return ()
        lines = self._ended(pending)
        if lines:
            self._pending.clear()
            if self._is_rest(lines[0]):
                self._drop(pending)
                return ()
            return tuple(line for line in (self._judged(line) for line in lines) if line)
        if self._is_foreign(pending):
            self._pending.clear()
            self._drop(pending)
            self._torn = self._cut
        return ()

    def end_of_silence(self) -> tuple[bytes, ...]:
        """Drop the begin of a line after `TORN_SECONDS` of silence. No line is hidden in it.

        What comes next is the begin of a line if the line was torn, but may be the rest of a line that was seen to
        begin on this connection.
        """
        if self.is_pending:
            begin = self.last_dropped if self._overlong else bytes(self._pending)
            self._given_up |= not self._torn and bool(begin.strip(NOISE))
            self._drop(begin)
        self._pending.clear()
        self._overlong = self._torn = self._cut = False
        return ()

    def _is_rest(self, line: bytes) -> bool:
        """Return whether a line, the first that has come to its end, may be the rest of another."""
        was_torn = self._torn or self._given_up
        self._torn = self._cut = self._given_up = False
        return was_torn and (self._overlong or not self._is_whole(line))

    def _ended(self, pending: bytes) -> list[bytes]:
        """Return the lines of pending bytes that end in another way than by the terminator as given; none for others.

        Bytes whose parity shows that they have seven bits, and characters of two bytes, are read as plain characters.
        """
        plain = plain_bytes(pending)
        if not self._blank:
            return plain.split(self._terminator)[:-1] if plain.endswith(self._terminator) else []
        if plain[-1:] not in (b"\r", b"\n"):
            return []
        if len(set(_LINE_ENDS.findall(plain))) > 1:
            return [pending]  # different ends inside one burst: one of them may be a wrong byte
        return _LINE_ENDS.split(plain)[:-1]

    def _judged(self, line: bytes) -> bytes:
        line = line.lstrip(self._blank)
        overlong, self._overlong = self._overlong or len(line) > self._longest, False
        if overlong:
            self._drop(line or self.last_dropped)
            return b""
        return line

    def _drop(self, data: bytes) -> None:
        self.dropped += 1
        self.last_dropped = data[: self._longest]
