"""Splitting of a stream of bytes into lines, in spite of noise, missing terminators and endless lines. Pure."""

from __future__ import annotations

LONGEST_LINE = 256
TORN_SECONDS = 5.0
"""Seconds of silence after which the begin of a line is given up.

The time is long because a serial server may hold back the rest of a line for as long as TCP takes to send it again. A
line that was given up never counts as a card, because half a number may be another card's number.
"""


class LineSplitter:
    """The splitter of a reader's bytes, which come in any pieces, into lines.

    A line is complete only when its terminator has come. Empty lines are ignored. A line longer than `longest` is
    dropped up to its end.

    Args:
        terminator: the one or two bytes that end a line.
        longest: the greatest length of a line in bytes.
        torn: whether the first bytes may be the end of a line whose begin was missed. Everything up to the first
            terminator is dropped then, however long that takes.
    """

    def __init__(self, *, terminator: bytes, longest: int = LONGEST_LINE, torn: bool = False) -> None:
        if not terminator:
            raise ValueError("lines need a terminator")
        self._terminator = terminator
        self._longest = longest
        self._pending = bytearray()
        self._overlong = False
        self._torn = torn
        self.dropped = 0

    @property
    def is_torn(self) -> bool:
        """True while everything up to the first terminator is dropped, because of `torn`."""
        return self._torn

    @property
    def is_mid_line(self) -> bool:
        """True when the next bytes may belong to a line that began before."""
        return self.is_pending or self._torn

    @property
    def is_pending(self) -> bool:
        """True when the begin of a line waits for its end."""
        return bool(self._pending) or self._overlong

    def feed(self, data: bytes) -> tuple[bytes, ...]:
        """Return the lines that these bytes complete, without their terminators."""
        self._pending += data
        *whole, rest = bytes(self._pending).split(self._terminator)
        if self._torn and whole:
            self._torn = self._overlong = False
            self.dropped += 1
            del whole[0]
        lines = [line for line in (self._judged(line) for line in whole) if line]
        self._pending = bytearray(rest)
        if len(rest) > self._longest + len(self._terminator):
            # Keep only as many bytes as may be the begin of a terminator.
            self._overlong = True
            del self._pending[: len(rest) - (len(self._terminator) - 1)]
        return tuple(lines)

    def end_of_silence(self) -> bool:
        """Drop the begin of a line after a silence; return whether there was one. Call it after `TORN_SECONDS`."""
        torn = self.is_pending
        self.dropped += torn
        self.forget()
        return torn

    def forget(self) -> None:
        """Drop the pending bytes, which are no whole line, because the connection hung up."""
        self._pending.clear()
        self._overlong = False

    def _judged(self, line: bytes) -> bytes:
        overlong, self._overlong = self._overlong or len(line) > self._longest, False
        if overlong:
            self.dropped += 1
            return b""
        return line
