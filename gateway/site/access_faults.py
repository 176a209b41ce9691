"""Checks of lanes against their areas, schedules and readers."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.site.draft import Draft
from gateway.site.fault import Fault
from gateway.site.models import OsdpReaderDevice


def _may_have_keys(draft: Draft, device_id: int) -> bool:
    device = next((device for device in draft.devices.sound.values() if device.id == device_id), None)
    return draft.devices.may_hold(device_id) if device is None else isinstance(device, OsdpReaderDevice)


def access_faults(draft: Draft) -> Iterator[Fault]:
    """Yield faults for missing areas and schedules, and for settings of a lane that contradict each other."""
    areas = {area.id for area in draft.areas.sound.values()}
    schedules = {schedule.id for schedule in draft.schedules.sound.values()}
    for index, lane in draft.lanes.sound.items():
        place = f"lanes[{index}]"
        for field, area in (("inside", lane.inside), ("outside", lane.outside)):
            if area is not None and area not in areas and not draft.areas.may_hold(area):
                yield Fault(f"{place}.{field}", f"no area {area!r}")
        if lane.pin and not any(_may_have_keys(draft, reader) for reader in lane.readers):
            yield Fault(f"{place}.pin", "none of its readers can have keys; an osdp-reader can")
        if lane.inside is not None and lane.inside == lane.outside:
            yield Fault(
                f"{place}.outside",
                f"is {lane.outside!r}, the same area as inside; a passage leads from one to the other",
            )
        if lane.hold_open_schedule is not None and lane.hold_open_schedule == lane.lock_down_schedule:
            message = (
                f"is {lane.lock_down_schedule!r}, as hold_open_schedule is: the gate cannot be held open and locked"
            )
            yield Fault(f"{place}.lock_down_schedule", message)
        if lane.schedule is not None and lane.schedule == lane.lock_down_schedule:
            message = f"is {lane.lock_down_schedule!r}, as schedule is: the lane would let nobody in while it is open"
            yield Fault(f"{place}.lock_down_schedule", message)
        named = (
            ("schedule", lane.schedule),
            ("hold_open_schedule", lane.hold_open_schedule),
            ("lock_down_schedule", lane.lock_down_schedule),
        )
        for field, name in named:
            if name is not None and name not in schedules and not draft.schedules.may_hold(name):
                yield Fault(f"{place}.{field}", f"no schedule {name!r}")
