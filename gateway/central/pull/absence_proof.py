"""Absence proof: before the site removes a record, central is asked for it by id.

Lists shift while they are walked, and a list may lack records that central still has. Central's answer about the single
record is proof, if central answers such requests at all: a record that it has just listed must be found the same way.
"""

from __future__ import annotations

import asyncio
import random
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from gateway.central.client.answers import CentralDenied, CentralFailed, JsonObject
from gateway.central.client.client import CentralClient
from gateway.central.client.lists import Tally, is_large, judge_removal
from gateway.central.client.values import record_id
from gateway.domain.errors import CentralRefused

MOST_ASKED: Final = 100
"""The most single records that are asked for in one pull."""

Found = tuple[tuple[int, JsonObject], ...]
"""Records that central has, with their ids."""

_AT_A_TIME = 10
_NOT_FOUND = 404
_GONE_WORDS = ("not found", "does not exist", "no such", "deleted")
_LISTED_TRIES = 3

_REMOVED_AT_ONCE = 100
_COMPARED_AT_ONCE = 1000  # a quarter of a millisecond on a busy machine


@dataclass(frozen=True, slots=True)
class AskedRecords:
    """Central's answers about records by their ids.

    Attributes:
        gone: ids of records that it no longer has.
        there: records that it still has, as they are now.
        unsaid: ids for which its answer shows neither.
        unasked: ids that were not asked for.
    """

    gone: frozenset[int] = frozenset()
    there: Found = ()
    unsaid: frozenset[int] = frozenset()
    unasked: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsById:
    """Requests for single records. `names` are the names under which an answer may have the record."""

    client: CentralClient
    path: str
    names: tuple[str, ...]

    async def ask_some(self, record_ids: Iterable[int], *, listed: Iterable[int]) -> AskedRecords:
        """Ask for at most a hundred of these records, chosen at random, ten at a time. Raises as `ask` does.

        Asking stops early when central still has all of ten, because then the list is wrong; and when an answer shows
        neither presence nor absence, because then central does not answer such requests.
        """
        wanted, known = frozenset(record_ids), tuple(islice(listed, _LISTED_TRIES))
        chosen = random.sample(sorted(wanted), min(len(wanted), MOST_ASKED))
        said = AskedRecords()
        for start in range(0, len(chosen), _AT_A_TIME):
            some = chosen[start : start + _AT_A_TIME]
            asked = await self.ask(some, listed=known)
            said = AskedRecords(said.gone | asked.gone, said.there + asked.there, said.unsaid | asked.unsaid)
            if asked.unsaid or len(asked.there) == _AT_A_TIME:
                break
        return AskedRecords(
            said.gone, said.there, said.unsaid, wanted - said.gone - said.unsaid - {number for number, _ in said.there}
        )

    async def ask(self, record_ids: Iterable[int], *, listed: Iterable[int]) -> AskedRecords:
        """Ask central for these records. Raises CentralUnavailable when it does not answer.

        That a record is gone is believed only if one of the `listed` records is found before and after. If none of them
        is found, because the whole list is wrong, one of the wanted records may serve instead.
        """
        wanted, known = tuple(record_ids), tuple(islice(listed, _LISTED_TRIES))
        if not await self._finds_one(known):
            known = wanted[:: max(len(wanted) // _LISTED_TRIES, 1)][:_LISTED_TRIES]
            if not await self._finds_one(known):
                return AskedRecords(frozenset(), (), frozenset(wanted))
        asked = await self._ask(wanted)
        if asked.gone and not await self._finds_one(known):
            return AskedRecords(frozenset(), asked.there, asked.unsaid | asked.gone)
        return asked

    async def _finds_one(self, listed: tuple[int, ...]) -> bool:
        for number in listed:
            if await self._said(number):
                return True
        return False

    async def _ask(self, record_ids: tuple[int, ...]) -> AskedRecords:
        gone: set[int] = set()
        unsaid: set[int] = set()
        there: list[tuple[int, JsonObject]] = []
        for number in record_ids:
            said = await self._said(number)
            if said is None:
                unsaid.add(number)
            elif said:
                there.append((number, said))
            else:
                gone.add(number)
        return AskedRecords(frozenset(gone), tuple(there), frozenset(unsaid))

    async def _said(self, number: int) -> JsonObject | None:
        """Return central's record, {} if central has none, None for an answer that shows neither."""
        try:
            answer = await self.client.call("POST", self.path, {"id": number}, urgent=True)
        except CentralDenied:
            return None
        except CentralRefused as error:
            return {} if error.status == _NOT_FOUND or _says_gone(error.said) else None
        except CentralFailed:  # a failure of central says nothing about the record, whatever its words
            return None
        for name in self.names:
            if name in answer:
                record = answer[name]
                if not record:
                    return {}
                return record if isinstance(record, dict) and record_id(record) == number else None
        return answer if record_id(answer) == number else None


def _says_gone(said: str) -> bool:
    return any(words in said.casefold() for words in _GONE_WORDS)


class PageGaps:
    """Finder of cards that a list lacks, page by page, if the list is in ascending or descending order of ids.

    A list in any other order shows only at its end what it lacks.
    """

    def __init__(self, known: Sequence[int]) -> None:
        """Begin before the first page. `known`: the ids that the site has, ascending."""
        self._known = known
        self._edge: int | None = None
        self._falls: bool | None = None
        self._in_order = True

    def lacking(self, ids: Sequence[int]) -> frozenset[int]:
        """Return the known ids between the end of the last page and the end of this page that this page lacks."""
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
        """Check the order of a page; return whether the walk is in order up to the page's end."""
        steps = list(pairwise(ids if self._edge is None else (self._edge, *ids)))
        if self._falls is None and steps:
            self._falls = steps[0][0] > steps[0][1]
        self._in_order = (
            self._in_order
            and bool(steps)
            and all((early > late) is self._falls and early != late for early, late in steps)
        )
        return self._in_order


@dataclass(frozen=True, slots=True)
class MissingCards:
    """Missing cards that are left after a pull.

    Attributes:
        waiting: cards that stay until the next list lacks them too.
        newly: whether a large removal began to wait with this pull.
        pending: cards that two lists must agree about; the caller stores them until the next pull.
        problem: why the list is not believed, or why not all due cards were removed; "" for neither.
    """

    waiting: frozenset[int]
    newly: bool
    pending: frozenset[int]
    problem: str


class GoneCards:
    """Removal, within one pull, of the cards that central no longer has.

    A card that the list lacks is removed if central does not have it when asked for it by id. A list in the order of
    ids shows a missing card as soon as its page is read. A large removal waits for a second list that lacks the same
    cards. A pull asks for at most a hundred single cards; if two lists that can be believed lack more, that sample is
    the proof for all of them. A list that contradicts itself proves nothing: only central's answer about a card does.
    """

    def __init__(
        self,
        *,
        by_id: RequestsById,
        known: Sequence[int],
        own: Callable[[Collection[int]], Awaitable[frozenset[int]]],
        let_go: Callable[[frozenset[int]], Awaitable[None]],
        put: Callable[[Found], Awaitable[None]],
    ) -> None:
        """Begin with one pull.

        Args:
            by_id: the requests for single cards.
            known: central's ids of the cards that the site had when the pull began, ascending.
            own: returns those of the given cards that were written meanwhile, or whose create waits.
            let_go: removes cards from the site.
            put: stores cards that central still has.
        """
        self._by_id = by_id
        self._known = known
        self._own = own
        self._let_go = let_go
        self._put = put
        self._gaps = PageGaps(known)
        self._suspects = 0
        self._there: set[int] = set()
        self._gone: set[int] = set()

    async def on_page(self, ids: Sequence[int]) -> None:
        """Remove the cards that this page lacks and central no longer has at once, as long as they are few."""
        suspects = self._gaps.lacking(ids)
        if not suspects:
            return
        suspects -= await self._own(suspects)
        self._suspects += len(suspects)
        if suspects and not self._are_many(self._suspects):
            await self._ask(suspects, listed=ids)

    async def settle(
        self, tally: Tally, *, waited: frozenset[int], again: Callable[[], Awaitable[Tally]]
    ) -> MissingCards:
        """Decide about every card that the walk did not find.

        Args:
            tally: the totals of the walk.
            waited: the cards of a large removal that the walk before lacked.
            again: walks over the list a second time.
        """
        nothing = MissingCards(frozenset(), newly=False, pending=waited, problem=tally.problem)
        if not tally.reached_end:
            return nothing
        missing = await _without(self._known, tally.ids)
        missing -= await self._own(missing)
        many = self._are_many(len(missing))
        removal = judge_removal(many=many, missing=missing - self._gone, waited=waited)
        problem = await self._remove(removal.due - self._there, tally=tally, again=again)
        if still := len(self._there - tally.ids):
            problem = problem or f"access_cards: {still} that central still has are not on its list"
        return MissingCards(
            waiting=removal.waiting,
            newly=bool(removal.waiting) and not waited,
            pending=removal.waiting | (removal.due - self._gone if many else frozenset()),
            problem=tally.problem or problem,
        )

    def _are_many(self, missing: int) -> bool:
        return missing > MOST_ASKED or is_large(known=len(self._known), missing=missing)

    async def _remove(self, due: frozenset[int], *, tally: Tally, again: Callable[[], Awaitable[Tally]]) -> str:
        """Remove the due cards that are proven to be gone; return a new reason why others stay, "" if there is none."""
        if not due:
            return ""
        asked = await self._ask(due, listed=sorted(tally.ids))
        left = asked.unsaid | asked.unasked
        if not left or asked.there or tally.problem:
            return ""
        if asked.unsaid:
            second = await again()
            if second.problem:
                return second.problem
            lacked_again = await _without(self._known, second.ids)
            own = await self._own(lacked_again | left)
            if lacked_again - own - self._gone != left - own:
                return "access_cards: two looks disagree"
        await self._drop(left)
        return ""

    async def _ask(self, suspects: frozenset[int], *, listed: Sequence[int]) -> AskedRecords:
        asked = await self._by_id.ask_some(suspects, listed=listed)
        self._there.update(number for number, _ in asked.there)
        await self._put(asked.there)
        await self._drop(asked.gone)
        return asked

    async def _drop(self, gone: frozenset[int]) -> None:
        going = sorted(gone)
        for start in range(0, len(going), _REMOVED_AT_ONCE):
            await self._let_go(frozenset(going[start : start + _REMOVED_AT_ONCE]))
        self._gone |= gone


async def _without(known: Sequence[int], listed: set[int]) -> frozenset[int]:
    """Return the known ids that are not listed, in parts: a thread would keep the interpreter lock for longer."""
    lacking: set[int] = set()
    for start in range(0, len(known), _COMPARED_AT_ONCE):
        lacking.update(number for number in known[start : start + _COMPARED_AT_ONCE] if number not in listed)
        await asyncio.sleep(0)  # lanes come first
    return frozenset(lacking)
