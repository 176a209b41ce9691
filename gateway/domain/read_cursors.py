"""Read marks: how far a program has read a list by cursor. Pure.

A consumer walks a list from the newest record (cursor 0) down, page by page, until it meets a record that it already
has. Its next walk begins at the newest record again. Ids only grow, and a record is in the list before any record with
a higher id. So a consumer that has walked down to a record that it had before has everything up to the record where the
walk began. That is its new mark.

A page counts as read when it was certainly fetched:

- a consumer that asks with the cursor that a page gave has that page;
- a consumer that begins a new walk has the last page, if the other end acknowledged the whole answer.

So neither a lost answer nor a walk that breaks off before it reaches known records moves the mark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

UNASKED_SECONDS = 7 * 86_400
"""If a consumer's walks have ended above its mark for so long, the mark is raised. The consumer has the records between
already, or does not want them: the mark was too low, as it may be after a crash of the gateway.
"""


@dataclass(frozen=True, slots=True)
class PageAnswered:
    """A page as it was answered.

    Attributes:
        cursor: the cursor of the request; 0 for the newest records.
        newest: the newest id of the whole list at that moment, 0 for an empty list.
        following: the cursor to the page after this one, None when this page is empty.
        is_end: whether the list has no records below this page.
    """

    cursor: int
    newest: int
    following: int | None
    is_end: bool


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """Progress of one consumer; each method returns a new state.

    Attributes:
        mark: everything up to this id was fetched; None before the first page. It begins right below the first page:
            older records are not waited for.
        top: the newest id when the present walk began, 0 for no walk.
        asked: the cursor of the page answered last.
        low: the cursor to the page after that one; this walk's answers had all records from there up.
        at_end: whether that page was the list's last.
        short_top: the top of the first of the recent walks that ended above the mark, 0 for none.
        short_since: when that walk ended, in monotonic seconds.
    """

    mark: int | None = None
    top: int = 0
    asked: int = 0
    low: int = 0
    at_end: bool = False
    short_top: int = 0
    short_since: float = 0.0

    def asks(self, cursor: int, *, acknowledged: bool, uptime: float) -> ReadProgress:
        """Note a request for a page. `acknowledged`: the last answer arrived complete. `uptime`: monotonic seconds."""
        if not self.top:
            return self
        if cursor:
            return self._fetched() if cursor == self.low else self
        if not acknowledged:
            return self
        return self._fetched() if self._is_met() else self._stopped_short(uptime)

    def answered(self, page: PageAnswered) -> ReadProgress:
        """Note a page that will be answered. The first sets the mark, which must be on disk before the answer."""
        if page.cursor == 0:
            low = page.following or 0
            below = page.newest if page.following is None else page.following - 1
            mark = below if self.mark is None else self.mark
            return replace(self, mark=mark, top=page.newest, asked=0, low=low, at_end=page.is_end)
        if not self.top or page.cursor not in (self.low, self.asked):
            return self  # a page of another walk than the present one
        return replace(self, asked=page.cursor, low=page.following or self.low, at_end=page.is_end)

    def _fetched(self) -> ReadProgress:
        """Move the mark if the walk has reached known records: every page of it was fetched."""
        if not self._is_met():
            return self
        return replace(self, mark=max(self.top, self.mark or 0), short_top=0)

    def _is_met(self) -> bool:
        """Return whether the walk has reached records that were read before."""
        return self.at_end or self.low <= (self.mark or 0) + 1

    def _stopped_short(self, uptime: float) -> ReadProgress:
        if not self.short_top:
            return replace(self, short_top=self.top, short_since=uptime)
        if uptime - self.short_since < UNASKED_SECONDS:
            return self
        return replace(self, mark=max(self.short_top, self.mark or 0), short_top=self.top, short_since=uptime)
