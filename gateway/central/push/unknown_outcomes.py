"""What is done with a create of which nobody knows whether central has it: it is looked for before it is made again.

The interface promises no idempotency key, and a request whose answer was lost may still be carried out. So a row goes
again only after two clean looks that did not find it, the second some time after the first: see `Coverage` for what a
clean look is, and `likeness` for what counts as found. Where looking cannot tell, it is looked for again, less and less
often, and a person is asked after a day.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product

from gateway.central.client.answers import CentralDenied, CentralFailed, CentralSlow
from gateway.central.client.client import CentralClient
from gateway.central.client.list_pages import read_page
from gateway.central.client.not_found import doubt
from gateway.central.push.list_search import Bounds, Compare, ListSearch
from gateway.central.push.newest_ids import NewestIds
from gateway.central.push.requests import delivery_request, given_id
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.record_match import Likeness, likeness
from gateway.domain.writes import Effect, JsonObject, Lookup, WriteOperation
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Backoff
from gateway.store import OutboxRow, Store

_LIMIT = 100
_TRIED = 5


async def search_by_mark(client: CentralClient, lookup: Lookup, sent: JsonObject, compare: Compare) -> bool:
    """Compare what the search finds; whether that proves where the record is. Raises what the client raises."""
    name = next((group[-1] for group in lookup.marks if all(sent.get(mark) not in (None, "") for mark in group)), None)
    if name is None:
        return False
    hits = await read_page(client, lookup, 1, _LIMIT, search=str(sent[name]))
    if await compare(hits.records):
        return True
    if len(hits.ids) != hits.count or len(hits.ids) >= _LIMIT:
        return False  # the search is too wide, or finds everything
    some = await read_page(client, lookup, 1, _TRIED)
    for number, record in some.records:
        mark = record.get(name)
        if mark not in (None, "") and isinstance(mark, str | int):
            found = await read_page(client, lookup, 1, _LIMIT, search=str(mark))
            return number in dict(found.records) and len(found.ids) < _LIMIT
    return False


ASK_AFTER = 86_400.0
"""Seconds after which a person is asked about what looking cannot tell."""
_CLEAN_LOOKS = 2
_NARROWEST_PARTS = 8
_COMPARED_AT_ONCE = 100
_MARGIN = 300.0
"""Seconds by which the clocks that date central's records may be wrong."""


@dataclass(frozen=True, slots=True)
class Sought:
    """A create that may have reached central."""

    row: OutboxRow
    operation: WriteOperation
    body: JsonObject


@dataclass(frozen=True, slots=True)
class Found:
    """Central has it."""

    record: JsonObject


@dataclass(frozen=True, slots=True)
class NotThere:
    """Central does not have it, and will not carry out what was sent before."""


@dataclass(frozen=True, slots=True)
class NotYet:
    """Nobody can say yet; the next look is of use after so many seconds."""

    reason: str
    wait: float


@dataclass(frozen=True, slots=True)
class Unclear:
    """Looking has not told for so long that a person is asked."""

    reason: str


Told = Found | NotThere | NotYet | Unclear


