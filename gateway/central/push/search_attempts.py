"""Outcomes of a search for a record at central, and the repetition of searches that did not find it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from gateway.domain.writes import JsonObject
from gateway.runtime.supervision import Backoff

ASK_AFTER = 86_400.0
"""Seconds after which a person decides, if searching does not show the outcome."""
MAY_TAKE = 60.0
"""Seconds for which central may still carry out a write whose answer was lost."""
_CLEAN_LOOKS = 2


@dataclass(frozen=True, slots=True)
class FoundAtCentral:
    """Outcome: central has the record."""

    record: JsonObject


@dataclass(frozen=True, slots=True)
class Absent:
    """Outcome: central does not have the record, and will not carry out the earlier request."""


@dataclass(frozen=True, slots=True)
class NotYet:
    """Outcome that is still unknown; `wait`: the seconds after which to search again."""

    reason: str
    wait: float


@dataclass(frozen=True, slots=True)
class Unclear:
    """Outcome that searching has not shown for so long that a person must decide."""

    reason: str


Outcome = FoundAtCentral | Absent | NotYet | Unclear


class SearchAttempts:
    """Counts of searches that did not find a record, kept in memory only, so that a restart begins them anew.

    `may_take`: for so many seconds central may still carry out a request whose answer was lost.
    """

    def __init__(self, *, monotonic: Callable[[], float], may_take: float, ask_after: float = ASK_AFTER) -> None:
        self._monotonic = monotonic
        self.may_take = may_take
        self._ask_after = ask_after
        self._backoff = Backoff(first=2.0, longest=3600.0)
        self._clean: dict[int, tuple[int, float]] = {}
        self._unclean: Counter[int] = Counter()
        self._since: dict[int, float] = {}
        self._absent: dict[int, float] = {}

    @property
    def longest(self) -> float:
        """Longest wait between two searches."""
        return max(self._backoff.longest, self.may_take)

    def number(self, row_id: int) -> int:
        """Return how many searches there were for a row's record."""
        return self._clean.get(row_id, (0, 0.0))[0] + self._unclean[row_id]

    def missed(self, row_id: int, *, at: float) -> Absent | NotYet:
        """Count a clean search that did not find the record, and return the outcome.

        `at` is when the search began, in monotonic seconds. A second clean search, at least `may_take` after the first,
        proves the record absent.
        """
        looks, first = self._clean.get(row_id, (0, at))
        left = first + self.may_take - at if looks else self.may_take
        if not looks or left <= 0:
            looks += 1
            self._clean[row_id] = (looks, first)
        if looks < _CLEAN_LOOKS:
            return NotYet("central's list does not have it; it is looked for once more", wait=max(left, 0.0))
        self.forget(row_id)
        self._absent[row_id] = self._monotonic()
        return Absent()

    def counts(self, row_id: int, *, at: float) -> bool:
        """Return whether a search that began `at` tells of a row: not if the row was sent again since."""
        return at > self._absent.get(row_id, -math.inf)

    def unclear(self, row_id: int, reason: str) -> NotYet | Unclear:
        """Count a search that proved nothing, and return the outcome."""
        now = self._monotonic()
        if now - self._since.setdefault(row_id, now) >= self._ask_after:
            self.forget(row_id)
            return Unclear(reason)
        self._unclean[row_id] += 1
        return NotYet(reason, wait=self._backoff.wait(self._unclean[row_id]))

    def forget(self, row_id: int) -> None:
        """Forget the searches for a row's record."""
        self._clean.pop(row_id, None)
        self._unclean.pop(row_id, None)
        self._since.pop(row_id, None)
