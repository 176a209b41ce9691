"""Events of footage whose files have gone from the disk: it was replaced, formatted or cleared by hand. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from gateway.domain.events import Event, EventKind
from gateway.runtime.clock import Stamp, iso_utc
from gateway.store import Segment

_MICROS = 1_000_000


@dataclass(frozen=True, slots=True)
class _Lost:
    """Lost footage of one camera: number of files, total duration in micros, and the time it spans (wall micros)."""

    files: int
    duration: int
    since: int
    until: int


@dataclass(frozen=True, slots=True)
class LostFootage:
    """Lost footage by camera. `with_` adds more."""

    _cameras: Mapping[int, _Lost] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def files(self) -> int:
        """The number of lost files."""
        return sum(lost.files for lost in self._cameras.values())

    def with_(self, segments: Iterable[Segment]) -> LostFootage:
        """Return the lost footage with these segments added."""
        cameras = dict(self._cameras)
        for segment in segments:
            so_far = cameras.get(segment.camera_id, _Lost(0, 0, segment.started_at, segment.ended_at))
            cameras[segment.camera_id] = replace(
                so_far,
                files=so_far.files + 1,
                duration=so_far.duration + segment.duration,
                since=min(so_far.since, segment.started_at),
                until=max(so_far.until, segment.ended_at),
            )
        return LostFootage(MappingProxyType(cameras))

    def events(self, now: Stamp) -> tuple[Event, ...]:
        """Return one event for each camera."""
        return tuple(_event(camera_id, lost, now) for camera_id, lost in sorted(self._cameras.items()))


def _event(camera_id: int, lost: _Lost, now: Stamp) -> Event:
    seconds = round(lost.duration / _MICROS, 3)
    return Event(
        kind=EventKind.FOOTAGE_GAP,
        date_at=now.micros,
        clock_trusted=now.trusted,
        description=(
            f"Camera {camera_id}: {seconds:.1f} s of footage from between {iso_utc(lost.since)} and"
            f" {iso_utc(lost.until)} are no longer on the disk"
        ),
        device_id=camera_id,
        data={
            "seconds": seconds, "reason": "lost", "from": lost.since, "until": lost.until, "files": lost.files,
        },
    )  # fmt: skip
