"""Access rules, calendar and names from the site file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from zoneinfo import ZoneInfo

from gateway.domain.access import AccessRules, Ladder
from gateway.domain.announcements import PlaceNames
from gateway.domain.presence import OUTSIDE, Area, Way
from gateway.domain.schedules import Calendar, Schedule, Window
from gateway.site import AreaSection, LaneSection, Site

_HOUR = 3_600_000_000


def access_rules(site: Site, lane: LaneSection) -> Mapping[str, AccessRules]:
    """Return a lane's rules by direction, "entry" and "exit". An exit leads from area to area as an entry reversed."""
    schedules = schedules_of(site)
    inward = Way(leaves=lane.outside or OUTSIDE, enters=lane.inside or OUTSIDE)

    def rules(way: Way) -> AccessRules:
        return AccessRules(
            lane_id=lane.id,
            zones=frozenset(lane.zones),
            way=way,
            areas=MappingProxyType({section.id: _area(section) for section in site.areas}),
            calendar=calendar_of(site),
            schedules=MappingProxyType(schedules),
            schedule=schedules[lane.schedule] if lane.schedule is not None else None,
            two_credentials=lane.two_credentials,
            near_plates=lane.near_plates,
            asks_pin=lane.pin,
            by_owner=site.policy.anti_passback_by == "owner",
            ladder=Ladder(**dict(lane.doubt)),
            stale_after=int(site.policy.stale_cards_hours * _HOUR),
        )

    return {"entry": rules(inward), "exit": rules(inward.back)}


def schedules_of(site: Site) -> Mapping[str, Schedule]:
    """Return the site's schedules by their ids."""
    return {
        section.id: Schedule(
            section.id, tuple(Window(frozenset(item.days), item.start, item.end) for item in section.windows)
        )
        for section in site.schedules
    }


def calendar_of(site: Site) -> Calendar:
    """Return the site's time zone and holidays."""
    return Calendar(ZoneInfo(site.site.timezone), {day.date: day.name for day in site.holidays})


def places_of(site: Site) -> PlaceNames:
    """Return lane names by lane id, and by device id. Of several lanes with the same device, the first counts."""
    devices: dict[int, str] = {}
    for lane in site.lanes:
        for device_id in lane.devices:
            devices.setdefault(device_id, lane.name)
    return PlaceNames(lanes={lane.id: lane.name for lane in site.lanes}, devices=devices)


def _area(section: AreaSection) -> Area:
    return Area(
        area_id=section.id,
        limit=section.limit,
        anti_passback=section.anti_passback,
        minutes=section.anti_passback_minutes,
        first_person=section.first_person,
        shared=section.shared,
        apart=section.apart,
    )
