"""Areas that this gateway shares with others: claims before a gate opens, and what is still to be told to the others.

No I/O: `gateway.fleet.shared_areas` feeds in the shared records as they change, and writes what `writes` returns. While
it does not, the gateway is apart: nothing can be claimed, and passages wait here to be merged.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from typing import Final

from gateway.domain.access import Coming
from gateway.domain.presence import (
    Correction,
    CountCorrection,
    Forgiveness,
    Movement,
    Presence,
    Way,
    Whereabouts,
)
from gateway.domain.shared_areas import (
    AreaStep,
    AreaWrite,
    Claim,
    GatewayCounts,
    HolderEntry,
    SharedRecords,
    TellContradiction,
    contradictions,
    local_name,
    shared_name,
    shared_parts,
    touches,
    unknown_steps,
)
from gateway.lanes.claims import ClaimOutcome, OwnClaim, OwnClaims
from gateway.runtime.clock import Clock

_AT_ONCE: Final = 500
SHOWN_WITHIN: Final = 3.0
_NEVER: Final = (-1, 0.0)
_REMEMBERED_SECONDS: Final = 60.0
"""So long a claim of an earlier run stands: as long as a vehicle let in before a restart may still pass."""
_MOST_REMEMBERED: Final = 256


class SharedAreas:
    """This gateway's part in the shared areas."""

    def __init__(
        self,
        *,
        own: str,
        areas: Collection[str],
        presence: Callable[[], Presence],
        clock: Clock,
        claim_seconds: float,
        tell: TellContradiction,
        counted: Callable[[], None],
    ) -> None:
        """`own` is this gateway's name; `counted` is called when both sides' counts are summed after a time apart."""
        self.own = own
        self.areas = frozenset(areas)
        self.claim_seconds = claim_seconds
        self._presence = presence
        self._clock = clock
        self._tell = tell
        self._counted = counted
        self._run = secrets.token_hex(4)
        self._records = SharedRecords()
        self._written: dict[str, tuple[HolderEntry, int]] = {}
        self._refused: dict[str, tuple[int, float]] = {}
        self._claims = OwnClaims()
        self._untold = UntoldPassages()
        self._dirty: dict[str, None] = {}
        self._to_forgive: deque[str] = deque()
        self._inside: dict[str, int] | None = None
        self._counts_written = GatewayCounts(), 0
        self._healing = True
        self._recalled: dict[str, Whereabouts] = {}
        self._connected = False
        self._has_told = False
        self.is_replaced = False
        """True once a gateway that began later has this one's name: this one takes no part until it starts anew."""
        self._late = False
        self._asked_since = 0.0
        self._work = asyncio.Event()

    @property
    def is_apart(self) -> bool:
        """True while the other gateways cannot be asked."""
        return not self._connected or self._late or self._inside is None or self.is_replaced

    @property
    def waits(self) -> int:
        """The number of passages that the others do not know yet, and of claims that stand here."""
        return len(self._untold) + len(self._claims)

    def coming(self) -> Iterator[Coming]:
        """Yield the vehicles that other gateways let in and that have not passed yet, and those being claimed here."""
        for holder, claims in self._records.claims.items():
            for claim in claims:
                if claim.by != self.own:
                    yield Coming(claim.by, claim.way, local_name(self.own, holder))
        for own in self._claims.values():
            if own.decides or own.is_foreign:
                yield Coming(self.own, own.claim.way, local_name(self.own, own.holder))

    def ask(self, holder: str, way: Way, *, limit: int | None) -> OwnClaim | None:
        """Begin to claim a holder's way, right after it was decided; None if nothing is to be claimed, or apart."""
        if self.is_apart or not holder or not touches(self.areas, way):
            return None
        name = shared_name(self.own, holder)
        for before in self._claims.remembered(name):
            self.release(before.claim.id)  # whoever comes again has not passed before
        number, at = f"{self._run}-{secrets.token_hex(4)}", self._clock.wall().micros
        claim = Claim(number, self.own, at, *shared_parts(self.areas, way))
        own = self._claims[claim.id] = OwnClaim(claim, name, self._base(name)[1], limit)
        self._mark(name)
        return own

    async def outcome(self, own: OwnClaim, *, until: float) -> ClaimOutcome:
        """Wait for a claim's outcome until a monotonic instant. Unless it is `CLAIMED` or `AWAY`, it is given back."""
        try:
            async with asyncio.timeout(max(0.0, until - self._clock.monotonic())):
                await asyncio.shield(own.outcome)
        except TimeoutError:
            self._late = True
            own.ends_as(ClaimOutcome.AWAY)
        except asyncio.CancelledError:
            self.release(own.claim.id)
            raise
        finally:
            own.decides = False
        found = own.outcome.result()
        if found in (ClaimOutcome.FULL, ClaimOutcome.OVERTAKEN):
            self.release(own.claim.id)
        return found

    def release(self, claim_id: str) -> None:
        """Give a claim back: the gate was not opened, or nobody passed."""
        if (own := self._claims.pop(claim_id, None)) is not None:
            own.ends_as(ClaimOutcome.OVERTAKEN)
            self._mark(own.holder)

    def moved(self, movements: Iterable[Movement]) -> None:
        """Take passages that are on disk: count them, and settle their claims."""
        for movement in movements:
            self._take(movement)
            self._work.set()

    def _take(self, movement: Movement) -> None:
        if not touches(self.areas, movement.way):
            return
        leaves, enters = shared_parts(self.areas, movement.way)
        if self._inside is not None:
            for area_id, change in ((leaves, -1), (enters, 1)):
                if area_id:
                    self._inside[area_id] = self._inside.get(area_id, 0) + change
        if movement.holder:
            name = shared_name(self.own, movement.holder)
            step = AreaStep(movement.at, self.own, leaves, enters, trusted=self._clock.wall().trusted)
            self._claims.settle(name, step.way)
            self._add(name, step)

    def corrected(self, correction: Correction) -> None:
        """Take a person's correction that is on disk."""
        match correction:
            case CountCorrection(area_id) if area_id in self.areas and self._inside is not None:
                self._inside[area_id] = correction.own
            case Forgiveness(holder):
                self._to_forgive.extend([shared_name(self.own, holder)] if holder else self._records.holders())
            case _:
                pass
        self._work.set()

    def recalled(self) -> None:
        """Take over the presence that was restored at the start. Before this, nothing is told to the others."""
        self._inside = {area: self._presence().own(area) for area in self.areas}
        self._recalled = dict(self._presence().holders())
        self._work.set()

    def change(self, areas: Collection[str], *, claim_seconds: float) -> None:
        """Take over the shared areas of a changed site file."""
        self.areas, self.claim_seconds = frozenset(areas), claim_seconds
        if self._inside is not None:
            self._inside = {area: self._inside.get(area, self._presence().own(area)) for area in self.areas}

    def begin(self) -> None:
        """Begin to follow the shared records anew, from a connection's first change on."""
        self._records = SharedRecords()
        self._written.clear()
        self._refused.clear()
        self._counts_written = GatewayCounts(), 0

    async def synchronised(self) -> None:
        """Note that the records are as new as the server's: claims can be made, and what waits is written."""
        await self._compare_with_disk()
        self._connected, self._late, self._asked_since = True, False, self._clock.monotonic()
        for name in self._records.claims:
            self._adopt(name, is_foreign=False)
        for name in self._untold.names():
            self._untold.put_back(name, self._records.entry(name)[0])
        for name in (*self._untold.names(), *(own.holder for own in self._claims.values())):
            self._mark(name)
        self._learn()
        self._work.set()

    def lost(self) -> None:
        """Note that the other gateways cannot be asked."""
        self._connected = False
        self._healing = True
        for own in self._claims.values():
            own.ends_as(ClaimOutcome.AWAY)

    def heard(self) -> None:
        """Note that the server answers."""
        if self._late:
            self._late, self._asked_since = False, self._clock.monotonic()

    def entry_changed(self, name: str, entry: HolderEntry, revision: int) -> None:
        """Apply a change of a holder's entry, in the order of revisions.

        A claim counts only if nothing came between it and the entry for which it was decided. Servers of some releases
        take two writes of one moment against the same entry; the first of them comes here first.
        """
        self.heard()
        self._records.put_entry(name, entry, revision)
        if self._written.get(name, (None, 0))[1] <= revision:
            self._written.pop(name, None)
        self._untold.put_back(name, entry)
        waiting = self._untold.of(name)
        self._place(name, entry.with_steps(waiting))
        ids = {claim.id for claim in entry.claims if claim.by == self.own}
        for own in self._claims.undecided(name):
            if own.claim.id in ids:
                own.ends_as(own.judged(self._records))
            elif revision > own.seen:
                own.ends_as(ClaimOutcome.OVERTAKEN)
        if self._connected and not ids <= self._claims.keys():
            self._adopt(name, is_foreign=True)
        if waiting or ids or self._claims.of(name):
            self._mark(name)

    def counts_changed(self, gateway: str, counts: GatewayCounts, revision: int) -> None:
        """Apply a change of a gateway's counts, in the order of revisions."""
        self.heard()
        self._records.put_counts(gateway, counts, revision)
        if gateway == self.own:
            self.is_replaced |= self._has_told and counts.run not in ("", self._run)
            self._work.set()
        elif self._connected:
            self._learn()

    def writes(self, most: int) -> list[AreaWrite]:
        """Return what is to be written now, at most so many. Counts go before the passages that they count."""
        found: list[AreaWrite] = []
        if self._inside is None:
            return found
        for own in self._claims.expired(self._clock.monotonic()):
            self.release(own.claim.id)
        self._forgive(most)
        counts = self._counts_to_write()
        if counts is None:
            self._untold.uncounted.clear()
            if self._healing:
                self._healing = False
                self._counted()
        elif self._refused.get("", _NEVER)[0] < counts.after:
            found.append(counts)
        for name in list(self._dirty):
            if len(found) >= most:
                break
            write = self._entry_to_write(name)
            if write is None:
                del self._dirty[name]
            elif self._refused.get(name, _NEVER)[0] < write.after and self._untold.uncounted.isdisjoint(write.steps):
                found.append(write)
        return found

    def written(self, write: AreaWrite, revision: int | None) -> None:
        """Take the outcome of a write: its revision, or None because the record had changed."""
        if revision is None:
            self._refused[write.holder] = write.after, self._clock.monotonic()
            return
        self._refused.pop(write.holder, None)
        if isinstance(write.value, GatewayCounts):
            self._counts_written, self._has_told = (write.value, revision), True
            self._untold.uncounted.difference_update(write.steps)
            return
        if self._records.entry(write.holder)[1] < revision:
            self._written[write.holder] = write.value, revision
        for found in contradictions(write.base, write.steps):
            apart = self._untold.was_apart((found.before, found.after))
            self._tell(local_name(self.own, write.holder), found, made_apart=apart)
        self._untold.told(write.holder, write.steps)

    @property
    def misled(self) -> list[str]:
        """The holders, "" for the counts, whose change the server refuses and does not show why."""
        late = self._clock.monotonic() - SHOWN_WITHIN
        refused = ((name, revision) for name, (revision, at) in self._refused.items() if at < late)
        return [name for name, revision in refused if revision >= (self._base(name) if name else self._counts())[1]]

    async def work(self, *, within: float) -> None:
        """Wait until there may be something to write, at most so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._work.wait()
        self._work.clear()

    def _counts_to_write(self) -> AreaWrite | None:
        presence = self._presence()
        opened = {area: at for area in self.areas if (at := presence.opened_here_at(area)) is not None}
        inside = {area: count for area, count in (self._inside or {}).items() if count}
        counts = GatewayCounts(inside, opened, self._run)
        known, revision = self._counts()
        return (
            None
            if counts == known and revision
            else AreaWrite("", counts, revision, steps=tuple(self._untold.uncounted))
        )

    def _counts(self) -> tuple[GatewayCounts, int]:
        return max(self._records.counts(self.own), self._counts_written, key=itemgetter(1))

    def _entry_to_write(self, name: str) -> AreaWrite | None:
        base, revision = self._base(name)
        for own in self._claims.undecided(name):
            if own.seen != revision and own.claim not in base.claims:
                own.ends_as(ClaimOutcome.OVERTAKEN)
        steps = self._untold.of(name)
        claims = [one.claim for one in self._claims.of(name) if not one.is_overtaken]
        wanted = base.with_steps(steps).with_claims(self.own, claims)
        if (wanted.steps, set(wanted.claims)) == (base.steps, set(base.claims)):
            self._untold.told(name, steps)  # they are there already, or too old to count
            return None
        return AreaWrite(name, wanted, revision, base, steps)

    def _base(self, name: str) -> tuple[HolderEntry, int]:
        """Return the newest known entry of a holder: as the records have it, or as it was written since."""
        seen, written = self._records.entry(name), self._written.get(name)
        return written if written is not None and written[1] > seen[1] else seen

    async def _compare_with_disk(self) -> None:
        """Tell the passages of earlier runs that the others do not know: the last one of each holder is on disk."""
        recalled, self._recalled = self._recalled, {}
        for number, (holder, place) in enumerate(recalled.items()):
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
            name = shared_name(self.own, holder)
            for step in unknown_steps(self._records.entry(name)[0], place, by=self.own, areas=self.areas):
                self._add(name, step)

    def _place(self, name: str, entry: HolderEntry) -> None:
        """Take over a holder's place, unless a passage here was later."""
        holder = local_name(self.own, name)
        here = self._presence().whereabouts(holder)
        if entry.steps and (here is None or entry.steps[-1].at >= here.since):
            self._presence().place(holder, entry.place)

    def _forgive(self, most: int) -> None:
        stamp = self._clock.wall()
        while self._to_forgive and len(self._dirty) < most:
            self._add(
                self._to_forgive.popleft(), AreaStep(stamp.micros, self.own, trusted=stamp.trusted, forgiven=True)
            )

    def _adopt(self, name: str, *, is_foreign: bool) -> None:
        """Take over claims of an earlier run, or of another box; give those of this run back that no lane holds."""
        for claim in self._records.entry(name)[0].claims:
            if claim.by != self.own or claim.id in self._claims:
                continue
            self._mark(name)
            has_passed = any(step.by == self.own and step.at >= claim.at for step in self._untold.of(name))
            if not claim.id.startswith(f"{self._run}-") and not has_passed:
                until = self._clock.monotonic() + _REMEMBERED_SECONDS
                self._claims.remember(claim, name, until=until, is_foreign=is_foreign)

    def _add(self, name: str, step: AreaStep) -> None:
        """Add a passage. The records give the order while all can be asked; else the clocks give it."""
        age = max(0, self._clock.wall().micros - step.at) / 1e6  # the clock may have been set meanwhile
        apart = self.is_apart or self._clock.monotonic() - age < self._asked_since
        if not apart:
            last = max((one.at for one in (*self._base(name)[0].steps, *self._untold.of(name))), default=0)
            step = replace(step, at=max(step.at, last + 1))
        self._untold.add(name, step, made_apart=apart)
        self._mark(name)

    def _mark(self, name: str) -> None:
        self._dirty[name] = None
        self._work.set()

    def _learn(self) -> None:
        others = self._records.elsewhere(self.own)
        self._presence().learn(elsewhere=others.inside, opened=others.opened)


