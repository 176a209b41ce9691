"""Readiness of camera events: an event is ready once no more of its footage will come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from gateway.domain.errors import CameraUnavailable, StoreError
from gateway.domain.passages import CameraEvent
from gateway.runtime.clock import Clock
from gateway.store.footage.camera_events import CameraEvents
from gateway.store.footage.event_footage import LONGEST_SEGMENT

log = structlog.get_logger(__name__)

_MICROS = 1_000_000
_CLOSING_MICROS = 5 * _MICROS
"""After a camera was lost, its last segment is on the disk and in the index within this time."""

_HELD_MICROS = 600 * _MICROS
"""How long footage waits in memory for a disk that is away."""

_LONGEST_WAIT = LONGEST_SEGMENT + _CLOSING_MICROS
_LOOK_SECONDS = 1.0
_LOOK_AGAIN_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Coverage:
    """The time up to which a camera's footage is in the index, and whether more may come.

    Attributes:
        until: the end of the indexed footage (wall micros), None without footage.
        more_may_come: whether the camera records or starts; files of a killed worker may still be adopted then.
        since: since when that is so (wall micros).
        in_memory: whether later footage is in the worker's memory and waits for the disk.
        uptime_until: `until` in monotonic micros of this boot; None without footage of this boot.
        uptime_since: `since` in monotonic micros.
    """

    until: int | None
    more_may_come: bool
    since: int
    in_memory: bool = False
    uptime_until: int | None = None
    uptime_since: int = 0


@dataclass(frozen=True, slots=True)
class PresentTime:
    """The present time: wall micros, monotonic micros, and the boot that these belong to ("" if unknown)."""

    wall: int
    uptime: int
    boot_id: str

    def of(self, event: CameraEvent, coverage: Coverage) -> tuple[Coverage, int]:
        """Return the coverage and the present time by the event's own clock, even if it was set since."""
        if not self.boot_id or event.boot_id != self.boot_id:
            return coverage, self.wall
        until = None if coverage.uptime_until is None else coverage.uptime_until + event.clock_offset
        since = coverage.uptime_since + event.clock_offset
        return replace(coverage, until=until, since=since), self.uptime + event.clock_offset


def read(clock: Clock, boot_id: str) -> PresentTime:
    """Read both clocks."""
    return PresentTime(wall=clock.wall().micros, uptime=int(clock.monotonic() * _MICROS), boot_id=boot_id)


def is_complete(event: CameraEvent, coverage: Coverage, *, now: int) -> bool:
    """Return whether no more footage of the event will come. Pure; `now` is wall micros by the event's clock."""
    if event.ready:
        return True
    if now < event.pinned_until:
        return False
    if coverage.until is not None and coverage.until >= event.pinned_until:
        return True
    return now >= _given_up_at(event, coverage)


def not_yet(event: CameraEvent, coverage: Coverage, *, now: int) -> CameraUnavailable:
    """Return the error that says why footage of the event is still missing, and when to ask again. Pure."""
    expected = event.pinned_until + _CLOSING_MICROS
    if now < expected:
        left = _seconds(expected - now)
        return CameraUnavailable(f"{event.called} is still recording, ready in {left} s", retry_after=left)
    left = _seconds(_given_up_at(event, coverage) - now)
    text = (
        f"the footage of {event.called} waits in memory for the disk, at most {left} s more"
        if coverage.in_memory
        else f"the last footage of {event.called} has not come yet; it is given up in {left} s"
    )
    return CameraUnavailable(text, retry_after=min(left, _LOOK_AGAIN_SECONDS))


def _given_up_at(event: CameraEvent, coverage: Coverage) -> int:
    if coverage.in_memory:
        return event.pinned_until + _HELD_MICROS
    wait = _LONGEST_WAIT if coverage.more_may_come else _CLOSING_MICROS
    return max(event.pinned_until, coverage.since) + wait


def _seconds(micros: int) -> int:
    """Return whole seconds, at least 1."""
    return max(1, -(-micros // _MICROS))


@dataclass(frozen=True, kw_only=True, slots=True)
class Readiness:
    """Marks camera events ready as their footage becomes complete. Keep `run` alive as a task.

    Attributes:
        camera_events: the events.
        clock: wall and monotonic time.
        coverage: returns the coverage of a camera.
        boot_id: the present boot. Camera events of this boot are judged by monotonic time.
    """

    camera_events: CameraEvents
    clock: Clock
    coverage: Callable[[int], Coverage]
    boot_id: str = ""

    async def run(self) -> None:
        """Mark ready camera events once a second until cancelled."""
        while True:
            try:
                await self.look()
            except StoreError as error:
                log.warning("camera_events_not_marked", error=str(error))
                await asyncio.sleep(10 * _LOOK_SECONDS)
            await asyncio.sleep(_LOOK_SECONDS)

    async def look(self) -> None:
        """Mark the camera events whose footage is complete now. Raises StoreError."""
        now = read(self.clock, self.boot_id)
        for event in await self.camera_events.awaiting(now=now.wall, boot_id=now.boot_id, uptime=now.uptime):
            coverage, at = now.of(event, self.coverage(event.camera_id))
            if is_complete(event, coverage, now=at):
                await self.camera_events.mark_ready(event.id)
