"""Differences between two loaded site files: added, removed and changed parts, and what each change affects. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from drivers.device import Device
from drivers.settings import NamesSecret, Section
from gateway.site.fields import marked
from gateway.site.load import LoadedSite, secrets_of
from gateway.site.models import LaneSection, PointRef, Site
from gateway.site.roles import Role
from gateway.texts import Text, Words, listed, text

_Key = TypeVar("_Key")
How = Literal["added", "removed", "changed"]
_LISTS = {"links": "link", "devices": "device", "areas": "area", "schedules": "schedule", "holidays": "holiday"}
_NEEDS_RESTART = frozenset({"live", "rtsp", "webhooks", "events"})
"""Sections that camera workers and the senders of webhooks read only when they start."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change.

    Attributes:
        part: the kind of part: "section", "link", "device", "area", "schedule", "holiday", "lane", "camera", "profile",
            "secret" or "account".
        id: the part's id.
        name: the part's name for people, "" for a part without one.
        how: whether it was added, removed or changed.
        keys: the changed keys, as they are written in the file.
        devices: the devices that are reconnected because of it.
        lanes: the lanes that are restarted because of it.
    """

    part: str
    id: str
    name: str = ""
    how: How = "changed"
    keys: tuple[str, ...] = ()
    devices: tuple[int, ...] = ()
    lanes: tuple[str, ...] = ()

    def words(self) -> Text:
        """Describe the change for people."""
        part: Words = self.id if self.part == "section" else text(f"part.{self.part}", id=self.id)
        if self.name:
            part = text("named_part", part=part, name=self.name)
        if self.keys:
            said = text("change.keys", part=part, keys=", ".join(self.keys))
        elif self.part == "camera" and self.how == "removed":
            said = text("change.camera_removed", part=part)
        else:
            said = text(f"change.of_part.{self.how}", part=part)
        if effects := self._effects():
            return text("change.with_effects", said=said, effects=effects)
        return said

    def _effects(self) -> Words:
        devices = "devices" if len(self.devices) > 1 else "device"
        lanes = "lanes" if len(self.lanes) > 1 else "lane"
        told: list[Words] = []
        if self.devices:
            told.append(text(f"change.anew.{devices}", ids=", ".join(map(str, self.devices))))
        if self.lanes:
            told.append(text(f"change.afresh.{lanes}", ids=", ".join(self.lanes)))
        return listed(told)


@dataclass(frozen=True, slots=True)
class Difference:
    """All differences between two site files, and what they affect.

    Attributes:
        changes: all changes.
        refused: a sentence for each change that needs a restart of the gateway.
        links: the lines that are reopened, closed, or opened for the first time.
        devices: the devices that are reconnected, disconnected, or connected for the first time.
        lanes: the lanes that are restarted, ended, or started for the first time.
        interface: whether the interface is restarted; the page reconnects by itself.
        central: whether the line to central is restarted.
        fleet: whether the line to the fleet is restarted.
        mqtt: whether the line to the MQTT broker is restarted.
    """

    changes: tuple[Change, ...] = ()
    refused: tuple[str, ...] = ()
    links: frozenset[str] = frozenset()
    devices: frozenset[int] = frozenset()
    lanes: frozenset[str] = frozenset()
    interface: bool = False
    central: bool = False
    fleet: bool = False
    mqtt: bool = False

    @property
    def touches_more_than_cameras(self) -> bool:
        """True if anything but cameras is changed."""
        return any(change.part != "camera" for change in self.changes)

    def words(self) -> tuple[Text, ...]:
        """Describe each change in one sentence."""
        return tuple(change.words() for change in self.changes)


def difference(before: LoadedSite, after: LoadedSite) -> Difference:
    """Compare two loaded site files. The order of links, devices, lanes and cameras does not count."""
    links, devices = _field_touched(before, after)
    lanes = _lanes_touched(before.site, after.site, devices)
    changes = tuple(
        _with_effects(change, before.site, after.site, devices, lanes)
        for change in (
            *_of_sections(before.site, after.site),
            *_of_lists(before.site, after.site),
            *_beside(before, after),
            *_accounts_added(before, after),
        )
    )
    secrets = {change.id for change in changes if change.part == "secret"}
    central = before.site.central != after.site.central or bool(secrets & _secrets_of_central(after.site))
    fleet, now = before.site.fleet, after.site.fleet
    return Difference(
        changes=changes,
        refused=tuple(_refused(before.site, after.site, secrets)),
        links=links,
        devices=devices,
        lanes=lanes,
        interface=central or _interface_part(before.site) != _interface_part(after.site),
        central=central or (before.site.site.timezone != after.site.site.timezone and after.site.central is not None),
        fleet=fleet != now
        or _shared(before.site) != _shared(after.site)
        or (now is not None and (now.credentials in secrets or _renamed_site(before.site, after.site))),
        mqtt=before.site.mqtt != after.site.mqtt
        or (after.site.mqtt is not None and after.site.mqtt.password in secrets),
    )


def _field_touched(before: LoadedSite, after: LoadedSite) -> tuple[frozenset[str], frozenset[int]]:
    """Return the lines and the devices that must be rebuilt.

    A listener, or a line that its devices are a part of, is rebuilt with any of them; so is a line for devices of
    another family.
    """
    old, new = before.site, after.site
    links = set(_differing({link.id: link for link in old.links}, {link.id: link for link in new.links}))
    devices = set(_differing(dict(_driver_parts(before)), dict(_driver_parts(after))))
    listening = {link.id for site in (old, new) for link in site.links if link.kind == "http-listen"}
    listening |= {device.link for device in _all_devices(old, new) if device.is_part_of_line}
    links |= {device.link for device in _all_devices(old, new) if device.id in devices} & listening
    families = [{device.link: device.shares_as for device in site.devices} for site in (old, new)]
    links |= _differing(*families) & families[0].keys() & families[1].keys()
    devices |= {device.id for device in _all_devices(old, new) if device.link in links}
    # A gate must not keep a position that it knows from limit switches of a device that is rebuilt.
    devices |= {lane.gate for lane in new.lanes if devices & {point.device for point in _limits_of(lane)}}
    return frozenset(links), frozenset(devices)


def _driver_parts(loaded: LoadedSite) -> Iterator[tuple[int, object]]:
    """Yield each device's id with everything that its driver is made of, which its name is not."""
    site = loaded.site
    limits = {
        lane.gate: (lane.closed_limit, lane.open_limit) for lane in site.lanes if lane.closed_limit and lane.open_limit
    }
    for device in site.devices:
        secrets = tuple(loaded.secrets.get(name) for name in secrets_of(device))
        profile = loaded.profiles.get(device.profile_name)
        yield device.id, (device.model_copy(update={"name": ""}), profile, secrets, limits.get(device.id))


