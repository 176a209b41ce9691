"""Synchronisation with central: pulling and sending, side by side, for as long as the gateway runs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog

from gateway.central.client.state import CentralState
from gateway.central.lane_commands import LaneCommands
from gateway.central.pull.card_notices import CardNotices
from gateway.central.pull.pull import DownSync, PullReport
from gateway.central.push.evidence import EvidenceSender
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.reconcile import Reconcile
from gateway.central.push.upstream import Upstream
from gateway.domain.errors import CentralUnavailable, StoreError
from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Backoff, Supervisor
from gateway.store import GIGABYTE, Backlog, Books, Entry, Journal
from gateway.store.outbox.backlog_quota import BacklogQuota
from gateway.texts import Text, Words, text

log = structlog.get_logger(__name__)

_WARN_FROM: Final = 0.8
_OVER_BELOW: Final = 0.7

DEFAULT_BYTES_PER_SECOND: Final = 1_000_000
"""The average bandwidth that pulls may take."""
_STRETCH = 1.5
_MOST_STRETCHES = 40
_LEAST_SHARE = 0.1  # the rest after a pull that took longer than the interval, as a share of its time
_JITTER = 0.1
_REFUSED_SECONDS = 5.0


class BacklogWarning:
    """The warning that the backlog is nearly full: from 80 % of its quota, until it falls below 70 %."""

    def __init__(self, *, backlog: BacklogQuota, journal: Journal, clock: Clock) -> None:
        self._backlog = backlog
        self._journal = journal
        self._clock = clock
        self._warned = False
        self.notice: Words = ""
        """A sentence for the page while the backlog is nearly full, else ""."""

    async def look(self) -> None:
        """Read the backlog's size, and record an event when it has passed 80 % of the quota. Raises StoreError."""
        backlog = await self._backlog.usage()
        if self._warned and backlog.share < _OVER_BELOW:
            self._warned = False
        if not self._warned and backlog.share >= _WARN_FROM:
            await self._report(backlog)
            self._warned = True
        self.notice = _notice(backlog) if self._warned else ""

    async def _report(self, backlog: Backlog) -> None:
        log.warning("backlog_nearly_full", bytes=backlog.bytes, most=backlog.most)
        stamp = self._clock.wall()
        event = Event(
            kind=EventKind.BACKLOG_NEARLY_FULL,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=text("event.backlog_nearly_full", said=_notice(backlog)),
            data={"bytes": backlog.bytes, "most_bytes": backlog.most},
        )
        await self._journal.record(Entry(events=(event,)))


def _notice(backlog: Backlog) -> Text:
    return text(
        "central.backlog_nearly_full",
        amount=f"{backlog.bytes / GIGABYTE:.2f}",
        most=f"{backlog.most / GIGABYTE:g}",
    )


def stretched(*, pull_seconds: float, longest: float, quiet: int) -> float:
    """Return the seconds between pulls after `quiet` pulls in a row that changed nothing.

    They grow by half with each such pull, up to `longest`. A change brings back `pull_seconds`.
    """
    return min(pull_seconds * _STRETCH ** min(quiet, _MOST_STRETCHES), max(pull_seconds, longest))


def rest_after(*, took: float, pull_seconds: float) -> float:
    """Return the seconds to rest after a pull, so that pulls start `pull_seconds` apart.

    A pull that takes longer than that is followed by a short rest.
    """
    return max(pull_seconds - took, min(pull_seconds, took * _LEAST_SHARE))


def bandwidth_rest(*, took: float, received: int, bytes_per_second: float) -> float:
    """Return the seconds to rest after a pull, so that pulls receive no more than `bytes_per_second` on average."""
    return received / bytes_per_second - took


@dataclass(frozen=True, slots=True)
class SyncSnapshot:
    """State of synchronisation: central, the last complete pull, and the outbox's books."""

    central: CentralState
    pull: PullReport | None
    books: Books


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncPace:
    """The pace of the synchronisation.

    Attributes:
        pull_seconds: the time between two pulls.
        longest_pull_seconds: the time that it becomes while pulls change nothing; None: it does not.
        bytes_per_second: the average bandwidth that pulls may take.
        clock_alert_seconds: by how much central's clock and this machine's may differ without an alert.
        away_backoff: spaces pulls while central does not answer, at most `pull_seconds` apart.
    """

    pull_seconds: float
    longest_pull_seconds: float | None = None
    bytes_per_second: float = DEFAULT_BYTES_PER_SECOND
    clock_alert_seconds: float = 30.0
    away_backoff: Backoff = field(default_factory=lambda: Backoff(first=2.0, longest=60.0))


