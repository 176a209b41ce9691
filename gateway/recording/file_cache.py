"""Cache of segments' paths: many viewers ask for the same ones, one after the other."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

_MOST = 1024
_REMEMBERED_SECONDS = 10.0

Place = tuple[int, ...]


class FoundFiles:
    """Files by what asked for them, for ten seconds: a segment never changes, but it is deleted some day."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._found: OrderedDict[Place, tuple[float, Path]] = OrderedDict()

    def get(self, place: Place) -> Path | None:
        """Return the file that was found for `place` lately, or None."""
        until, path = self._found.get(place, (0.0, None))
        return path if self._monotonic() < until else None

    def note(self, place: Place, path: Path) -> Path:
        """Remember, and return, what was found."""
        self._found[place] = (self._monotonic() + _REMEMBERED_SECONDS, path)
        self._found.move_to_end(place)
        if len(self._found) > _MOST:
            self._found.popitem(last=False)
        return path
