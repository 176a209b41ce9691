"""One life of the gateway, from its start to its stop or the power cut, wired like the daemon but without its web."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from drivers.contract import CardPresented, Driver, Gate, ShowingReader
from drivers.gates.limits import Limits
from gateway.domain.commands import GateAction
from gateway.domain.errors import CommandRefused, StoreError
from gateway.domain.events import Event, EventKind
from gateway.lanes import Lanes
from gateway.runtime.supervision import Progress, Supervisor
from gateway.site import Site
from gateway.store import Entry, EventFilter, Journal, Recorded, Store
from simulation.virtual_site import observations as seen
from simulation.virtual_site.central import CentralSync
from simulation.virtual_site.virtual_time import VirtualClock
from simulation.virtual_site.witness import Witness

_LAST_WORDS_SECONDS = 30.0
_PAGE = 2000


class Liveness:
    """The flag that a life goes on, shared with the drivers that report to it."""

    def __init__(self) -> None:
        self.alive = True


@dataclass(frozen=True, slots=True)
class SimulatedDrivers:
    """The drivers of the simulated field, as lanes take them: every gate has a position and a command to stop."""

    gates: Mapping[int, Gate]
    drivers: tuple[Driver, ...]
    showing: Mapping[int, ShowingReader] = field(default_factory=dict)
    limits: Mapping[int, Limits] = field(default_factory=dict)
    unplaced: frozenset[int] = frozenset()

    @property
    def stoppable(self) -> frozenset[int]:
        """The device ids of the gates that have a command to stop."""
        return frozenset(self.gates)


class WitnessedJournal:
    """The store's journal. It reports to the witness everything that it acknowledges."""

    def __init__(self, *, journal: Journal, witness: Witness, clock: VirtualClock, liveness: Liveness) -> None:
        self._journal = journal
        self._witness = witness
        self._clock = clock
        self._liveness = liveness

    async def record(self, entry: Entry) -> Recorded:
        """Record an entry, and report to the witness when it is on disk."""
        recorded = await self._journal.record(entry)
        if self._liveness.alive:
            now = self._clock.monotonic()
            self._witness.see(seen.Acknowledged(now, entry, recorded, self._clock.true_micros()))
        return recorded


@dataclass(frozen=True, slots=True)
class Around:
    """The surroundings of a life, which last longer than it, and the types of its parts."""

    site: Site
    clock: VirtualClock
    witness: Witness
    lanes: Callable[..., Lanes]
    store: Callable[..., Store]
    central_sync: Callable[[Store, Lanes, Path], CentralSync]


