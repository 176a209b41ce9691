"""Where the site file says that lanes and devices are."""

from __future__ import annotations

from gateway.domain.announcements import Places
from gateway.site import LaneSection, Site


def places_of(site: Site) -> Places:
    """The names of lanes, and of the lane that each device serves; of several, the first."""
    devices: dict[int, str] = {}
    for lane in site.lanes:
        for device_id in devices_of(lane):
            devices.setdefault(device_id, lane.name)
    return Places(lanes={lane.id: lane.name for lane in site.lanes}, devices=devices)


def devices_of(lane: LaneSection) -> tuple[int, ...]:
    """Every device that the lane has a part of, its gate first."""
    points = (lane.arming, lane.closing, lane.far, lane.fire, lane.local, *lane.safety)
    devices = (lane.gate, *lane.readers, *(point.device for point in points if point is not None))
    return tuple(dict.fromkeys(devices))