class Sync:
    """Runner of pulls, the outbox, evidence, central's commands and comparisons. A failure of one stops no other."""

    def __init__(
        self,
        upstream: Upstream,
        *,
        down: DownSync,
        sender: OutboxSender,
        pace: SyncPace,
        evidence: EvidenceSender | None = None,
        commands: LaneCommands | None = None,
        reconcile: Reconcile | None = None,
    ) -> None:
        """Start without contact to central."""
        store, clock = upstream.store, upstream.clock
        self._backlog = BacklogWarning(backlog=store.backlog, journal=store.journal, clock=clock)
        self._evidence = evidence
        self._commands = commands
        self._reconcile = reconcile
        self.clock_alert_seconds = pace.clock_alert_seconds
        self._pace = pace
        self._clocks_differ = False
        self._reported_not_permitted: frozenset[str] = frozenset()
        self._reporting = asyncio.Lock()
        self._client = upstream.client
        self._down = down
        self._sender = sender
        self._outbox = store.outbox
        self._journal = store.journal
        self._changes = store.changes
        self._clock = clock
        self._longest_pull = pace.longest_pull_seconds or pace.pull_seconds
        self._wanted = asyncio.Event()
        self.notices = CardNotices(down=down, clock=clock, pull_soon=self.pull_soon, pull_seconds=pace.pull_seconds)
        self._reported_reach: bool | None = None

    async def run(self) -> None:
        """Synchronise until cancelled, then sign out."""
        try:
            async with Supervisor(clock=self._clock) as supervisor:
                supervisor.keep("pull", partial(self._while_disk_refuses, self._keep_pulling))
                supervisor.keep("card notices", partial(self._while_disk_refuses, self.notices.run))
                supervisor.keep("outbox", partial(self._while_disk_refuses, self._keep_sending))
                if self._evidence is not None:
                    supervisor.keep("evidence", partial(self._while_disk_refuses, self._evidence.run))
                if self._commands is not None:
                    supervisor.keep("central commands", partial(self._while_disk_refuses, self._commands.run))
                if self._reconcile is not None:
                    supervisor.keep("reconcile", partial(self._while_disk_refuses, self._reconcile.run))
                await asyncio.Event().wait()
        except asyncio.CancelledError:  # only then: a closed client cannot be opened again
            await self._client.close()
            raise

    async def trust_anew(self) -> None:
        """Read the authorities for central's certificate again, for new connections, the relay's too."""
        await self._client.trust.renew()

    def pull_soon(self) -> None:
        """Pull now instead of at the end of the present rest."""
        self._wanted.set()

    @property
    def failing(self) -> tuple[str, ...]:
        """Errors of operations with which central fails repeatedly, a sentence each."""
        return self._sender.failing

    @property
    def refreshing(self) -> bool:
        """True while a full fetch runs or is due."""
        return self._down.refreshing

    async def refresh(self) -> None:
        """Pull now, and write every record again, changed or not. The order stays on disk until that is done.

        Raises StoreError.
        """
        await self._down.anew.ask()
        self._wanted.set()

    async def reconcile(self, *, days: int) -> None:
        """Order a comparison with central of what was sent in the last `days`; what central lacks is sent again.

        Raises StoreError.
        """
        if self._reconcile is not None:
            await self._reconcile.ask(days)

    @property
    def reconciling(self) -> bool:
        """True while records are, or will be, compared with central."""
        return self._reconcile is not None and self._reconcile.under_way

    @property
    def reconcile_progress(self) -> str:
        """Progress of the comparison, in words."""
        return self._reconcile.progress if self._reconcile is not None else ""

    @property
    def reconciled(self) -> str:
        """Result of the last comparison, in words."""
        return self._reconcile.result if self._reconcile is not None else ""

    @property
    def backlog_notice(self) -> Words:
        """A sentence while the backlog is nearly full, else ""."""
        return self._backlog.notice

    @property
    def unreadable_events(self) -> int:
        """Number of central's events that could not be read at the last poll."""
        return self._commands.unreadable if self._commands is not None else 0

    async def snapshot(self) -> SyncSnapshot:
        """Return the state at this moment. Raises StoreError when the books cannot be read."""
        return SyncSnapshot(central=self._client.state, pull=self._down.report, books=await self._outbox.books())

    async def _while_disk_refuses(self, child: Callable[[], Awaitable[None]]) -> None:
        """Run `child` again, some seconds after each StoreError. The store itself reports the error."""
        while True:
            try:
                await child()
            except StoreError as error:
                log.debug("sync_waits_for_disk", error=str(error))
                await asyncio.sleep(_REFUSED_SECONDS * random.uniform(1, 1 + _JITTER))  # noqa: S311 (spreads load)

    async def _keep_pulling(self) -> None:
        await self._down.anew.recall()
        failures = quiet = 0
        while True:
            self._wanted.clear()
            began, before = self._clock.monotonic(), self._client.received
            failed = ""
            try:
                quiet = quiet + 1 if (await self._down.pull()).is_quiet else 0
            except CentralUnavailable as error:
                failed = str(error)
                log.debug("pull_put_off", error=failed)  # the client logs loss and recovery, once each
            took, received = self._clock.monotonic() - began, self._client.received - before
            failures = failures + 1 if failed or self._down.anew.left else 0
            apart = stretched(pull_seconds=self._pace.pull_seconds, longest=self._longest_pull, quiet=quiet)
            rest = rest_after(took=took, pull_seconds=self.notices.apart(apart, began=began))
            if failures:  # a technician may be waiting
                backoff = self._pace.away_backoff.wait(failures)
                rest = min(self._pace.pull_seconds, backoff if failed else max(backoff, took))
            rest = max(rest, bandwidth_rest(took=took, received=received, bytes_per_second=self._pace.bytes_per_second))
            await self._report()
            self._changes.bump()
            await _sleep_or(self._wanted, rest * random.uniform(1 - _JITTER, 1))  # noqa: S311 (spreads load)

    async def _keep_sending(self) -> None:
        await self._sender.run(lambda _: self._report())

    async def _report(self) -> None:
        """Record changes of central's state as events, once each. Both pulling and sending call this."""
        async with self._reporting:
            await self._report_reach()
            await self._report_clocks()
            await self._report_permissions()
            await self._backlog.look()

    async def _report_clocks(self) -> None:
        offset = self._client.state.clock_offset
        if offset is None or self._clocks_differ is offset.exceeds(self.clock_alert_seconds):
            return
        differ = not self._clocks_differ
        kind = EventKind.CLOCKS_DIFFER if differ else EventKind.CLOCKS_AGREE
        said = text("event.clocks_differ", said=offset.sentence()) if differ else text("central.clocks_agree")
        log.warning("clocks_differ", seconds=round(offset.seconds)) if differ else log.info("clocks_agree")
        await self._record(kind, said)
        self._clocks_differ = differ

    async def _report_permissions(self) -> None:
        missing = dict(self._client.state.not_permitted)
        for operation in sorted(missing.keys() - self._reported_not_permitted):
            why = missing[operation] or text("central.says_no_why")
            await self._record(EventKind.NOT_PERMITTED, text("event.not_permitted", operation=operation, why=why))
        self._reported_not_permitted = frozenset(missing)

    async def _record(self, kind: EventKind, said: Words) -> None:
        stamp = self._clock.wall()
        event = Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, text=said)
        await self._journal.record(Entry(events=(event,)))

    async def _report_reach(self) -> None:
        """Record once that central was reached or lost."""
        state = self._client.state
        if state.reported is None or state.reported == self._reported_reach:
            return
        reported, self._reported_reach = self._reported_reach, state.reported
        kind = EventKind.CENTRAL_REACHED if state.reported else EventKind.CENTRAL_LOST
        try:
            await self._record(kind, text("event.central_reached") if state.reported else state.last_error)
        except StoreError:
            self._reported_reach = reported
            raise


async def _sleep_or(wake: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return
