"""A bus on virtual time, over a converter that passes everything on in order, and answers on late.

Minutes of a line take milliseconds, so that whole ranges of delays can be tried. The bus, its drivers and the device
are the real ones; the transport alone is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import drivers.bus.bus
from drivers.link import Connection, LinkSpec
from simulation.virtual_site.virtual_time import VirtualLoop


class LaggingLine(asyncio.Transport):
    """The converter and the device behind it. Answers never overtake each other, as on every real line.

    Args:
        answers: the device: the answers to what was sent, each as one piece.
        lag: seconds by which answers come late; may be changed at any time.
    """

    def __init__(self, answers: Callable[[bytes], list[bytes]]) -> None:
        super().__init__()
        self.lag: float | Iterator[float] = 0.0
        self.loses = 0
        self.sent_at: list[float] = []
        self._answers = answers
        self._last_at = 0.0
        self._connection: Connection | None = None

    async def open(self, spec: LinkSpec, *, on_change=None, monotonic=None, timeout=3.0) -> Connection:
        """Stands in for `open_link`. What was under way arrives at whoever is connected by then."""
        loop = asyncio.get_running_loop()
        self._connection = Connection(url=spec.url, monotonic=loop.time, on_change=on_change)
        self._connection.opened(self)
        return self._connection

    def write(self, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        self.sent_at.append(loop.time())
        for answer in self._answers(data):
            if self.loses:
                self.loses -= 1
                continue
            lag = self.lag if isinstance(self.lag, int | float) else next(self.lag)
            self._last_at = max(self._last_at + 0.001, loop.time() + 0.004 + lag)
            loop.call_at(self._last_at, self._deliver, answer)

    def hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.ended(None)

    def _deliver(self, answer: bytes) -> None:
        if self._connection is not None:
            self._connection.received(answer)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return False

    def abort(self) -> None:
        self.hang_up()


def on_virtual_time(
    monkeypatch: pytest.MonkeyPatch, line: LaggingLine, scene: Callable[[VirtualLoop], Coroutine[Any, Any, None]]
) -> None:
    """Run the scene; buses that it starts are connected to `line`."""
    monkeypatch.setattr(drivers.bus.bus, "open_link", line.open)
    loop = VirtualLoop()
    try:
        loop.run_until_complete(scene(loop))
    finally:
        loop.close()