class Life:
    """One life of the gateway, which lasts until `stop` or `die`."""

    def __init__(
        self,
        *,
        around: Around,
        folder: Path,
        boot: str,
        liveness: Liveness,
        gates: Mapping[int, Gate],
        modules: Mapping[int, Driver],
        proven: int,
    ) -> None:
        """Prepare a life. `proven`: an earlier life has already found events up to this id in the store."""
        self._around = around
        self._boot = boot
        self._liveness = liveness
        self._drivers: Mapping[int, Driver] = {**gates, **modules}
        self.proven = proven
        self._ended = asyncio.Event()
        self._clean = True
        self.came_up = asyncio.Event()
        clock = around.clock
        self.store = around.store(folder=folder, site_name=around.site.site.name, sends=True)
        self.store.journal = WitnessedJournal(  # type: ignore[assignment]  # fulfils what the store's users use of it
            journal=self.store.journal, witness=around.witness, clock=clock, liveness=liveness
        )
        self.lanes = around.lanes(
            site=around.site,
            field=SimulatedDrivers(gates, tuple(self._drivers.values())),
            store=self.store,
            clock=clock,
            progress=Progress(clock=clock),
            boot=boot,
        )
        self.central_sync = around.central_sync(self.store, self.lanes, folder)
        self.up = False

    async def live(self) -> None:
        """Run the life. Returns once all its tasks have ended."""
        clock = self._around.clock
        await self.store.open()
        try:
            async with AsyncExitStack() as stack:
                lasting = await stack.enter_async_context(Supervisor(clock=clock))
                lasting.keep("store", self.store.run)
                lasting.keep("recorder", self.lanes.recorder.run)
                await self._remember_start()
                async with Supervisor(clock=clock) as services:
                    self.lanes.start(services)
                    for number, driver in self._drivers.items():
                        services.keep(f"device-{number}", partial(driver.run, self.lanes.report))
                    services.keep("central sync", self.central_sync.run)
                    self.up = True
                    self.came_up.set()
                    await self._ended.wait()
                    self.up = False
                    if self._clean:
                        await self.lanes.until_no_gate_closes()
                if self._clean:
                    await self._last_words()
        finally:
            await self.store.close()
        if self._clean:
            self._around.witness.see(seen.Ended(clock.monotonic(), self._boot, clean=True))
        self._liveness.alive = False

    def stop(self) -> None:
        """Stop the gateway in order."""
        self._around.witness.see(seen.ToldToStop(self._around.clock.monotonic()))
        self._ended.set()

    def die(self) -> None:
        """Cut the power in this instant. Tasks that still run have no effect any more."""
        if self._liveness.alive:
            self._around.witness.see(seen.Ended(self._around.clock.monotonic(), self._boot, clean=False))
        self.up = self._liveness.alive = self._clean = False
        self.central_sync.cut()
        self._ended.set()

    def present(self, reader_id: int, card: str) -> None:
        """Report a card that a reader read."""
        if self.up:
            at = self._around.clock.monotonic()
            self.lanes.report(CardPresented(reader_id, bit_length=0, bits=0, text=card, at=at))

    async def command(self, device_id: int, action: GateAction) -> str:
        """Pass on a person's command; return why it was refused, or ""."""
        try:
            await self.lanes.command(device_id=device_id, action=action, source="user:guard")
        except (CommandRefused, StoreError) as error:
            return str(error)
        return ""

    async def _remember_start(self) -> None:
        found = await read_back(self.store, above=self.proven)
        self._around.witness.see(seen.Found(self._around.clock.monotonic(), *found, whole=False), taped=False)
        self.proven = max(found[0], default=self.proven)
        unfinished = tuple(command.command_id for command in await self.store.commands.unfinished())
        self._around.witness.see(seen.Started(self._around.clock.monotonic(), self._boot, unfinished))
        events = [self._event(EventKind.GATEWAY_STARTED, "the gateway has started")]
        if self.store.was_unclean:
            events.insert(0, self._event(EventKind.POWER_LOST, "the last run ended without warning"))
        events += [self._event(EventKind.STORE_DAMAGED, text) for text in self.store.salvaged]
        await self.store.journal.record(Entry(events=tuple(events)))
        await self.lanes.settle_unfinished()
        await self.lanes.resume()
        await self.central_sync.recall()

    async def _last_words(self) -> None:
        self.lanes.recorder.put(Entry(events=(self._event(EventKind.GATEWAY_STOPPED, "the gateway was stopped"),)))
        await self.lanes.recorder.drained(within=_LAST_WORDS_SECONDS)

    def _event(self, kind: EventKind, text: str) -> Event:
        stamp = self._around.clock.wall()
        return Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, text=text)


async def read_back(store: Store, *, above: int) -> tuple[dict[int, tuple[int, int, str]], frozenset[int]]:
    """Read a store: the events with higher ids and, when read from the beginning, the passages."""
    events: dict[int, tuple[int, int, str]] = {}
    before = 0
    while True:
        page = await store.events.page(EventFilter(), before=before, limit=_PAGE)
        wanted = [event for event in page.events if event.id > above]
        events.update((event.id, (event.type, event.date_at, event.description)) for event in wanted)
        if page.next_cursor is None or len(wanted) < len(page.events):
            break
        before = page.next_cursor
    passages: set[int] = set()
    before = 0
    while above == 0:
        rows = await store.passages.page(before=before, limit=_PAGE)
        passages.update(row.id for row in rows)
        if len(rows) < _PAGE:
            break
        before = rows[-1].id
    return events, frozenset(passages)
