"""Retention of footage: by bytes, by free space, and by days for each class.

There are three classes: incident (pinned by an event that warns or alarms), transaction (pinned by any other event) and
continuous. Footage is deleted after the days of its class, by a trusted clock. A clock that is set forward is only
believed after a day, and footage of this boot is never older than the boot. When bytes or space run out, continuous
footage is deleted, oldest first; footage of events only after its days. Footage of events that central does not have
yet stays in any case.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.recording.evidence_files import EvidenceFiles
from gateway.recording.forecast import StorageForecast, StorageLimits, StorageUse, Strain, forecast
from gateway.recording.index import FootageIndex
from gateway.runtime.clock import Clock, Stamp, offset_of
from gateway.store import Choice, Segment
from gateway.store.footage.clock_corrections import ClockCorrections
from gateway.texts import text

log = structlog.get_logger(__name__)

_DAY_MICROS = 86_400_000_000
_LOOK_SECONDS = 4.0
_MOST_STEPS = 50
_GIGABYTE = 1_000_000_000
_EXPIRY_SECONDS = 600.0
_FORECAST_SECONDS = 60.0
_RATE_MICROS = 6 * 3_600_000_000
_NO_SPACE_BYTES = 1_000_000
_MADE_AT_ONCE = 8_000_000

_MICROS = 1_000_000
TOLERANCE_SECONDS = 600
"""A clock set forward by up to this is followed at once, as any other correction."""
BELIEVED_AFTER_SECONDS = 86_400


def bytes_to_free(use: StorageUse, limits: StorageLimits) -> int:
    """Return the number of bytes to delete, 0 if all limits are kept. Pure."""
    return max(use.footage - limits.cap, limits.floor - use.free, 0)


def must_pause(use: StorageUse, limits: StorageLimits, *, paused: bool) -> bool:
    """Return whether cameras must not write. Pure; `paused`: whether they pause already.

    They pause when less than half of the free-space floor is left, until all of it is free again, because the store on
    the same disk must not run out of space. Footage over the cap alone is no reason to pause.
    """
    return use.free < limits.floor if paused else 2 * use.free < limits.floor


@dataclass(frozen=True, slots=True)
class SettledTime:
    """The last believed wall time, continued by the monotonic clock. Frozen: `seen` returns the next value.

    A clock that is set back is followed at once, because that deletes nothing. A clock that is set forward is believed
    after a day. It is believed at once if wall time becomes trusted for the first time, because a machine without a
    battery starts in the past.

    Attributes:
        micros: the believed wall micros at `uptime`.
        uptime: the monotonic seconds of the last believed reading.
        trusted: whether wall time has ever been trusted.
        doubted_since: since when wall time is ahead (monotonic seconds), None while it is not.
    """

    micros: int
    uptime: float
    trusted: bool
    doubted_since: float | None = None

    def at(self, uptime: float) -> int:
        """Return the believed wall micros at a monotonic time in seconds."""
        return self.micros + int((uptime - self.uptime) * _MICROS)

    def seen(self, wall: Stamp, uptime: float) -> SettledTime:
        """Return the settled time after a reading of both clocks."""
        followed = SettledTime(wall.micros, uptime, self.trusted or wall.trusted)
        if wall.micros - self.at(uptime) <= TOLERANCE_SECONDS * _MICROS or (wall.trusted and not self.trusted):
            return followed
        since = uptime if self.doubted_since is None else self.doubted_since
        if wall.trusted and uptime - since >= BELIEVED_AFTER_SECONDS:
            return followed
        return SettledTime(self.micros, self.uptime, self.trusted, since)


class Retention:
    """Deleter of footage and evidence beyond the limits. Keep `run` alive as a task."""

    def __init__(
        self,
        *,
        index: FootageIndex,
        limits: StorageLimits,
        starved: Callable[[bool], None],
        media_fault: Callable[[], str],
        look_seconds: float = _LOOK_SECONDS,
        first: Callable[[], Awaitable[None]] | None = None,
        evidence_files: EvidenceFiles | None = None,
        boot_id: str = "",
    ) -> None:
        """Keep the collaborators.

        Args:
            index: deletes footage and records events.
            limits: the limits of bytes, space and days.
            starved: called with whether cameras must pause for lack of space.
            media_fault: returns why the media folder must not be used, "" if it may.
            look_seconds: the time between two checks.
            first: called before each check; it may correct the times of footage.
            evidence_files: the files of evidence, which also take space and expire.
            boot_id: the present boot, "" if unknown.
        """
        self._index = index
        self.limits = limits
        self._starved = starved
        self._media_fault = media_fault
        self._look_seconds = look_seconds
        self._first = first
        self._evidence_files = evidence_files
        self._boot_id = boot_id
        self._time: SettledTime | None = None
        self._low_reported = False
        self._paused = False
        self._begin: int | None = None
        self._expired_at = float("-inf")
        self._forecast_at = float("-inf")
        self._strain = Strain()
        self._forecast: StorageForecast | None = None

    def forecast(self) -> StorageForecast | None:
        """Return the forecast of the last check, None before the first."""
        return self._forecast

    async def run(self) -> None:
        """Check the limits every few seconds until cancelled."""
        while True:
            try:
                if not self._media_fault():
                    await self.look()
            except (StoreError, OSError) as error:
                log.warning("footage_not_thinned", error=str(error))
            await asyncio.sleep(self._look_seconds)

    async def look(self) -> None:
        """Finish deletions that have begun, and delete what exceeds the limits now. Raises StoreError, OSError."""
        if self._first is not None:
            await self._first()
        self._settled()  # at every check, because the time before a change of the clock must be known
        try:
            await self._thin_out()
        except StoreError:
            if await self._disk_free() >= _NO_SPACE_BYTES:
                raise
            await self._make_room()
            await self._thin_out()

    async def _thin_out(self) -> None:
        await self._index.delete(await self._index.rows.garbage())
        if self._evidence_files is not None:
            await self._evidence_files.delete_let_go()
        await self._expire()
        use = await self._use()
        steps = 0
        while (wanted := bytes_to_free(use, self.limits)) and steps < _MOST_STEPS:
            steps += 1
            chosen = await self._choose(wanted)
            if not chosen:
                break
            await self._index.delete(chosen)
            log.info("footage_deleted", segments=len(chosen), bytes=sum(segment.size for segment in chosen))
            use = await self._use()
        short = wanted if steps < _MOST_STEPS else 0
        self._judge(use, short=short)
        await self._update_forecast(use, Strain(pinned=short > 0, paused=self._paused))

    async def _expire(self) -> None:
        """Delete footage and evidence after the days of their class. With an untrusted clock nothing is deleted."""
        now, wall = self._index.clock.monotonic(), self._index.clock.wall()
        if not wall.trusted or now - self._expired_at < _EXPIRY_SECONDS:
            return
        choice = replace(
            self._of_events(at_least=2**62),
            end=self._settled() - self.limits.continuous_days * _DAY_MICROS,
            uptime_from=self._uptime() - self.limits.continuous_days * _DAY_MICROS,
        )
        if self._evidence_files is not None:
            await self._evidence_files.expire(
                transactions_before=choice.transactions_from, incidents_before=choice.incidents_from
            )
        for _ in range(_MOST_STEPS):
            gone = await self._index.rows.discard(choice)
            await self._index.delete(gone)
            if gone:
                log.info("footage_expired", segments=len(gone), bytes=sum(segment.size for segment in gone))
            if len(gone) < choice.limit:
                break
        else:
            return  # there is more, which the next check deletes
        self._expired_at = now
        self._begin = None

    async def _choose(self, wanted: int) -> tuple[Segment, ...]:
        """Choose and mark the oldest continuous footage; if there is none, the oldest of events after its days."""
        continuous = Choice(at_least=wanted)
        if self._begin is not None:
            # Older footage is kept for events. It is only searched again when there is nothing else.
            chosen = await self._index.rows.discard(replace(continuous, begin=self._begin))
            if chosen:
                return chosen
            self._begin = None
        if chosen := await self._index.rows.discard(continuous):
            self._begin = chosen[0].started_at
            return chosen
        return await self._index.rows.discard(self._of_events(at_least=wanted))

    def _of_events(self, *, at_least: int) -> Choice:
        """Return the rules for choosing among all footage, that of events included after its days.

        Days count by settled wall time, and for footage of this boot also by monotonic time.
        """
        now, uptime = self._settled(), self._uptime()
        transactions, incidents = (
            days * _DAY_MICROS for days in (self.limits.transaction_days, self.limits.incident_days)
        )
        return Choice(
            at_least=at_least,
            transactions_from=now - transactions,
            incidents_from=now - incidents,
            boot_id=self._boot_id,
            transactions_uptime=uptime - transactions,
            incidents_uptime=uptime - incidents,
        )

    def _settled(self) -> int:
        wall, uptime = self._index.clock.wall(), self._index.clock.monotonic()
        known = self._time or SettledTime(wall.micros, uptime, wall.trusted)
        self._time = known.seen(wall, uptime)
        if self._time.doubted_since == uptime:
            log.warning("clock_set_forward", seconds=(wall.micros - self._time.at(uptime)) // 1_000_000)
        return self._time.at(uptime)

    def _uptime(self) -> int:
        return int(self._index.clock.monotonic() * 1_000_000)

    async def _make_room(self) -> None:
        """Delete a few files before their rows, because on a completely full disk no deletion can be recorded first.

        The rows follow at once, or at the next start.
        """
        chosen = await self._index.rows.free(Choice(at_least=_MADE_AT_ONCE))
        log.warning("room_made", segments=len(chosen), bytes=sum(segment.size for segment in chosen))
        await self._index.delete(chosen)

    async def _disk_free(self) -> int:
        return (await asyncio.to_thread(shutil.disk_usage, self._index.media)).free

    async def _use(self) -> StorageUse:
        footage = await self._index.rows.bytes_kept()
        if self._evidence_files is not None:
            footage += await self._evidence_files.total_bytes()
        return StorageUse(footage=footage, free=await self._disk_free())

    def _judge(self, use: StorageUse, *, short: int) -> None:
        self._paused = must_pause(use, self.limits, paused=self._paused)
        self._starved(self._paused)
        if not short and not self._paused:
            self._low_reported = False
        elif not self._low_reported:
            self._low_reported = True
            self._index.tell(self._low(use, short=short, paused=self._paused))

    async def _update_forecast(self, use: StorageUse, strain: Strain) -> None:
        now = self._index.clock.monotonic()
        if strain == self._strain and now - self._forecast_at < _FORECAST_SECONDS:
            return
        self._forecast_at, self._strain = now, strain
        wall = self._index.clock.wall().micros
        seen, first = await self._index.rows.bytes_since(wall - _RATE_MICROS)
        self._forecast = forecast(
            use, self.limits, seen_bytes=seen, seen_seconds=(wall - first) / 1_000_000, strain=strain
        )

    def _low(self, use: StorageUse, *, short: int, paused: bool) -> Event:
        now = self._index.clock.wall()
        said = text(
            f"event.storage_low.{'paused' if paused else 'recording'}",
            short=f"{short / _GIGABYTE:.2f}",
            kept=f"{use.footage / _GIGABYTE:.2f}",
            free=f"{use.free / _GIGABYTE:.2f}",
            floor=f"{self.limits.floor / _GIGABYTE:.2f}",
        )
        return Event(
            kind=EventKind.STORAGE_LOW,
            date_at=now.micros,
            clock_trusted=now.trusted,
            text=said,
            data={"short_bytes": short, "footage_bytes": use.footage, "free_bytes": use.free, "cameras_paused": paused},
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ClockCorrection:
    """Correction of footage that was stamped before the clock was right; must run before anything is deleted.

    `moved` is called after times of footage were corrected.
    """

    corrections: ClockCorrections
    index: FootageIndex
    clock: Clock
    boot_id: str
    moved: Callable[[], None]

    async def look(self) -> None:
        """Correct the times of footage, if the clock is trusted now. Raises StoreError."""
        offset = offset_of(self.clock, self.boot_id)
        if not offset.trusted or not offset.boot_id:
            return
        segments = await self.corrections.correct(offset)
        if segments:
            log.info("footage_times_corrected", segments=segments)
            await self.index.look_again()
            self.moved()
