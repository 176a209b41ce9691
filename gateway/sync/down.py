"""Down-sync: central's devices, cameras and access cards, pulled into the store; only what changed is written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from typing import TypeVar

import structlog

from gateway.clock import Clock, Stamp
from gateway.domain.errors import CentralRefused
from gateway.domain.events import Event, EventKind
from gateway.domain.writes import FIRST_PROVISIONAL_ID
from gateway.store import Entry, KnownRecord, Records, Store
from gateway.store.keepers import record_kind, record_name, record_text
from gateway.sync.absence import ById
from gateway.sync.answers import CentralFailed
from gateway.sync.cards import CardPull, CardsPulled
from gateway.sync.central import CentralClient
from gateway.sync.field_map import CardFieldMap
from gateway.sync.lists import Take, Told, read_by_cursor, read_whole
from gateway.sync.sweep import Page, Tally

log = structlog.get_logger(__name__)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class PullReport:
    """What the last pull brought.

    Attributes:
        at: when it ended.
        devices: devices that central listed.
        cameras: cameras that central listed.
        cards: what became of the cards.
        anew: whether all was written anew.
        problems: one sentence per part that central refused or that could not be believed.
    """

    at: Stamp
    devices: int = 0
    cameras: int = 0
    cards: CardsPulled = field(default_factory=CardsPulled)
    anew: bool = False
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a pull has come: how many records of its present part came, of how many; None when nobody said."""

    part: str
    received: int = 0
    count: int | None = None


class DownSync:
    """Pulls everything that comes from central, one part after the other. A refused part does not stop the others."""

    def __init__(
        self,
        *,
        client: CentralClient,
        store: Store,
        clock: Clock,
        zone: tzinfo = UTC,
        fields: CardFieldMap | None = None,
    ) -> None:
        self._client = client
        self._store = store
        self._clock = clock
        self._cards = CardPull(client=client, store=store, clock=clock, zone=zone, fields=fields or CardFieldMap())
        self._by_id = {noun: ById(client=client, path=f"/v1/{noun}", names=(noun,)) for noun in ("device", "camera")}
        self._missing: dict[str, AbstractSet[int]] = {}
        self._report: PullReport | None = None
        self._doubted = False
        self._progress: Progress | None = None

    @property
    def report(self) -> PullReport | None:
        """The last pull that reached its end; None before the first."""
        return self._report

    @property
    def progress(self) -> Progress | None:
        """How far the pull under way has come; None between pulls."""
        return self._progress

    async def pull(self, *, anew: bool = False) -> PullReport:
        """Pull once, cards first: what was taken from people takes effect before all else.

        `anew`: write every record, changed or not. Raises CentralUnavailable when central cannot be reached,
        StoreError when the disk refuses.
        """
        try:
            return await self._pull(anew=anew)
        finally:
            self._progress = None

    async def _pull(self, *, anew: bool) -> PullReport:
        problems: list[str] = []
        cards = await self._part(lambda: self._cards.pull(self._telling("access cards"), anew=anew), problems)
        cards = cards or CardsPulled()
        devices = await self._part(lambda: self._devices(anew=anew), problems)
        cameras = await self._part(lambda: self._cameras(anew=anew), problems)
        problems += [problem for problem in (_problem(devices), _problem(cameras), cards.problem) if problem]
        report = PullReport(
            at=self._clock.wall(),
            devices=len(devices.ids) if devices else 0,
            cameras=len(cameras.ids) if cameras else 0,
            cards=cards,
            anew=anew,
            problems=tuple(problems),
        )
        if problems and (self._report is None or self._report.problems != report.problems):
            log.warning("pull_incomplete", problems=problems)
        self._report = report
        await self._tell(cards)
        return report

    async def _part(self, pull: Callable[[], Awaitable[_T]], problems: list[str]) -> _T | None:
        try:
            return await pull()
        except (CentralRefused, CentralFailed) as error:
            problems.append(str(error))
            return None

    def _telling(self, part: str) -> Told:
        self._progress = Progress(part)

        def told(received: int, count: int | None) -> None:
            self._progress = Progress(part, received, count)
            self._store.changes.bump()

        return told

    async def _devices(self, *, anew: bool) -> Tally:
        self._telling("devices")

        async def read(take: Take) -> Tally:
            return await read_by_cursor(self._client, path="/v1/device/list", resource="devices", take=take)

        return await self._records(self._store.devices, "device", read, anew=anew)

    async def _cameras(self, *, anew: bool) -> Tally:
        self._telling("cameras")

        async def read(take: Take) -> Tally:
            return await read_whole(self._client, path="/v1/camera/list", resource="cameras", take=take)

        return await self._records(self._store.cameras, "camera", read, anew=anew)

    async def _records(
        self, records: Records, noun: str, read: Callable[[Take], Awaitable[Tally]], *, anew: bool
    ) -> Tally:
        """Take over what changed; what two whole pulls in a row did not bring goes, unless central still has it."""
        written = self._store.held.pull_begins(noun)
        known = {item.id: item.record for item in await records.all()}

        async def take(page: Page) -> None:
            arriving = await self._store.held.arriving(noun, [found for found, _ in page])
            changed = [
                KnownRecord(
                    id=found,
                    name=record_name(noun, found, record),
                    kind=record_kind(record),
                    at_site=False,
                    record=text,
                )
                for found, record in page
                if ((text := record_text(record)) != known.get(found) or anew)
                and found not in written
                and (found in known or not arriving.is_own(record))
            ]
            if changed:
                await records.pulled(changed, removed=(), now=self._clock.wall().micros)

        tally = await read(take)
        if not tally.problem:
            centrals = {found for found, record in known.items() if record != "{}" and found < FIRST_PROVISIONAL_ID}
            missing = centrals - tally.ids - written
            due = missing & self._missing.get(noun, frozenset())
            asked = await self._by_id[noun].ask(sorted(due), listed=sorted(tally.ids)) if due else None
            if asked is not None and (gone := asked.gone | asked.unsaid):
                await records.pulled((), removed=gone, now=self._clock.wall().micros)
            if asked is not None and asked.there:
                await take(asked.there)
                tally.fault(f"{len(asked.there)} that central still has are not on its list")
            self._missing[noun] = missing
        return tally

    async def _tell(self, cards: CardsPulled) -> None:
        """Record what a technician should know of this pull."""
        stamp = self._clock.wall()
        if cards.added or cards.changed or cards.removed:
            text = f"{cards.added} access cards added, {cards.changed} changed, {cards.removed} removed"
            await self._record(EventKind.CARDS_CHANGED, stamp, text)
        if cards.newly_held_back:
            text = f"central lists {cards.held_back} cards fewer than before; they stay until the next pull agrees"
            await self._record(EventKind.SWEEP_SUSPENDED, stamp, text)
        if cards.problem and not self._doubted:
            await self._record(EventKind.SWEEP_SUSPENDED, stamp, f"no card is removed: {cards.problem}")
        self._doubted = bool(cards.problem)

    async def _record(self, kind: EventKind, stamp: Stamp, text: str) -> None:
        event = Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, description=text)
        await self._store.journal.record(Entry(events=(event,)))


def _problem(tally: Tally | None) -> str:
    return tally.problem if tally else ""
