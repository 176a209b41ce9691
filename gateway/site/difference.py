"""Differences between two site files: cameras one by one, the rest by section name. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.site.access_sections import AreaSection
from gateway.site.cameras import Camera
from gateway.site.models import Device, LaneSection, Link, Site

_Listed = Link | Device | AreaSection | LaneSection
_LISTS = frozenset({"links", "devices", "areas", "lanes", "cameras"})
_WHOLE_LISTS = frozenset({"schedules", "holidays"})


@dataclass(frozen=True, slots=True)
class CameraChange:
    """A camera that is in both files; `keys` are those that were changed, in the file's words."""

    camera: Camera
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The differences. `restart` names the parts that need a restart."""

    added: tuple[Camera, ...] = ()
    changed: tuple[CameraChange, ...] = ()
    removed: tuple[Camera, ...] = ()
    restart: tuple[str, ...] = ()

    def sentences(self) -> tuple[str, ...]:
        """Describe what happens to the cameras, a sentence each."""
        return (
            *(f"camera {camera.id} ({camera.name}) was added" for camera in self.added),
            *(f"camera {it.camera.id} ({it.camera.name}): changed {', '.join(it.keys)}" for it in self.changed),
            *(f"camera {camera.id} ({camera.name}) was removed; its footage is kept" for camera in self.removed),
        )


def difference(before: Site, after: Site) -> Difference:
    """Compare two site files. The order of cameras does not count."""
    old = {camera.id: camera for camera in before.cameras}
    new = {camera.id: camera for camera in after.cameras}
    return Difference(
        added=tuple(camera for camera in after.cameras if camera.id not in old),
        changed=tuple(
            CameraChange(camera, _keys(old[camera.id], camera))
            for camera in after.cameras
            if camera.id in old and camera != old[camera.id]
        ),
        removed=tuple(camera for camera in before.cameras if camera.id not in new),
        restart=tuple(_restart(before, after)),
    )


def _keys(old: Camera, new: Camera) -> tuple[str, ...]:
    return tuple(key for key in Camera.model_fields if getattr(old, key) != getattr(new, key))


def _restart(before: Site, after: Site) -> Iterator[str]:
    for section in Site.model_fields:
        if section not in _LISTS and getattr(before, section) != getattr(after, section):
            yield f"[[{section}]]" if section in _WHOLE_LISTS else f"[{section}]"
    yield from _each("link", before.links, after.links)
    yield from _each("device", before.devices, after.devices)
    yield from _each("area", before.areas, after.areas)
    yield from _each("lane", before.lanes, after.lanes)


def _each(noun: str, before: Sequence[_Listed], after: Sequence[_Listed]) -> Iterator[str]:
    old, new = {item.id: item for item in before}, {item.id: item for item in after}
    for key in dict.fromkeys((*old, *new)):
        if key not in new:
            yield f"{noun} {_called(old[key])} was removed"
        elif key not in old:
            yield f"{noun} {_called(new[key])} was added"
        elif old[key] != new[key]:
            yield f"{noun} {_called(new[key])}"


def _called(item: _Listed) -> str:
    return str(item.id) if isinstance(item, Link) else f"{item.id} ({item.name})"
