"""The use of the site's readers: their readings of the last weeks, and those since a change of the site file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import structlog

from drivers.device import ReaderDevice
from gateway.app.running_field import RunningField
from gateway.domain.day_counts import DayCount, SilentReader, day_of, regular_readers, silent_readers
from gateway.domain.errors import StoreError
from gateway.lanes import Lanes
from gateway.runtime.clock import Clock
from gateway.site import Site
from gateway.site.unseen_readers import ReaderProof, UnseenReader, UnseenReaders
from gateway.store import Store

log = structlog.get_logger(__name__)

_DAYS = 28


async def silent_now(site: Site, *, store: Store, clock: Clock) -> tuple[SilentReader, ...]:
    """Return the readers that are silent; none while the clock is not known to be right. Raises StoreError."""
    if not clock.wall().trusted:
        return ()
    readers = [reader for lane in site.lanes for reader in lane.readers]
    today, counts = await _counts(site, store, clock)
    return tuple(silent_readers(counts, readers=readers, today=today))


@dataclass(frozen=True, kw_only=True, slots=True)
class ReaderTrials:
    """The readers that a change of the site file connects anew, until they are seen to work.

    A reader that is polled works if it answers. One that speaks only for cards or plates must have read one.
    """

    lanes: Lanes
    field: RunningField
    store: Store
    clock: Clock

    async def watch(self, site: Site, devices: Collection[int]) -> UnseenReaders:
        """Watch the readers among these devices, which were connected anew just now."""
        lanes = {reader: lane.id for lane in site.lanes for reader in lane.readers if reader in devices}
        regular: frozenset[int] = frozenset()
        try:
            if lanes:
                today, counts = await _counts(site, self.store, self.clock)
                regular = regular_readers(counts, readers=lanes.keys(), today=today)
        except StoreError as error:
            log.warning("readers_not_known", error=str(error))
        proofs = {
            device.id: ReaderProof.ANSWER
            if device.link in self.field.field.lines
            else ReaderProof.PLATE
            if isinstance(device, ReaderDevice) and device.reads_plates
            else ReaderProof.CARD
            for device in site.devices
            if device.id in lanes
        }
        return partial(self._unseen, lanes, proofs, regular)

    def _unseen(
        self, lanes: Mapping[int, str], proofs: Mapping[int, ReaderProof], regular: Collection[int]
    ) -> tuple[UnseenReader, ...]:
        unread = self.lanes.with_unread_vehicles()
        return tuple(
            UnseenReader(
                device_id=device.device_id,
                name=device.name,
                proof=proof,
                is_regular=device.device_id in regular,
                is_missed=lanes[device.device_id] in unread,
            )
            for device in self.lanes.devices()
            if (proof := proofs.get(device.device_id)) is not None
            and not (device.online if proof is ReaderProof.ANSWER else device.has_read)
        )


async def _counts(site: Site, store: Store, clock: Clock) -> tuple[str, tuple[DayCount, ...]]:
    today = day_of(clock.wall().micros, ZoneInfo(site.site.timezone))
    first = date.fromisoformat(today) - timedelta(days=_DAYS)
    return today, await store.day_counts.since(first.isoformat())
