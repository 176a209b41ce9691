"""Splitting of a stream of bytes into lines, pure, with noise, missing terminators and endless lines."""

from __future__ import annotations

LONGEST_LINE = 256
QUIET_SECONDS = 0.2
"""Silence after which a binary reader's frame that is not whole is given up."""

TORN_SECONDS = 5.0
"""Silence after which the begin of a line is given up.

Long, because a serial server may hold back the rest of a line for as long as TCP takes to send it again; what is given
up is never taken for a card, as half a number is another card's number.
"""


class LineSplitter:
    """The splitter of a reader's bytes into lines.

    Bytes come in any pieces. Empty lines do not count. A line longer than `longest` is dropped whole, up to its end.
    A line is whole when its terminator has come, and never before.

    Args:
        terminator: what ends a line, one or two bytes.
        longest: bytes that a line may have.
        torn: what comes first may be the end of a line whose begin nobody saw: all up to the first terminator is
            dropped, however long that takes.
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
        """True when everything is dropped up to the next terminator, as `torn` says."""
        return self._torn

    @property
    def is_mid_line(self) -> bool:
        """True when what comes next may belong to a line that has begun."""
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
            # Only as much is kept as may be the begin of a terminator.
            self._overlong = True
            del self._pending[: len(rest) - (len(self._terminator) - 1)]
        return tuple(lines)

    def end_of_silence(self) -> bool:
        """Drop the pending begin of a line after `TORN_SECONDS` of silence; return whether there was any."""
        torn = self.is_pending
        self.dropped += torn
        self.forget()
        return torn

    def forget(self) -> None:
        """Drop the pending bytes of a line that hung up: they are no whole line."""
        self._pending.clear()
        self._overlong = False

    def _judged(self, line: bytes) -> bytes:
        overlong, self._overlong = self._overlong or len(line) > self._longest, False
        if overlong:
            self.dropped += 1
            return b""
        return line