def _lanes_touched(before: Site, after: Site, devices: frozenset[int]) -> frozenset[str]:
    old, new = ({lane.id: lane for lane in site.lanes} for site in (before, after))
    lanes = set(_differing(old, new))
    renamed = _renamed(before, after)
    for lane in after.lanes:
        if devices & set(_devices_of(lane)) or renamed & {point.device for point in lane.points(Role.SAFETY)}:
            lanes.add(lane.id)
    if (before.policy.command_seconds, before.policy.stale_seconds) != (
        after.policy.command_seconds,
        after.policy.stale_seconds,
    ):
        lanes |= new.keys()
    return frozenset(lanes)


def _devices_of(lane: LaneSection) -> tuple[int, ...]:
    return (*lane.devices, *(point.device for point in _limits_of(lane)))


def _limits_of(lane: LaneSection) -> tuple[PointRef, ...]:
    return tuple(point for point in (lane.closed_limit, lane.open_limit) if point is not None)


def _renamed(before: Site, after: Site) -> set[int]:
    names = {device.id: device.name for device in before.devices}
    return {device.id for device in after.devices if names.get(device.id, device.name) != device.name}


def _with_effects(change: Change, before: Site, after: Site, devices: frozenset[int], lanes: frozenset[str]) -> Change:
    """Return the change with the devices and lanes that it affects."""
    if change.part == "lane" and change.how == "changed":
        return replace(change, lanes=(change.id,))
    if change.id == "[policy]" and lanes and {"command_seconds", "stale_seconds"} & set(change.keys):
        return replace(change, lanes=tuple(lane.id for lane in after.lanes))
    belongs: Callable[[Device], bool] | None = {
        "link": lambda device: device.link == change.id,
        "device": lambda device: str(device.id) == change.id,
        "profile": lambda device: device.profile_name == change.id,
        "secret": lambda device: change.id in secrets_of(device),
    }.get(change.part)
    if belongs is None:
        return change
    site = before if change.how == "removed" else after
    own = {device.id for device in site.devices if belongs(device)}
    kept = own & devices & {device.id for device in before.devices} & {device.id for device in after.devices}
    earlier = {lane.id for lane in before.lanes}
    users = (lane for lane in after.lanes if lane.id in earlier and own & set(_devices_of(lane)))
    return replace(change, devices=tuple(sorted(kept)), lanes=tuple(lane.id for lane in users if lane.id in lanes))


