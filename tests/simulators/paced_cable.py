"""A two-wire serial line of a given speed between a master and its units, on pseudo-terminals.

Bytes take the time that they take at that speed, and whoever talks while another does spoils what both say. Units hear
the master alone: what else is on the line, they pass over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from simulation.far_ends.pseudo_terminal import PseudoTerminal

_BITS = 11
_SPOILT = 0x5A
Hear = Callable[[bytes], None]


class PacedCable:
    """The line, in a folder for its ports. `collisions` counts how often two talked at once."""

    def __init__(self, *, folder: Path, baud: int) -> None:
        self._folder = folder
        self._baud = baud
        self._ends: dict[str, Hear] = {}
        self._talker = ""
        self._free_at = 0.0
        self._spoilt = False
        self.collisions = 0

    @contextmanager
    def port(self, name: str, *, unit: int | None = None) -> Iterator[Path]:
        """Plug a pseudo-terminal in, and give its path. The one named "master" is the master's.

        `unit`: it hears only what begins with this address, as a server must that answers for every address.
        """
        terminal = PseudoTerminal(path=self._folder / name, on_bytes=partial(self._talk, name))
        terminal.plug_in()
        self._ends[name] = lambda data: terminal.write(data) if unit in {None, data[0]} else None
        try:
            yield terminal.path
        finally:
            del self._ends[name]
            terminal.unplug()

    def end(self, *, path: Path, on_bytes: Hear) -> CableEnd:
        """Make an end for `ModbusFarEnd.serial`, without a pseudo-terminal of its own."""
        return CableEnd(
            plug=lambda: self._ends.__setitem__(path.name, on_bytes),
            pull=lambda: self._ends.pop(path.name, None),
            talk=partial(self._talk, path.name),
        )

    def _talk(self, name: str, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now >= self._free_at:
            self._spoilt = False
        elif self._talker != name:
            self.collisions += 1
            self._spoilt = True
        self._talker = name
        self._free_at = max(now, self._free_at) + len(data) * _BITS / self._baud
        loop.call_at(self._free_at, self._arrive, name, data)

    def _arrive(self, sender: str, data: bytes) -> None:
        heard = bytes(byte ^ _SPOILT for byte in data) if self._spoilt else data
        for name, hear in tuple(self._ends.items()):
            if (sender == "master") != (name == "master"):
                hear(heard)


class CableEnd:
    """An end of the cable, which `ModbusFarEnd` takes for a pseudo-terminal."""

    def __init__(self, *, plug: Callable[[], object], pull: Callable[[], object], talk: Hear) -> None:
        self.plug_in = plug
        self.unplug = pull
        self.write = talk
