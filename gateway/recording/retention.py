"""How much footage is kept: a cap in bytes and a floor of free space. Oldest first; footage of events is spared."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.clock import Clock
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.recording.index import FootageIndex
from gateway.store import Store

log = structlog.get_logger(__name__)

_DAY_MICROS = 86_400_000_000
_LOOK_SECONDS = 10.0
_MOST_STEPS = 50
_GIGABYTE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StorageLimits:
    """What may be used.

    Attributes:
        cap: bytes of footage at most.
        floor: bytes that stay free on the media folder's disk.
        keep_days: for how long footage of events is spared.
    """

    cap: int
    floor: int
    keep_days: int


@dataclass(frozen=True, slots=True)
class StorageUse:
    """What is used: bytes of footage, and bytes free on its disk."""

    footage: int
    free: int


def bytes_to_free(use: StorageUse, limits: StorageLimits) -> int:
    """How many bytes must go, 0 when all is well. Pure."""
    return max(use.footage - limits.cap, limits.floor - use.free, 0)


def must_pause(use: StorageUse, limits: StorageLimits, *, paused: bool) -> bool:
    """Whether cameras must not write. Pure; `paused`: whether they pause already.

    They must not once the disk has less than half of the floor left, until it has all of it again: what else is on
    it, the store first, must not stop for want of space. Spared footage over the cap alone is no reason.
    """
    return use.free < limits.floor if paused else 2 * use.free < limits.floor


class Retention:
    """Deletes what is over the limits. Keep `run` alive as a task."""

    def __init__(
        self,
        *,
        store: Store,
        index: FootageIndex,
        media: Path,
        limits: StorageLimits,
        clock: Clock,
        starved: Callable[[bool], None],
        media_fault: Callable[[], str],
        look_seconds: float = _LOOK_SECONDS,
    ) -> None:
        """`starved` is told whether cameras must pause for want of space; `media_fault` says why nothing may be done
        in the media folder, "" when all is well.
        """
        self._store = store
        self._index = index
        self._media = media
        self._limits = limits
        self._clock = clock
        self._starved = starved
        self._media_fault = media_fault
        self._look_seconds = look_seconds
        self._low_told = False
        self._paused = False

    async def run(self) -> None:
        """Look every few seconds until cancelled."""
        while True:
            try:
                if not self._media_fault():
                    await self.look()
            except (StoreError, OSError) as error:
                log.warning("footage_not_thinned", error=str(error))
            await asyncio.sleep(self._look_seconds)

    async def look(self) -> None:
        """Finish deletions that were begun, and delete what is over the limits now. Raises StoreError, OSError."""
        await self._index.delete(await self._store.segments.garbage())
        use = await self._use()
        steps = 0
        while (wanted := bytes_to_free(use, self._limits)) and steps < _MOST_STEPS:
            steps += 1
            spared_from = self._clock.wall().micros - self._limits.keep_days * _DAY_MICROS
            chosen = await self._store.segments.discard(at_least=wanted, pinned_after=spared_from)
            if not chosen:
                break
            await self._index.delete(chosen)
            log.info("footage_deleted", segments=len(chosen), bytes=sum(segment.size for segment in chosen))
            use = await self._use()
        self._judge(use, short=wanted if steps < _MOST_STEPS else 0)

    async def _use(self) -> StorageUse:
        disk = await asyncio.to_thread(shutil.disk_usage, self._media)
        return StorageUse(footage=await self._store.segments.bytes_kept(), free=disk.free)

    def _judge(self, use: StorageUse, *, short: int) -> None:
        self._paused = must_pause(use, self._limits, paused=self._paused)
        self._starved(self._paused)
        if not short and not self._paused:
            self._low_told = False
        elif not self._low_told:
            self._low_told = True
            self._index.tell(self._low(use, short=short, paused=self._paused))

    def _low(self, use: StorageUse, *, short: int, paused: bool) -> Event:
        now = self._clock.wall()
        text = (
            f"Storage is short of {short / _GIGABYTE:.2f} GB and no more footage may go:"
            f" {use.footage / _GIGABYTE:.2f} GB are kept for events, {use.free / _GIGABYTE:.2f} GB of the disk are free"
            f" and {self._limits.floor / _GIGABYTE:.2f} GB must stay free"
        )
        if paused:
            text += "; cameras pause so that the rest of the gateway can go on"
        return Event(
            kind=EventKind.STORAGE_LOW,
            date_at=now.micros,
            clock_trusted=now.trusted,
            description=text,
            data={"short_bytes": short, "footage_bytes": use.footage, "free_bytes": use.free, "cameras_paused": paused},
        )
