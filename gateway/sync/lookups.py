"""What is done with a create of which nobody knows whether central has it: it is looked for before it is made again.

The interface promises no idempotency key, and a request whose answer was lost may still be carried out. So a row goes
again only after two clean looks that did not find it, the second some time after the first: see `Descent` for what a
clean look is, and `likeness` for what counts as found. Where looking cannot tell, a person is asked.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import product

from gateway.clock import Clock
from gateway.domain.errors import CentralRefused
from gateway.domain.likeness import Likeness, likeness
from gateway.domain.writes import Effect, Lookup, WriteOperation
from gateway.store import OutboxRow, Store
from gateway.sync.answers import CentralDenied, CentralFailed, CentralSlow, JsonObject
from gateway.sync.central import CentralClient
from gateway.sync.descent import Descent
from gateway.sync.not_found import doubt
from gateway.sync.shipments import shipment_of
from gateway.sync.sweep import Page

_CLEAN_LOOKS = 2
_MOST_UNCLEAN = 30
_LIMITS = (100, 80)
"""Records of a page. Looks take turns, so that what one skips between two of its pages the next does not."""
_WHOLE_LIMITS = (250, 200)
_NARROWEST_PARTS = 8
_MOST_PAGES = 1000
_COMPARED_AT_ONCE = 100


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
    """Looking will not tell."""

    reason: str


Told = Found | NotThere | NotYet | Unclear


class Looks:
    """Looks that did not find something, kept in memory: after a start they begin anew.

    `may_take`: for so many seconds central may still carry out what nobody heard the answer of.
    """

    def __init__(self, *, monotonic: Callable[[], float], may_take: float) -> None:
        self._monotonic = monotonic
        self._may_take = may_take
        self._clean: dict[int, tuple[int, float]] = {}
        self._unclean: Counter[int] = Counter()

    def number(self, row_id: int) -> int:
        """How many looks there were of it."""
        return self._clean.get(row_id, (0, 0.0))[0] + self._unclean[row_id]

    def missed(self, row_id: int, *, problem: str = "") -> NotThere | NotYet | Unclear:
        """It was not found; `problem` says why that proves nothing."""
        now = self._monotonic()
        if problem:
            self._unclean[row_id] += 1
            if self._unclean[row_id] < _MOST_UNCLEAN:
                return NotYet(f"central's list cannot be believed: {problem}", wait=0.0)
            self.forget(row_id)
            return Unclear(f"central's list was not to be believed {_MOST_UNCLEAN} times, the last time: {problem}")
        looks, first = self._clean.get(row_id, (0, now))
        left = first + self._may_take - now if looks else self._may_take
        if looks and left > 0:
            return NotYet("central's list does not have it; it is looked for once more", wait=left)
        self._clean[row_id] = (looks + 1, first)
        if looks + 1 < _CLEAN_LOOKS:
            return NotYet("central's list does not have it; it is looked for once more", wait=left)
        self.forget(row_id)
        return NotThere()

    def forget(self, row_id: int) -> None:
        """What was seen of it counts no more."""
        self._clean.pop(row_id, None)
        self._unclean.pop(row_id, None)


@dataclass
class _Glance:
    """What one walk showed of one row."""

    same: list[tuple[int, JsonObject]] = field(default_factory=list)
    perhaps: list[int] = field(default_factory=list)
    problem: str = ""


class Lookups:
    """Looks for creates in central's lists. Those that are sought in one turn share a walk."""

    def __init__(self, *, client: CentralClient, store: Store, clock: Clock, looks: Looks) -> None:
        self._client = client
        self._clock = clock
        self._store = store
        self._looks = looks
        self._sought: tuple[Sought, ...] = ()
        self._glances: dict[int, _Glance] = {}
        self._parts = 1  # of the usual page, into how many it is cut as long as it does not come

    def begin_turn(self, sought: Iterable[Sought]) -> None:
        """These will be judged, if they still are to be; what was seen before of them was too early."""
        self._sought = tuple(sought)
        self._glances = {}

    async def judge(self, sought: Sought) -> Told:
        """Whether central has it. Raises CentralUnavailable, CentralDenied for the account as a whole, StoreError."""
        row, lookup = sought.row, sought.operation.lookup
        if lookup is None:
            return Unclear("there is no list of central's to look for it in")
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

    def _unseen(self, row: OutboxRow, error: CentralRefused) -> Unclear:
        self._looks.forget(row.id)
        return Unclear(f"central does not let it be looked for: {error}")

    async def _told(self, sought: Sought, glance: _Glance) -> Told:
        row, unknown = sought.row, self._store.unknown
        for found, record in glance.same:
            if not await unknown.is_given(row.kind, found):
                self._looks.forget(row.id)
                return Found(record)
        for found in () if glance.problem else glance.perhaps:
            if await unknown.is_given(row.kind, found) or await self._was_here(row, found):
                continue
            self._looks.forget(row.id)
            return Unclear(f"central's {row.kind} {found} may be it, or another one")
        return self._looks.missed(row.id, problem=glance.problem)

    async def _was_here(self, row: OutboxRow, found: int) -> bool:
        """Whether the site had it before the row; a row from a time that is still to come tells nothing."""
        if row.created_at > self._clock.wall().micros:
            return False
        return await self._store.unknown.was_here(row.kind, found, row.created_at)

    async def _look(self, sought: Sought, lookup: Lookup) -> None:
        """Walk central's list once, for all of its kind that are sought in this turn as this one is."""
        has_older = lookup.paged and sought.row.newest_before is not None
        together = {
            item.row.id: item
            for item in (sought, *self._sought)
            if item.row.kind == sought.row.kind
            and (not lookup.paged or (item.row.newest_before is not None) is has_older)
        }
        older = [item.row.newest_before for item in together.values() if item.row.newest_before is not None]
        glances = {number: _Glance() for number in together}
        turn = self._looks.number(sought.row.id) % len(_LIMITS)
        limit = (_LIMITS if has_older else _WHOLE_LIMITS)[turn] // self._parts
        descent = Descent(
            lookup.resource,
            limit=limit,
            older=min(older, default=None) if has_older else None,
            known=await self._store.unknown.given(sought.row.kind),
        )
        for number in range(1, _MOST_PAGES + 1):
            asked: JsonObject = {"page": number, "page_limit": limit} if lookup.paged else {}
            page = descent.take(await self._client.call("POST", lookup.path, asked))
            await _compare(page, lookup, together, glances)
            if descent.over or not lookup.paged or all(glance.same for glance in glances.values()):
                break
        else:
            descent.give_up(f"no end after {_MOST_PAGES} pages")
        for number, glance in glances.items():
            glance.problem = descent.problem
            self._glances[number] = glance


def sought_in(row: OutboxRow) -> Sought | None:
    """A create that may have reached central; None for any other row."""
    shipment = shipment_of(row) if row.begun else ""
    if isinstance(shipment, str) or shipment.operation.effect is not Effect.CREATE:
        return None
    return Sought(row, shipment.operation, shipment.body)


async def _compare(page: Page, lookup: Lookup, together: dict[int, Sought], glances: dict[int, _Glance]) -> None:
    """Note what each record is to each that is sought, a few at a time."""
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