class Looks:
    """Looks that did not find something, kept in memory: after a start they begin anew.

    `may_take`: for so many seconds central may still carry out what nobody heard the answer of.
    """

    def __init__(self, *, monotonic: Callable[[], float], may_take: float, ask_after: float = ASK_AFTER) -> None:
        self._monotonic = monotonic
        self._may_take = may_take
        self._ask_after = ask_after
        self._backoff = Backoff(first=2.0, longest=3600.0)
        self._clean: dict[int, tuple[int, float]] = {}
        self._unclean: Counter[int] = Counter()
        self._since: dict[int, float] = {}

    @property
    def longest(self) -> float:
        """The longest wait between two looks."""
        return max(self._backoff.longest, self._may_take)

    def number(self, row_id: int) -> int:
        """How many looks there were of it."""
        return self._clean.get(row_id, (0, 0.0))[0] + self._unclean[row_id]

    def missed(self, row_id: int) -> NotThere | NotYet:
        """A clean look did not find it."""
        now = self._monotonic()
        looks, first = self._clean.get(row_id, (0, now))
        left = first + self._may_take - now if looks else self._may_take
        if not looks or left <= 0:
            looks += 1
            self._clean[row_id] = (looks, first)
        if looks < _CLEAN_LOOKS:
            return NotYet("central's list does not have it; it is looked for once more", wait=max(left, 0.0))
        self.forget(row_id)
        return NotThere()

    def unclear(self, row_id: int, reason: str) -> NotYet | Unclear:
        """A look proved nothing."""
        now = self._monotonic()
        if now - self._since.setdefault(row_id, now) >= self._ask_after:
            self.forget(row_id)
            return Unclear(reason)
        self._unclean[row_id] += 1
        return NotYet(reason, wait=self._backoff.wait(self._unclean[row_id]))

    def forget(self, row_id: int) -> None:
        """Forget what was seen of it."""
        self._clean.pop(row_id, None)
        self._unclean.pop(row_id, None)
        self._since.pop(row_id, None)


@dataclass
class _Glance:
    """What one look showed of one row."""

    same: list[tuple[int, JsonObject]] = field(default_factory=list)
    perhaps: list[int] = field(default_factory=list)
    problem: str = ""


