"""Evidence of whether a line returns what is sent on it, as some two-wire adapters do. Pure.

A device acknowledges many writes by repeating the request, so such an answer cannot be told from an echo. A read's
answer never equals its request: when the request comes back, the line echoes. The echo is cut out then, and a write
counts only by what follows it. Until reads have shown that a line does not echo, no command counts by its own echo
either.
"""

from __future__ import annotations

from drivers.bus.transactions import Exchange

_CLEAN_AFTER = 5
"""Answers without an echo, in a row, after which a line that echoed counts as one that does not."""


class LineEcho:
    """The evidence that the answers on one line have given so far."""

    def __init__(self) -> None:
        self._shown: bool | None = None
        self._clean = 0

    @property
    def is_proven(self) -> bool:
        """True when requests come back on the line."""
        return self._shown is True

    def hearing(self, exchange: Exchange[object], *, is_command: bool) -> Hearing:
        """Begin to hear the answer to a request."""
        is_doubted = self._shown is None and is_command and not exchange.tagged  # numbers: Modbus TCP, no two-wire line
        cuts = exchange.is_repeated is False or (exchange.is_repeated is True and (self.is_proven or is_doubted))
        return Hearing(self, exchange, cuts=cuts)

    def came_back(self) -> None:
        """Note that a request came back which no device repeats."""
        self._shown, self._clean = True, 0

    def came_clean(self) -> None:
        """Note an answer that no echo was before."""
        self._clean += 1
        if self._shown is None or self._clean >= _CLEAN_AFTER:
            self._shown = False


class Hearing:
    """The bytes since one request. `cuts`: its echo is looked for, once, and cut out."""

    def __init__(self, line: LineEcho, exchange: Exchange[object], *, cuts: bool) -> None:
        self._line = line
        self._exchange = exchange
        self._cuts = cuts

    def cut(self, received: bytearray) -> None:
        """Cut the echo out of the bytes, if it is whole among them."""
        request = self._exchange.request
        if not self._cuts or (place := received.find(request)) < 0:
            return
        del received[place : place + len(request)]
        self._cuts = False
        if self._exchange.is_repeated is False:
            self._line.came_back()

    def answered(self, received: bytes) -> None:
        """Note the answer. It came without an echo if too few bytes for one were before it."""
        if self._exchange.is_repeated is not False or not self._cuts:
            return
        answer = received[: self._exchange.answer_end(received)]
        if not self._exchange.is_answered_by(answer[len(self._exchange.request) :]):
            self._line.came_clean()
