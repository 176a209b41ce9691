"""The valid parts of a site file, and the ids of its broken records.

With these, one reading finds both the faults inside parts and the faults between them, so that an installer corrects
the file only once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from gateway.site.access_sections import AreaSection, HolidaySection, ScheduleSection
from gateway.site.api_section import Account, ApiSection
from gateway.site.backup_section import BackupSection
from gateway.site.cameras import Camera
from gateway.site.central_sections import CentralSection
from gateway.site.fleet_section import FleetSection
from gateway.site.footage_sections import RtspSection
from gateway.site.models import DRIVERS, Device, LaneSection, Link, Site, SiteSection
from gateway.site.mqtt_section import MqttSection

Row = TypeVar("Row")
Place = tuple[int | str, ...]
Tree = dict[str, object]


@dataclass(frozen=True, slots=True)
class Rows(Generic[Row]):
    """The rows of an array of tables.

    Attributes:
        sound: the valid rows by their index in the file.
        broken_ids: the ids of broken rows.
        all_ids_known: whether every broken row has an id that can be read.
    """

    sound: Mapping[int, Row]
    broken_ids: frozenset[int | str] = frozenset()
    all_ids_known: bool = True

    def may_hold(self, record_id: int | str) -> bool:
        """Return whether a broken row could have this id, so that the record must not be reported as missing."""
        return not self.all_ids_known or record_id in self.broken_ids


@dataclass(frozen=True, slots=True)
class Draft:
    """The valid parts of a site. A broken section is None. `has_fleet`: there is a `[fleet]`, broken or not."""

    site: SiteSection | None
    api: ApiSection | None
    central: CentralSection | None
    fleet: FleetSection | None
    has_fleet: bool
    mqtt: MqttSection | None
    rtsp: RtspSection | None
    backup: BackupSection | None
    accounts: Rows[Account]
    links: Rows[Link]
    devices: Rows[Device]
    areas: Rows[AreaSection]
    schedules: Rows[ScheduleSection]
    holidays: Rows[HolidaySection]
    lanes: Rows[LaneSection]
    cameras: Rows[Camera]


def place_in_file(place: Place) -> Place:
    """Remove the driver's name that pydantic inserts after a device's index."""
    return place[:2] + place[3:] if len(place) > 2 and place[0] == "devices" and place[2] in DRIVERS else place


def whole(site: Site) -> Draft:
    """Return the draft of a site whose parts are all valid."""
    return Draft(
        site=site.site,
        api=site.api,
        central=site.central,
        fleet=site.fleet,
        has_fleet=site.fleet is not None,
        mqtt=site.mqtt,
        rtsp=site.rtsp,
        backup=site.backup,
        accounts=_all(site.api.accounts),
        links=_all(site.links),
        devices=_all(site.devices),
        areas=_all(site.areas),
        schedules=_all(site.schedules),
        holidays=_all(site.holidays),
        lanes=_all(site.lanes),
        cameras=_all(site.cameras),
    )


def read_draft(raw: Tree) -> tuple[Site | None, Draft, tuple[ValidationError, ...]]:
    """Validate a file; return the site if all parts are valid (else None), its draft, and all validation errors.

    A file with errors is validated again without its unknown keys, because models check a part as a whole only if all
    its keys are known.
    """
    try:
        site = Site.model_validate(raw)
    except ValidationError as error:
        tree = _without_unknown_keys(raw, error)
        try:
            return None, whole(Site.model_validate(tree)), (error,)
        except ValidationError as remaining:
            return None, _salvaged(tree, remaining), (error, remaining)
    return site, whole(site), ()


def _without_unknown_keys(raw: Tree, error: ValidationError) -> Tree:
    tree = copy.deepcopy(raw)
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        if item["type"] == "extra_forbidden":
            _drop(tree, place_in_file(item["loc"]))
    return tree


def _salvaged(tree: Tree, error: ValidationError) -> Draft:
    """Return the draft of a file with the parts in which `error` found no fault."""
    broken: set[Place] = set()
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        broken.update(item["loc"][:length] for length in range(1, len(item["loc"]) + 1))
    api = tree.get("api")
    api_tree = api if isinstance(api, dict) else {}
    return Draft(
        site=_section(tree, "site", SiteSection, broken),
        api=_section(tree, "api", ApiSection, broken),
        central=_section(tree, "central", CentralSection, broken),
        fleet=_section(tree, "fleet", FleetSection, broken),
        has_fleet="fleet" in tree,
        mqtt=_section(tree, "mqtt", MqttSection, broken),
        rtsp=_section(tree, "rtsp", RtspSection, broken),
        backup=_section(tree, "backup", BackupSection, broken),
        accounts=_rows(api_tree, ("api", "accounts"), "username", Account.model_validate, broken),
        links=_rows(tree, ("links",), "id", Link.model_validate, broken),
        devices=_rows(tree, ("devices",), "id", _device_adapter().validate_python, broken),
        areas=_rows(tree, ("areas",), "id", AreaSection.model_validate, broken),
        schedules=_rows(tree, ("schedules",), "id", ScheduleSection.model_validate, broken),
        holidays=_rows(tree, ("holidays",), "date", HolidaySection.model_validate, broken),
        lanes=_rows(tree, ("lanes",), "id", LaneSection.model_validate, broken),
        cameras=_rows(tree, ("cameras",), "id", Camera.model_validate, broken),
    )


@cache
def _device_adapter() -> TypeAdapter[Device]:
    """Build the validator of devices once: that takes far longer than reading a file."""
    return TypeAdapter(Device)


def _all(rows: Iterable[Row]) -> Rows[Row]:
    return Rows(sound=dict(enumerate(rows)))


SectionModel = TypeVar("SectionModel", bound=BaseModel)


def _section(tree: Tree, name: str, model: type[SectionModel], broken: set[Place]) -> SectionModel | None:
    written = tree.get(name, {} if name == "api" else None)
    return None if (name,) in broken or written is None else model.model_validate(written)


def _rows(tree: Tree, place: Place, key: str, read: Callable[[object], Row], broken: set[Place]) -> Rows[Row]:
    listed = tree.get(str(place[-1]), [])
    if not isinstance(listed, list):
        return Rows(sound={}, all_ids_known=False)
    sound: dict[int, Row] = {}
    broken_ids: set[int | str] = set()
    all_ids_known = True
    for index, entry in enumerate(listed):
        if (*place, index) not in broken:
            sound[index] = read(entry)
        elif isinstance(entry, dict) and isinstance(entry.get(key), int | str):
            broken_ids.add(entry[key])
        else:
            all_ids_known = False
    return Rows(sound=sound, broken_ids=frozenset(broken_ids), all_ids_known=all_ids_known)


def _drop(tree: Tree, place: Place) -> None:
    node: object = tree
    for step in place[:-1]:
        node = _child(node, step)
    if isinstance(node, dict):
        node.pop(place[-1], None)


def _child(node: object, step: int | str) -> object:
    if isinstance(node, list) and isinstance(step, int):
        return node[step]
    return node.get(step) if isinstance(node, dict) else None