class OutcomeSearch:
    """Looks for creates in central's lists. Those that are sought in one turn share a look."""

    def __init__(
        self, *, client: CentralClient, store: Store, clock: Clock, looks: Looks, newest: NewestIds, may_take: float
    ) -> None:
        self._newest = newest
        self._client = client
        self._clock = clock
        self._store = store
        self._looks = looks
        self._may_take = may_take
        self._sought: tuple[Sought, ...] = ()
        self._glances: dict[int, _Glance] = {}
        self._parts = 1  # of the usual page, into how many it is cut as long as it does not come

    async def begin_turn(self, rows: Iterable[OutboxRow]) -> None:
        """Begin a turn in which these may be judged; what was seen before of them was too early. Raises StoreError."""
        self._sought = tuple([sought for row in rows if (sought := await self._sought_in(row)) is not None])
        self._glances = {}

    async def judge(self, sought: Sought) -> Told:
        """Tell whether central has it. Raises CentralUnavailable, CentralDenied for the account, StoreError."""
        row, lookup = sought.row, sought.operation.lookup
        if lookup is None:
            return self._looks.unclear(row.id, "there is no list of central's to look for it in")
        if row.id not in self._glances:
            try:
                await self._look(sought, lookup)
                self._parts = max(self._parts // 2, 1)
            except (CentralSlow, CentralFailed):
                self._parts = min(self._parts * 2, _NARROWEST_PARTS)
                raise
            except CentralDenied as error:
                if not error.status:
                    raise
                return self._unseen(row, error)
            except CentralRefused as error:
                if (doubtful := await doubt(self._client, error)) is not None:
                    raise doubtful from error
                return self._unseen(row, error)
        return await self._told(sought, self._glances.pop(row.id))

    async def named(self, sought: Sought, answer: JsonObject) -> JsonObject:
        """Return central's answer to a create with the id of the record.

        An answer need not name it. The record is then looked for once: without its id no change of it could go up.
        """
        operation = sought.operation
        if operation.effect is not Effect.CREATE or given_id(answer, operation.resources) is not None:
            return answer
        try:
            told = await self.judge(sought)
        except (CentralUnavailable, CentralRefused):
            return answer
        finally:
            self._looks.forget(sought.row.id)
        return told.record if isinstance(told, Found) else answer

    def _unseen(self, row: OutboxRow, error: CentralRefused) -> Told:
        return self._looks.unclear(row.id, f"central does not let it be looked for: {error}")

    async def _sought_in(self, row: OutboxRow) -> Sought | None:
        """Return a create that may have reached central, with central's ids; None for any other row."""
        request = delivery_request(row) if row.begun else ""
        if isinstance(request, str) or request.operation.effect is not Effect.CREATE:
            return None
        resolved = await self._store.references.resolve(request.body)
        return None if resolved.reason else Sought(row, request.operation, resolved.body)

    async def _told(self, sought: Sought, glance: _Glance) -> Told:
        row, unknown = sought.row, self._store.unknown_outcomes
        for found, record in glance.same:
            if not await unknown.is_given(row.kind, found):
                self._looks.forget(row.id)
                return Found(record)
        for found in () if glance.problem else glance.perhaps:
            if await unknown.is_given(row.kind, found) or await self._was_here(row, found):
                continue
            return self._looks.unclear(row.id, f"central's {row.kind} {found} may be it, or another one")
        if glance.problem:
            return self._looks.unclear(row.id, f"central's list cannot be believed: {glance.problem}")
        return self._looks.missed(row.id)

    async def _was_here(self, row: OutboxRow, found: int) -> bool:
        """Whether the site had it before the row; a row from a time that is still to come tells nothing."""
        if row.created_at > self._clock.wall().micros:
            return False
        return await self._store.unknown_outcomes.was_here(row.kind, found, row.created_at)

    async def _look(self, sought: Sought, lookup: Lookup) -> None:
        """Look once for all of its kind that are sought in this turn."""
        if lookup.searched:
            glance = _Glance()
            compare = _comparing(lookup, {0: sought}, {0: glance})
            if await search_by_mark(self._client, lookup, sought.body, compare):
                self._glances[sought.row.id] = glance
                return
        together = {
            item.row.id: item
            for item in (sought, *self._sought)
            if item.row.kind == sought.row.kind
            and (not lookup.paged or (item.row.newest_before is None) is (sought.row.newest_before is None))
        }
        glances = {number: _Glance() for number in together}
        search = ListSearch(
            self._client,
            lookup,
            turn=self._looks.number(sought.row.id),
            parts=self._parts,
            compare=_comparing(lookup, together, glances),
        )
        problem = await search.look(await self._bounds(sought.row.kind, [item.row for item in together.values()]))
        for number, glance in glances.items():
            glance.problem = problem
            self._glances[number] = glance

    async def _bounds(self, kind: str, rows: list[OutboxRow]) -> Bounds:
        older = [row.newest_before for row in rows if row.newest_before is not None]
        begun = [row.begun_at for row in rows if row.begun_at is not None]
        known = set(await self._store.unknown_outcomes.given(kind))
        if len(begun) < len(rows) or (now := self._newest.now()) is None:
            return Bounds(older=min(older, default=None), known=known | set(older))
        made_by = max(begun) + int((self._may_take + _MARGIN) * 1_000_000)
        share = (now - made_by) / max(now - min(begun), 1)
        return Bounds(min(older, default=None), known | set(older), made_by, min(max(share, 0.0), 1.0))


def _comparing(lookup: Lookup, together: dict[int, Sought], glances: dict[int, _Glance]) -> Compare:
    """Compare records with each that is sought, a few at a time; whether all were found."""

    async def compare(page: tuple[tuple[int, JsonObject], ...]) -> bool:
        for compared, ((found, record), (number, item)) in enumerate(product(page, together.items()), start=1):
            before = item.row.newest_before
            match likeness(lookup, item.body, record, newer=None if before is None else found > before):
                case Likeness.SAME:
                    glances[number].same.append((found, record))
                case Likeness.PERHAPS:
                    glances[number].perhaps.append(found)
                case Likeness.OTHER:
                    pass
            if compared % _COMPARED_AT_ONCE == 0:
                await asyncio.sleep(0)
        return all(glance.same for glance in glances.values())

    return compare
