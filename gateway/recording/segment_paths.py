"""Cache of segments' paths, because many viewers ask for the same segments."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

_MOST = 1024
_REMEMBERED_SECONDS = 10.0

Place = tuple[int, ...]


class SegmentPaths:
    """Paths by the place that names them, for ten seconds: a segment never changes, but may be deleted."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._found: OrderedDict[Place, tuple[float, Path]] = OrderedDict()

    def get(self, place: Place) -> Path | None:
        """Return the path noted for `place` within the last ten seconds, or None."""
        until, path = self._found.get(place, (0.0, None))
        return path if self._monotonic() < until else None

    def note(self, place: Place, path: Path) -> Path:
        """Store the path found for `place`, and return it."""
        self._found[place] = (self._monotonic() + _REMEMBERED_SECONDS, path)
        self._found.move_to_end(place)
        if len(self._found) > _MOST:
            self._found.popitem(last=False)
        return path