class UntoldPassages:
    """Passages to tell, by the holder's name among the gateways.

    A passage is told only after the counts that have it: for a moment one too many is counted, never one too few.
    Servers that die together may lose what they acknowledged, so the last passages that were told are compared again.
    """

    def __init__(self) -> None:
        self._steps: dict[str, tuple[AreaStep, ...]] = {}
        self._lately: deque[tuple[str, AreaStep]] = deque(maxlen=_MOST_REMEMBERED)
        self._made_apart: set[AreaStep] = set()
        self.uncounted: set[AreaStep] = set()

    def __len__(self) -> int:
        return sum(map(len, self._steps.values()))

    def of(self, name: str) -> tuple[AreaStep, ...]:
        """Return a holder's passages that are to be told."""
        return self._steps.get(name, ())

    def names(self) -> set[str]:
        """Return the holders who have passages that are to be told, or were told lately."""
        return {*self._steps, *(name for name, _ in self._lately)}

    def add(self, name: str, step: AreaStep, *, made_apart: bool) -> None:
        """Add a passage. `made_apart`: the other gateways could not be asked when it was made."""
        self._steps[name] = (*self.of(name), step)
        self.uncounted.add(step)
        if made_apart:
            self._made_apart.add(step)

    def was_apart(self, steps: Iterable[AreaStep]) -> bool:
        """Return whether one of these was made while the other gateways could not be asked."""
        return not self._made_apart.isdisjoint(steps)

    def put_back(self, name: str, entry: HolderEntry) -> None:
        """Tell passages again that were acknowledged, and that the holder's entry lacks."""
        waiting = self.of(name)
        lost = [step for other, step in self._lately if other == name and step not in waiting and entry.lacks(step)]
        if lost:
            self._steps[name] = (*waiting, *lost)

    def told(self, name: str, steps: Collection[AreaStep]) -> None:
        """Take out passages that were acknowledged, or that the entry has or is too full for."""
        self._lately.extend((name, step) for step in steps)
        self._made_apart.difference_update(steps)
        left = tuple(step for step in self._steps.pop(name, ()) if step not in steps)
        if left:
            self._steps[name] = left
