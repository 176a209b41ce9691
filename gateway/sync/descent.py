"""Whether a walk over one of central's lists proves that a record is not there. Pure.

Pages may lack records, have them twice, begin off their place or state a wrong count, and the list changes meanwhile.
So only a clean walk proves anything: one over the whole list, with one count on all pages that is right; or, where the
newest records come first, one down to a record that is known to be older than what is looked for.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from gateway.sync.answers import JsonObject
from gateway.sync.field_map import record_id
from gateway.sync.sweep import Page, Tally


class Descent:
    """One walk. Hand it page after page until it is `over`; `problem` is then why it proves nothing, "" if it does."""

    def __init__(self, resource: str, *, limit: int, older: int | None, known: Collection[int] = ()) -> None:
        """What is asked for.

        Args:
            resource: under which an answer has the records.
            limit: how many records a page is asked to have.
            older: an id that is older than what is looked for, as all below it are; None when none is known.
            known: ids that the list should show; one that shows none of them shows not all.
        """
        self._resource = resource
        self._limit = limit
        self._older = older
        self._known = frozenset(known)
        self._tally = Tally(resource)
        self._lengths: list[int] = []
        self._counts: list[int | None] = []
        self._lowest: int | None = None
        self._newest_first = older is not None
        self._fault = ""
        self.over = False

    def take(self, answer: JsonObject) -> Page:
        """The records of the next page that were not there before. Raises CentralFailed when it holds no list."""
        page = self._tally.take(answer)
        records = answer[self._resource]
        found = [record_id(item) for item in records if isinstance(item, dict)] if isinstance(records, list) else []
        ids = [number for number in found if number is not None]
        self._lengths.append(len(ids))
        self._counts.append(self._tally.last_count)
        if len(set(ids)) < len(ids):
            self._fault = "records came twice"
        elif self._newest_first:
            self._follow(ids)
        self._lowest = min([*ids, *([] if self._lowest is None else [self._lowest])], default=None)
        self._reached = self._newest_first and self._is_down()
        self.over = bool(self._fault) or not page or self._reached
        return page

    def give_up(self, reason: str) -> None:
        """It does not come to an end."""
        self._fault = reason

    @property
    def problem(self) -> str:
        """Why this walk does not prove that something is not there."""
        if self._fault:
            return f"{self._resource}: {self._fault}"
        if self._known and not self._known & self._tally.ids:
            return f"{self._resource}: it shows none of the records that central has taken last"
        return self._uneven() if self._reached and not self._ended() else self._tally.problem

    def _follow(self, ids: list[int]) -> None:
        """New records at the top push as many others onto the next page; nothing else may come again."""
        falls = all(one > other for one, other in pairwise(ids))
        if self._lowest is None:
            self._newest_first = falls
            return
        before, now = self._counts[-2:]
        grown = max(now - before, 0) if now is not None and before is not None else 0
        if not falls or sum(number >= self._lowest for number in ids) > grown:
            self._fault = "pages do not follow one another"

    def _is_down(self) -> bool:
        """Whether all that is newer has come. How long full pages are, a short one tells only beside another."""
        if self._older is None or self._lowest is None or self._lowest > self._older:
            return False
        return self._lengths[-1] >= self._limit or len(self._lengths) > 1

    def _ended(self) -> bool:
        """Whether the last page is so short that it must be the list's last."""
        return self._lengths[-1] < self._lengths[0]

    def _uneven(self) -> str:
        """Why the pages of a walk that did not go to the end may lack a record."""
        counts = [count for count in self._counts if count is not None]
        reasons = (
            (len(counts) < len(self._counts), "no count"),
            (any(later < sooner for sooner, later in pairwise(counts)), "the count became less from page to page"),
            (len(set(self._lengths)) > 1, "pages of unequal length"),
            (bool(counts) and counts[-1] < len(self._tally.ids), "the count says less than came"),
        )
        return next((f"{self._resource}: {reason}" for wrong, reason in reasons if wrong), "")