def _refused(before: Site, after: Site, secrets: AbstractSet[str]) -> Iterator[str]:
    for name in sorted(_NEEDS_RESTART):
        section = getattr(after, name)
        named = set() if section is None else {secret for _, secret, _ in marked(section, NamesSecret)}
        if getattr(before, name) != section or named & secrets:
            yield f"[{name}] changes only with a restart"
    if (before.central is None) != (after.central is None):
        how = "added" if before.central is None else "removed"
        yield f"[central] is {how} only with a restart"
    elif before.central and after.central and before.central.backlog_gigabytes != after.central.backlog_gigabytes:
        yield "[central] backlog_gigabytes changes only with a restart"
    if before.lanes and not after.lanes:
        yield "the last lane is removed only with a restart: the file may be cut short"


def _shared(site: Site) -> set[str]:
    return {area.id for area in site.areas if area.shared}


def _renamed_site(before: Site, after: Site) -> bool:
    return before.site.name != after.site.name


def _interface_part(site: Site) -> object:
    """Return the parts of the site file that the interface is made of."""
    lanes = {lane.id: (lane.name, lane.devices, lane.cameras, lane.inside) for lane in site.lanes}
    return site.site, site.api, lanes


def _secrets_of_central(site: Site) -> set[str]:
    return set() if site.central is None else {name for _, name, _ in marked(site.central, NamesSecret)}


def _of_sections(before: Site, after: Site) -> Iterator[Change]:
    for name in Site.model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if name in _LISTS or name in {"lanes", "cameras"} or old == new:
            continue
        how: How = "added" if old is None else "removed" if new is None else "changed"
        yield Change("section", f"[{name}]", how=how, keys=_keys(old, new) if how == "changed" else ())


def _of_lists(before: Site, after: Site) -> Iterator[Change]:
    for field, part in (*_LISTS.items(), ("lanes", "lane"), ("cameras", "camera")):
        yield from _each(part, _by_id(getattr(before, field)), _by_id(getattr(after, field)))


def _each(part: str, old: Mapping[str, Section], new: Mapping[str, Section]) -> Iterator[Change]:
    for key in new:
        if key not in old:
            yield Change(part, key, _name(new[key]), "added")
    for key in new:
        if key in old and old[key] != new[key]:
            yield Change(part, key, _name(new[key]), "changed", _keys(old[key], new[key]))
    for key in old:
        if key not in new:
            yield Change(part, key, _name(old[key]), "removed")


def _beside(before: LoadedSite, after: LoadedSite) -> Iterator[Change]:
    """Yield the profiles and secrets that both files use and whose content has changed."""
    for part, old, new in (
        ("profile", before.profiles, after.profiles),
        ("secret", before.secrets, after.secrets),
    ):
        for name in sorted(old.keys() & new.keys()):
            if old[name] != new[name]:
                yield Change(part, name)


def _accounts_added(before: LoadedSite, after: LoadedSite) -> Iterator[Change]:
    """Yield the accounts that the register is to take over; those that it took stay there without the file."""
    known = {account.username for account in before.accounts}
    for account in after.accounts:
        if account.username not in known:
            yield Change("account", account.username, how="added")


def _by_id(items: Iterable[Section]) -> dict[str, Section]:
    """Return the entries by their ids, holidays by their dates."""
    return {str(getattr(item, "id", None) or getattr(item, "date", "")): item for item in items}


def _name(item: Section) -> str:
    return str(getattr(item, "name", ""))


def _keys(old: Section, new: Section) -> tuple[str, ...]:
    if type(old) is not type(new):
        return ("driver",)
    return tuple(key for key in type(new).model_fields if getattr(old, key) != getattr(new, key))


def _all_devices(*sites: Site) -> Iterator[Device]:
    for site in sites:
        yield from site.devices


def _differing(old: Mapping[_Key, object], new: Mapping[_Key, object]) -> set[_Key]:
    """Return the keys whose values differ or that only one mapping has."""
    return {key for key in old.keys() | new.keys() if key not in old or key not in new or old[key] != new[key]}
