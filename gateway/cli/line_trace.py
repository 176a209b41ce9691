"""Printing of a line's bytes with their time and direction."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from drivers.bus.wire import Direction

_SIGNS = {Direction.SENT: ("→", "cyan"), Direction.RECEIVED: ("←", "green"), Direction.DROPPED: ("✗", "yellow")}
_ASCII = 0x80


class LineTrace:
    """Printer of the bytes on a line: `→` sent, `←` received, `✗` received but belonging to no request."""

    def __init__(
        self, *, console: Console, characters: bool = False, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Set the time 0 of the trace to now. `characters`: show the bytes as text too."""
        self._characters = characters
        self._console = console
        self._began = monotonic()

    def __call__(self, direction: Direction, data: bytes, at: float) -> None:
        """Print some bytes; `at` is the monotonic time at which they were sent or arrived."""
        sign, colour = _SIGNS[direction]
        line = Text(f"{at - self._began:9.3f} s {sign} ")
        line.append(data.hex(" "), style=colour)
        if self._characters:
            line.append(f"  {_text(data)}")
        self._console.print(line, soft_wrap=True)


def _text(data: bytes) -> str:
    """Return the printable ASCII characters, and a dot for every other byte."""
    return "".join(chr(byte) if chr(byte).isprintable() and byte < _ASCII else "·" for byte in data)
