"""A gateway that notes what each card costs it: `python watched_gateway.py NOTES run SITE.toml --data DIR`.

The way of a card begins when its line arrives and ends when the open command has been written; what follows from it
ends when the loop waits again. Of each two cards one is timed, and of the other one all calls of Python functions in
the loop's thread are counted, which takes too long to be timed too. Each card is a line of JSON in NOTES.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from selectors import EpollSelector
from types import FrameType
from typing import Any

from drivers.link import Connection
from drivers.modbus.frames import Table, Write, coil_word, encode_request
from gateway.cli import main

_HEADER = 7
_OPEN = encode_request("tcp", unit=1, tag=1, request=Write(Table.COIL, 0, coil_word(on=True)))[_HEADER:]
_CLOCKS = {"wall": time.perf_counter, "loop": time.thread_time, "process": time.process_time}
"""The clocks of a card: wall time, processor time of the loop's thread, and that of all threads."""


class CardWatch:
    """The watch over one card at a time. A card that comes while another one is on its way spoils that one's note."""

    def __init__(self, notes: Path) -> None:
        self._notes = notes.open("a", encoding="utf-8", buffering=1)
        self._number = 0
        self._is_on = self._is_written = False

    def received(self, data: bytes) -> None:
        """Begin with a card."""
        if not data.endswith(b"\r\n"):
            return
        if self._is_on:
            self._end(spoilt=True)
            return
        self._is_on, self._is_written = True, False
        self._number += 1
        self._calls: list[tuple[float, str]] = []
        self._counts = [0]
        self._times = [self._now()]
        if self._number % 2:
            sys.setprofile(self._called)

    def wrote(self, data: bytes) -> None:
        """Note that the open command is written."""
        if self._is_on and not self._is_written and data[_HEADER:] == _OPEN:
            self._times.append(self._now())
            self._counts.append(len(self._calls))
            self._is_written = True

    def waits(self) -> None:
        """End what follows from a card, as the loop waits for something to happen."""
        if self._is_on and self._is_written:
            self._end()

    def _end(self, *, spoilt: bool = False) -> None:
        sys.setprofile(None)
        self._times.append(self._now())
        self._counts.append(len(self._calls))
        self._is_on = False
        if spoilt:
            return
        if self._calls:
            before, after = self._counts[1], self._counts[2] - self._counts[1]
            calls = [(round((at - self._times[0]["wall"]) * 1e6), name) for at, name in self._calls]
            note: dict[str, object] = {"before": before, "after": after, "calls": calls}
        else:
            note = {
                part: {clock: (until[clock] - since[clock]) * 1e6 for clock in _CLOCKS}
                for part, since, until in zip(("before", "after"), self._times, self._times[1:], strict=False)
            }
        self._notes.write(json.dumps(note) + "\n")

    def _called(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename != __file__:
            name = f"{frame.f_globals.get('__name__')}.{frame.f_code.co_qualname}"
            self._calls.append((time.perf_counter(), name))

    def _now(self) -> dict[str, float]:
        return {name: clock() for name, clock in _CLOCKS.items()}


def watched(watch: CardWatch) -> None:
    """Have the watch told of what comes and goes on lines, and when the loop waits."""

    def telling(method: Callable[..., Any], *, before: Any = None, after: Any = None) -> Callable[..., Any]:
        @wraps(method)
        def told(self: object, *arguments: Any) -> Any:
            if before is not None:
                before(*arguments)
            result = method(self, *arguments)
            if after is not None:
                after(*arguments)
            return result

        return told

    def waits(timeout: float | None = None) -> None:
        if timeout is None or timeout > 0:
            watch.waits()

    Connection.received = telling(Connection.received, before=watch.received)  # type: ignore[method-assign]
    Connection.write = telling(Connection.write, after=watch.wrote)  # type: ignore[method-assign]
    EpollSelector.select = telling(EpollSelector.select, before=waits)  # type: ignore[method-assign]


if __name__ == "__main__":
    watched(CardWatch(Path(sys.argv.pop(1))))
    main()
