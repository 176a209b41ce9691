"""Pins on cameras that are recorded for events only, sent to the cameras' workers as soon as the pins are recorded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import structlog

from gateway.domain.errors import StoreError
from gateway.domain.footage import Pin
from gateway.recording.worker_pool import CameraWorker
from gateway.runtime.clock import Clock
from gateway.site import Camera
from gateway.store import Changes
from gateway.store.footage.camera_events import CameraEvents

log = structlog.get_logger(__name__)

_MICROS = 1_000_000
_LONGEST_WAIT_SECONDS = 600
"""How long a worker holds pinned footage in memory for a disk that is away, if it has room."""
_LOOK_SECONDS = 5.0
_MOST_PINS = 10_000


class PinWatch:
    """Sender of all pins whose footage is in a worker's memory or may still come. Keep `run` alive as a task."""

    def __init__(
        self,
        *,
        camera_events: CameraEvents,
        changes: Changes,
        cameras: Iterable[Camera],
        clock: Clock,
        boot_id: str = "",
    ) -> None:
        """Keep the collaborators. `boot_id`: the present boot; pins of this boot are also sent with monotonic times."""
        self._boot_id = boot_id
        self._camera_events = camera_events
        self._changes = changes
        self._clock = clock
        self._seconds: Mapping[int, int] = {}
        self.change(cameras)

    def change(self, cameras: Iterable[Camera]) -> None:
        """Set the site's cameras."""
        self._seconds = {camera.id: camera.pre_roll_seconds for camera in cameras if camera.record == "events"}

    @property
    def cameras(self) -> frozenset[int]:
        """The ids of cameras that are recorded for events only."""
        return frozenset(self._seconds)

    async def run(self, workers: Callable[[], tuple[CameraWorker, ...]]) -> None:
        """Send the present pins whenever something was recorded, and every 5 s, until cancelled."""
        version = -1
        while True:
            version = await self._changes.beyond(version, within=_LOOK_SECONDS)
            try:
                await self.look(workers())
            except StoreError as error:
                log.warning("pins_not_sent", error=str(error))

    async def look(self, workers: tuple[CameraWorker, ...]) -> None:
        """Send each worker the present pins of its cameras. Raises StoreError."""
        if not self._seconds:
            for worker in workers:
                await worker.pin(())
            return
        span = max(self._seconds.values()) + _LONGEST_WAIT_SECONDS
        since = self._clock.wall().micros - span * _MICROS
        pins: defaultdict[int, list[Pin]] = defaultdict(list)
        uptime = int(self._clock.monotonic() * _MICROS) - span * _MICROS
        found = await self._camera_events.pinned_since(self._seconds, since)
        lately = await self._camera_events.stamped_in(self._boot_id, pinned_after=uptime)
        for event in {event.id: event for event in (*found, *lately)}.values():
            if event.camera_id not in self._seconds:
                continue
            ours = event.boot_id == self._boot_id != ""
            pins[event.camera_id].append(
                Pin(
                    camera_id=event.camera_id,
                    begin=event.pinned_from,
                    until=event.pinned_until,
                    clock_offset=event.clock_offset if ours else None,
                )
            )
        for worker in workers:
            wanted = [pin for camera_id in sorted(worker.cameras & pins.keys()) for pin in pins[camera_id]]
            await worker.pin(wanted[-_MOST_PINS:])
