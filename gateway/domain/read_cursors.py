"""Read marks: how far a program has read a list by cursor. Pure.

A consumer reads a list from the newest record (cursor 0) down, page by page, until a record comes that it has; the
next time it begins at the newest again. Ids only grow, and a record is there before any with a higher id. So a
consumer that has read down to a record that it had before has everything up to the top. That is its mark.

A page counts as read when it was certainly fetched:

- a consumer that asks with the cursor that a page gave has that page;
- a consumer that begins a new walk has the last page, if the other end acknowledged the whole answer.

So a lost answer moves no mark, nor does a walk that breaks off before it reaches known records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

UNASKED_SECONDS = 7 * 86_400
"""A consumer that has come again and again for so long, and never asked for what is between, has it or does not want
it: its mark was too low, as it may be after a crash of the gateway.
"""


@dataclass(frozen=True, slots=True)
class PageAnswered:
    """A page as it was answered.

    Attributes:
        cursor: what it was asked with; 0 for the newest.
        newest: the newest id of the whole list at that moment, 0 for none.
        following: the cursor to the page after it, None when the page is empty.
        is_end: whether nothing of the list is below it.
    """

    cursor: int
    newest: int
    following: int | None
    is_end: bool


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """Progress of one consumer; each method returns a new state.

    Attributes:
        mark: everything up to this id was fetched; None before the first page. It begins right below that: what was
            there before is not waited for.
        top: the newest id when the walk began that is under way, 0 for no walk.
        asked: the cursor of the page answered last.
        low: the cursor to the page after it: all that was answered of this walk is from there on.
        at_end: whether it was the list's last.
        short_top: the top of the first of the walks that ended above the mark, one after the other, 0 for none.
        short_since: monotonic seconds of its end.
    """

    mark: int | None = None
    top: int = 0
    asked: int = 0
    low: int = 0
    at_end: bool = False
    short_top: int = 0
    short_since: float = 0.0

    def asks(self, cursor: int, *, acknowledged: bool, uptime: float) -> ReadProgress:
        """Note a request for a page. `acknowledged`: the last answer arrived whole. `uptime`: monotonic seconds."""
        if not self.top:
            return self
        if cursor:
            return self._fetched() if cursor == self.low else self
        if not acknowledged:
            return self
        return self._fetched() if self._is_met() else self._stopped_short(uptime)

    def answered(self, page: PageAnswered) -> ReadProgress:
        """Note the answered page. The first one makes the mark, which must be on disk before the answer."""
        if page.cursor == 0:
            low = page.following or 0
            below = page.newest if page.following is None else page.following - 1
            mark = below if self.mark is None else self.mark
            return replace(self, mark=mark, top=page.newest, asked=0, low=low, at_end=page.is_end)
        if not self.top or page.cursor not in (self.low, self.asked):
            return self  # of another walk than the one that is followed
        return replace(self, asked=page.cursor, low=page.following or self.low, at_end=page.is_end)

    def _fetched(self) -> ReadProgress:
        """Take in that every answered page of the walk was fetched."""
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
