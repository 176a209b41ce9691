"""Evidence of whether a line returns what is sent on it, as some two-wire adapters do. Pure.

A device acknowledges many writes by repeating the request, so such an answer cannot be told from an echo. A read's
answer never equals its request: when the request comes back, the line echoes. The echo is cut out then, and a write
counts only by what follows it. Until reads have shown that a line does not echo, no command counts by its own echo
either.
"""

from __future__ import annotations

from drivers.bus.transactions import Exchange

_CLEAN_AFTER = 50
"""Answers with no trace of an echo, in a row, after which a line that echoed counts as one that does not.

So many that no series of lost echoes looks like it. Until then a write is not acknowledged, though it may be obeyed.
"""


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
        cuts = self.is_proven or exchange.is_repeated is False or (exchange.is_repeated is True and is_doubted)
        return Hearing(self, exchange, cuts=cuts)

    def came_back(self) -> None:
        """Note that a request came back which no device repeats."""
        self._shown, self._clean = True, 0

    def came_unclear(self) -> None:
        """Note an answer behind what may be the rest of an echo. It proves no echo, and disproves none."""
        self._clean = 0

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
        """Note the answer. It came without an echo if the bytes before it are too few for one and no part of one."""
        if self._exchange.is_repeated is not False or not self._cuts:
            return
        answer = received[: self._exchange.answer_end(received)]
        begin = next((at for at in range(1, len(answer)) if not self._exchange.is_answered_by(answer[at:])), 1) - 1
        if _may_hold_echo(answer[:begin], self._exchange.request):
            self._line.came_unclear()
        else:
            self._line.came_clean()


def _may_hold_echo(before: bytes, request: bytes) -> bool:
    """Return whether these bytes may be the rest of an echo: as long as the request, or with two of its bytes in a row.

    A byte that is repeated is noise as well, so two equal ones are no sign.
    """
    pairs = (request[at : at + 2] for at in range(len(request) - 1) if request[at] != request[at + 1])
    return len(before) >= len(request) or any(pair in before for pair in pairs)
