"""The store: two database files and one object per aggregate."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from gateway.domain.announcements import PlaceNames
from gateway.domain.errors import StoreError
from gateway.runtime.clock import ClockOffset
from gateway.runtime.timings import Timings
from gateway.store.accounts.accounts import Accounts, SecondFactorSeal
from gateway.store.accounts.api_keys import ApiKeyRecords
from gateway.store.accounts.remembered_accounts import RememberedAccounts
from gateway.store.accounts.sessions import SessionRecords
from gateway.store.cards.cards import Cards
from gateway.store.cards.grants import Grants
from gateway.store.cards.rows import Notes
from gateway.store.engine.access_log import AccessLog
from gateway.store.engine.changes import Changes
from gateway.store.engine.connection import Connect, SqliteConnection
from gateway.store.engine.database import Database
from gateway.store.engine.faults import refused
from gateway.store.engine.migrations import Family, after_salvage, migrations
from gateway.store.events.commands import CommandRecords
from gateway.store.events.day_counts import DayCounts
from gateway.store.events.events import Events
from gateway.store.events.expiry import Expiry
from gateway.store.events.journal import Journal, box_number
from gateway.store.events.parking_entries import ParkingEntries
from gateway.store.events.passages import Passages
from gateway.store.events.presence import PresenceRows
from gateway.store.events.read_cursors import ReadCursors
from gateway.store.footage.camera_events import CameraEvents
from gateway.store.footage.chain_links import ChainLinks
from gateway.store.footage.clock_corrections import ClockCorrections
from gateway.store.footage.evidence import EvidenceRows
from gateway.store.footage.segments import Segments
from gateway.store.outbox.backlog_quota import DEFAULT_BYTES, BacklogQuota, check_backlog
from gateway.store.outbox.delivered_records import DeliveredRecords
from gateway.store.outbox.deliveries import RecentWrites
from gateway.store.outbox.outbox import Outbox
from gateway.store.outbox.pending_writes import PendingWrites
from gateway.store.outbox.records import Records, RegisteredDevices
from gateway.store.outbox.references import References
from gateway.store.outbox.undecided import RefusedRows, UnknownOutcomes
from gateway.store.webhooks import Webhooks

_NOWHERE = PlaceNames()


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordTimes:
    """The clock by which the store judges the times of records.

    Attributes:
        offset: returns the present offset between wall and monotonic time; without it, times that an untrusted clock
            stamps cannot be corrected later.
        now: returns wall micros, in any thread; without it, no event is marked as late.
    """

    offset: Callable[[], ClockOffset] | None = None
    now: Callable[[], int] | None = None


_BY_NO_CLOCK = RecordTimes()


class Store:
    """Everything on disk that is not media.

    Call `open`, keep `run` alive as a task, and call `close` at the end, which may be called again. Reading and writing
    work from `open` to `close`; `run` maintains the files meanwhile.

    Cards are in a database file of their own, so that damage to one file does not affect the other. `database` is the
    site's file itself, for callers that need rows that no aggregate offers.
    """

    def __init__(
        self,
        *,
        folder: Path,
        site_name: str,
        sends: bool,
        times: RecordTimes = _BY_NO_CLOCK,
        places: PlaceNames = _NOWHERE,
        backlog_bytes: int = DEFAULT_BYTES,
        connect: Connect = SqliteConnection,
        boot: str = "",
    ) -> None:
        """Create the aggregates; nothing is opened yet.

        Args:
            folder: the data folder.
            site_name: the site's name in records for central.
            sends: whether there is a central, so that records for it are put into the outbox.
            times: the clock by which records are judged.
            places: names of lanes and devices for messages to webhooks.
            backlog_bytes: the quota of disk space for everything that waits for central.
            connect: makes the connections; simulations pass their own, on virtual time.
            boot: the present boot of the machine, "" if unknown: both files are then checked after any unclean end.
        """
        self._folder = folder
        self._lock = _FolderLock(folder)
        self._access_log = AccessLog(path=folder / "access.log")
        self.database = _database(
            folder, "site", connect=connect, boot=boot, mend=self._access_log.mend, opened=self._look_through
        )
        self._cards = _database(folder, "cards", connect=connect, boot=boot)
        self.changes = Changes()
        self.notes = Notes(database=self._cards)
        self.cards = Cards(database=self._cards, notes=self.notes, has_central=sends)
        self.webhooks = Webhooks(database=self.database, places=places, recorded=self.changes, log=self._access_log)
        self.journal = Journal(
            database=self.database,
            changes=self.changes,
            site_name=site_name,
            sends=sends,
            offset=times.offset,
            places=places,
            announced=self.webhooks.changes.bump,
            now=times.now,
        )
        self.devices = Records(database=self.database, table="device")
        self.cameras = Records(database=self.database, table="camera")
        self._add_events()
        self._add_footage(sends=sends)
        self._add_outbox(site_name=site_name, backlog_bytes=backlog_bytes)
        self._add_accounts(SecondFactorSeal(path=folder / "second-factor.key"))

    def rename(self, *, site_name: str, places: PlaceNames) -> None:
        """Use these names in new records for central and new messages to webhooks from now on."""
        self.journal.rename(site_name=site_name, places=places)
        self.webhooks.places = places
        self.delivered_records.site_name = site_name

    def _add_events(self) -> None:
        database, changes = self.database, self.changes
        self.events = Events(database=database)
        self.day_counts = DayCounts(database=database)
        self.read_cursors = ReadCursors(database=database)
        self.expiry = Expiry(database=database, changes=changes)
        self.passages = Passages(database=database)
        self.entries = ParkingEntries(database=database)
        self.presence = PresenceRows(database=database)
        self.commands = CommandRecords(database=database)

    def _add_footage(self, *, sends: bool) -> None:
        database, changes = self.database, self.changes
        self.segments = Segments(database=database)
        self.clock_corrections = ClockCorrections(database=database)
        self.chain_links = ChainLinks(database=database)
        self.camera_events = CameraEvents(database=database, changes=changes)
        self.evidence = EvidenceRows(database=database, changes=changes, sends=sends)

    def _add_outbox(self, *, site_name: str, backlog_bytes: int) -> None:
        database, changes, recent = self.database, self.changes, RecentWrites()
        self.outbox = Outbox(database=database, recent=recent)
        self.refused = RefusedRows(database=database, changes=changes)
        self.unknown_outcomes = UnknownOutcomes(database=database, cards=self._cards, changes=changes)
        self.delivered_records = DeliveredRecords(database=database, changes=changes, site_name=site_name)
        self.backlog = BacklogQuota(database=database, most=backlog_bytes)
        self.pending_writes = PendingWrites(database=database, changes=changes, recent=recent, quota=self.backlog)
        self.references = References(database=database)
        self.registered_devices = RegisteredDevices(database=database, changes=changes)

    def _add_accounts(self, seal: SecondFactorSeal) -> None:
        database, log = self.database, self._access_log
        self.sessions = SessionRecords(database=database)
        self.grants = Grants(database=database, changes=self.changes, log=log)
        self.accounts = Accounts(database=database, seal=seal, log=log)
        self.api_keys = ApiKeyRecords(database=database, log=log)
        self.remembered_accounts = RememberedAccounts(database=database)

    def _look_through(self, connection: sqlite3.Connection) -> None:
        check_backlog(connection)
        self._access_log.agree(connection)

    async def open(self) -> None:
        """Open both files. Raises StoreError with one sentence, also if another gateway uses the folder."""
        self._lock.take()
        async with AsyncExitStack() as undo:
            undo.callback(self._lock.release)
            await self.database.open()
            undo.push_async_callback(self.database.close)
            await self._cards.open()
            undo.push_async_callback(self._cards.close)
            await self._open_cards()
            undo.pop_all()

    async def _open_cards(self) -> None:
        """Read the notes of the cards' file, and note in the site's file afterwards that there is one.

        In this order a power cut during the first start is no loss of cards.
        """
        expected = False
        with suppress(StoreError):  # a file that cannot be read does not prevent the start
            expected = await self.database.read(_has_cards_file)
        is_marked = await self.cards.open(expected=expected)
        if is_marked and not expected:
            with suppress(StoreError):  # nor does a disk that takes nothing; the next start notes it
                await self.database.write(lambda connection: connection.execute("UPDATE box SET has_cards_file = 1"))

    async def run(self) -> None:
        """Maintain both files and the index of cards in memory, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.database.run(), name="tend-site")
            group.create_task(self._cards.run(), name="tend-cards")
            group.create_task(self.cards.run(), name="index-cards")

    async def close(self) -> None:
        """Commit all queued writes and close both files."""
        try:
            await self.database.close()
        finally:
            try:
                await self._cards.close()
                self.cards.close()
            finally:
                self._lock.release()

    async def close_as_found(self) -> None:
        """Close, but if this opening followed a crash or a power cut, make the next one count as such too."""
        unclean = self.was_unclean
        await self.close()
        if unclean:
            self.database.doubt_end()

    async def box_number(self) -> int:
        """Return the number that this data folder drew once: replaced boxes have others. Raises StoreError."""
        return await self.database.read(box_number)

    @property
    def was_unclean(self) -> bool:
        """True if the site's file was not closed properly last time: after a crash or a power cut."""
        return self.database.was_unclean

    @property
    def salvaged(self) -> tuple[str, ...]:
        """One sentence per file that lost rows before this opening; see `Database.salvaged` and `Cards.newly_lost`."""
        return tuple(text for text in (self.database.salvaged, self.cards.newly_lost) if text)

    @property
    def failing(self) -> str:
        """The reason why commits fail at present; "" while they work."""
        return self.database.failing or self._cards.failing

    @property
    def damaged(self) -> str:
        """The damage that was found in an open file; see `Database.damaged`."""
        return self.database.damaged or self._cards.damaged

    @property
    def slow_seconds(self) -> float:
        """The duration that most recent commits of a file exceed, in seconds; 0 while commits are quick."""
        return self.database.slow_seconds or self._cards.slow_seconds

    @property
    def commits(self) -> int:
        """The number of commits, refused ones included. It grows at least every 5 s while `run` is alive."""
        return self.database.commits + self._cards.commits

    @property
    def commit_seconds(self) -> Mapping[str, Timings]:
        """The durations of commits, by the name of the file without its suffix."""
        return {database.path.stem: database.commit_seconds for database in (self.database, self._cards)}

    @property
    def waiting(self) -> int:
        """The number of writes that are queued or in a commit that has not ended."""
        return self.database.waiting + self._cards.waiting


def _has_cards_file(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT has_cards_file FROM box").fetchone()[0])


def _database(
    folder: Path,
    family: Family,
    *,
    connect: Connect,
    boot: str,
    mend: Callable[[sqlite3.Connection], str] | None = None,
    opened: Callable[[sqlite3.Connection], None] | None = None,
) -> Database:
    return Database(
        path=folder / f"{family}.db",
        steps=migrations(family),
        after_salvage=after_salvage(family),
        mend=mend,
        opened=opened,
        connect=connect,
        boot=boot,
    )


class _FolderLock:
    """An advisory lock on the data folder, because two gateways would write the same files and command the same gates.

    The kernel releases it when the process ends, however it ends.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock. Raises StoreError if another process has it or there is no such folder."""
        try:
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise refused(self._folder, error, "it cannot be used") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise StoreError(f"another gateway runs on the data folder {self._folder}") from error
        self._descriptor = descriptor

    def release(self) -> None:
        """Release the lock; do nothing if it was never taken."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
