"""Cards that a page should list by their ids, and does not. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise


class PageGaps:
    """Follows a walk over a list in the order of its ids, upwards or downwards.

    Such a list shows with each page which cards it lacks. A list in any other order shows that only at its end.
    """

    def __init__(self, known: Sequence[int]) -> None:
        """`known`: the ids that the site has, ascending."""
        self._known = known
        self._edge: int | None = None
        self._falls: bool | None = None
        self._in_order = True

    def lacking(self, ids: Sequence[int]) -> frozenset[int]:
        """Return the known ids between the page before and the end of this one that it does not list."""
        if not ids or not self._follows(ids):
            return frozenset()
        before, self._edge = self._edge, ids[-1]
        known = self._known
        if self._falls:
            first = bisect_right(known, ids[-1])
            last = len(known) if before is None else bisect_left(known, before)
        else:
            first = 0 if before is None else bisect_right(known, before)
            last = bisect_left(known, ids[-1])
        return frozenset(known[first:last]).difference(ids)

    def _follows(self, ids: Sequence[int]) -> bool:
        """Note the order of a page; return whether the walk is in order up to its end."""
        steps = list(pairwise(ids if self._edge is None else (self._edge, *ids)))
        if self._falls is None and steps:
            self._falls = steps[0][0] > steps[0][1]
        self._in_order = (
            self._in_order
            and bool(steps)
            and all((early > late) is self._falls and early != late for early, late in steps)
        )
        return self._in_order
