"""Whether pages of a list prove that a record is not on it. Pure.

Pages may lack records, have them twice, begin off their place or state a wrong count, and the list grows meanwhile. So
pages prove something only when they follow one another without a gap, from the newest records (or from some that are
newer than what is looked for) down to one that is known to be older, or to the end.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from gateway.central.client.list_pages import ListPage, Order


class Coverage:
    """Pages in a row, the newest records first. `problem` tells why they prove nothing, "" when they do."""

    def __init__(self, *, limit: int, older: int | None, known: Collection[int] = (), from_top: bool = True) -> None:
        """Begin.

        Args:
            limit: how many records a page is asked to have.
            older: an id that is older than what is looked for; None when none is known.
            known: ids that central is known to have given last; a list that shows none of them is not believed.
            from_top: whether the first page is the list's newest.
        """
        self._limit = limit
        self._older = older
        self._known = frozenset(known)
        self._from_top = from_top
        self._seen: set[int] = set()
        self._lengths: list[int] = []
        self._counts: list[int | None] = []
        self._fault = ""
        self._down = False
        self._ended = False

    @property
    def over(self) -> bool:
        """Return whether no further page is needed."""
        return bool(self._fault) or self._down or self._ended

    def take(self, page: ListPage, *, newest_first: bool = True) -> None:
        """Add the next page. Of a list that has the oldest first, pages come from its end, `newest_first` False."""
        numbers = {number for number, _ in page.records}
        self._counts.append(page.count)
        if len(numbers) < len(page.ids):
            self._fault = "records came twice or without an id"
        elif page.order is Order.NONE:
            self._fault = "records do not come in the order of their ids"
        elif self._lengths and self._overlaps(numbers, newest_first=newest_first):
            self._fault = "pages do not follow one another"
        self._seen |= numbers
        if newest_first or self._lengths:  # the last page of a list is shorter, and here it came first
            self._lengths.append(len(numbers))
        elif numbers:
            self._lengths.append(self._limit)
        lowest = min(numbers, default=None)
        reached = lowest is not None and self._older is not None and lowest <= self._older
        self._down = reached and (self._lengths[-1] >= self._limit or len(self._lengths) > 1)
        self._ended = not numbers or (self._from_top and self._counts[0] == len(self._seen))

    def give_up(self, reason: str) -> None:
        """End it without a proof."""
        self._fault = reason

    @property
    def problem(self) -> str:
        """Why these pages do not prove that something is not there."""
        counts = [count for count in self._counts if count is not None]
        full = self._lengths[:-1] if self._ended else self._lengths
        full = full[:-1] if full and self._ended and not self._lengths[-1] else full
        whole = self._ended and not self._down and self._from_top
        reasons = (
            (bool(self._fault), self._fault),
            (len(counts) < len(self._counts), "no count"),
            (any(later < sooner for sooner, later in pairwise(counts)), "the count became less from page to page"),
            (len(set(full)) > 1, "pages of unequal length"),
            (whole and bool(counts) and counts[0] != len(self._seen), "the count is not what came"),
            (bool(counts) and counts[-1] < len(self._seen), "the count says less than came"),
            (bool(self._known) and not self._known & self._seen, "none of the records that central has taken last"),
        )
        return next((reason for wrong, reason in reasons if wrong), "")

    def _overlaps(self, numbers: set[int], *, newest_first: bool) -> bool:
        """Return whether more comes again than new records at the top have pushed down."""
        if not numbers:
            return False
        before, now = self._counts[-2:]
        grown = max(now - before, 0) if newest_first and now is not None and before is not None else 0
        return sum(number >= min(self._seen) for number in numbers) > grown
