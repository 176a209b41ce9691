"""What the page shows at one moment, as frozen values that become its JSON, and what of it a caller may see."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from gateway.clock import iso_utc
from gateway.domain.events import EventKind, RecordedEvent, Severity
from gateway.domain.footage import Extent, Missing, extent_of
from gateway.domain.passages import CameraEvent
from gateway.lanes.board import AreaSnapshot, DeviceSnapshot, LaneSnapshot
from gateway.store import Books
from gateway.web.catalogue.camera_events import CAMERA_EVENT
from gateway.web.catalogue.cameras import CAMERA_LIST
from gateway.web.catalogue.devices import DEVICE_LIST, DEVICE_OPEN
from gateway.web.catalogue.events import EVENT_LIST
from gateway.web.catalogue.page import AREA_COUNT, SYNC_REFRESH
from gateway.web.rooms import CameraView, CentralView, DemoCard, StorageView
from gateway.web.sessions import Caller
from gateway.web.status.readers import ReaderShown


class _Shown(BaseModel):
    model_config = ConfigDict(frozen=True)


class LaneShown(_Shown):
    """A lane."""

    id: str
    name: str
    direction: str
    phase: str
    since: str
    gate_id: int
    position: str
    vehicle: str
    under: str
    note: str
    can_stop: bool
    order: str
    order_text: str
    troubles: tuple[str, ...]


class AreaShown(_Shown):
    """An area: how many are inside, and how many may be."""

    id: str
    name: str
    count: int
    limit: int | None


class PointShown(_Shown):
    """An input of a device."""

    name: str
    state: str


class DeviceShown(_Shown):
    """A device."""

    id: int
    name: str
    kind: str
    online: bool | None
    since: str
    detail: str
    points: tuple[PointShown, ...]


class CameraShown(_Shown):
    """A camera."""

    id: int
    name: str
    condition: str
    detail: str
    since: str
    last_segment_at: str | None
    bits_per_second: int
    reconnects: int


class StorageShown(_Shown):
    """How much footage there is, and when it will be full; `text` says it in words."""

    footage_bytes: int
    cap_bytes: int
    free_bytes: int
    bytes_per_day: int
    full_in_days: float | None
    text: str
    short: bool


class FootageShown(_Shown):
    """A camera event that proves an event. `missing`: what of it is not there, in words."""

    id: int
    camera_id: int
    ready: bool
    footage: Extent
    missing: str


class EventShown(_Shown):
    """An event. `passed_back`: the card that anti-passback refused, which may be forgiven."""

    id: int
    type: int
    category: int
    severity: str
    name: str
    description: str
    date_at: str
    clock_trusted: bool
    lane_id: str
    trace: tuple[str, ...]
    passed_back: int | None
    footage: tuple[FootageShown, ...]


class CentralShown(_Shown):
    """How the site and central stand."""

    reachable: bool | None
    since: str
    error: str
    last_sign_in: str | None
    pulled_at: str | None
    pulled: str
    progress: str
    refreshing: bool
    notices: tuple[str, ...]


class BooksShown(_Shown):
    """The outbox's books."""

    accepted: int
    delivered: int
    dropped: int
    waiting: int
    parked: int
    balance: bool


class GatewayShown(_Shown):
    """The gateway itself. `not_ready`, `store_failing` and `notices`, of the site file, are sentences."""

    site: str
    timezone: str
    version: str
    started_at: str
    not_ready: tuple[str, ...]
    store_failing: str
    notices: tuple[str, ...] = ()
    clock_trusted: bool


class UserShown(_Shown):
    """Who looks, and what the page may offer."""

    username: str
    role: str
    central: bool
    view_devices: bool
    control_devices: bool
    correct_counts: bool
    view_cameras: bool
    view_events: bool
    view_footage: bool
    edit_settings: bool


class DemoCardShown(_Shown):
    """A card that the demo can present."""

    card: str
    label: str


class DemoShown(_Shown):
    """What the demo offers."""

    cards: tuple[DemoCardShown, ...]


class Snapshot(_Shown):
    """Everything that the page shows, `now` aside: a client tells ages by it."""

    user: UserShown | None = None
    gateway: GatewayShown
    lanes: tuple[LaneShown, ...]
    areas: tuple[AreaShown, ...] = ()
    devices: tuple[DeviceShown, ...]
    cameras: tuple[CameraShown, ...]
    storage: StorageShown | None = None
    events: tuple[EventShown, ...]
    central: CentralShown | None
    books: BooksShown | None
    readers: tuple[ReaderShown, ...] = ()
    demo: DemoShown | None

    def seen_by(self, caller: Caller) -> Snapshot:
        """What of this the caller may see."""
        user = user_shown(caller)
        return self.model_copy(
            update={
                "user": user,
                "lanes": self.lanes if user.view_devices else (),
                "areas": self.areas if user.view_devices else (),
                "devices": self.devices if user.view_devices else (),
                "cameras": self.cameras if user.view_cameras else (),
                "storage": self.storage if user.view_cameras else None,
                "events": _events_seen(self.events, user),
                "readers": self.readers if user.edit_settings else (),
                "demo": self.demo if user.control_devices else None,
            }
        )


def user_shown(caller: Caller) -> UserShown:
    """Who looks, and what the catalogue lets them."""
    return UserShown(
        username=caller.username,
        role=caller.role,
        central=caller.central,
        view_devices=caller.may(DEVICE_LIST.rule),
        control_devices=caller.may(DEVICE_OPEN.rule),
        correct_counts=caller.may(AREA_COUNT.rule),
        view_cameras=caller.may(CAMERA_LIST.rule),
        view_events=caller.may(EVENT_LIST.rule),
        view_footage=caller.may(CAMERA_EVENT.rule),
        edit_settings=caller.may(SYNC_REFRESH.rule),
    )


def _events_seen(events: tuple[EventShown, ...], user: UserShown) -> tuple[EventShown, ...]:
    if not user.view_events:
        return ()
    return events if user.view_footage else tuple(event.model_copy(update={"footage": ()}) for event in events)


def lane_shown(lane: LaneSnapshot) -> LaneShown:
    """A lane for the page."""
    return LaneShown(
        id=lane.lane_id,
        name=lane.name,
        direction=lane.direction,
        phase=lane.phase.value,
        since=iso_utc(lane.since),
        gate_id=lane.gate_id,
        position=lane.position.value,
        vehicle=lane.vehicle.value,
        under=lane.under.value,
        note=lane.note,
        can_stop=lane.can_stop,
        order=lane.order,
        order_text=lane.order_text,
        troubles=lane.troubles,
    )


def area_shown(area: AreaSnapshot) -> AreaShown:
    """An area for the page."""
    return AreaShown(id=area.area_id, name=area.name, count=area.count, limit=area.limit)


def device_shown(device: DeviceSnapshot) -> DeviceShown:
    """A device for the page."""
    return DeviceShown(
        id=device.device_id,
        name=device.name,
        kind=device.kind,
        online=device.online,
        since=iso_utc(device.since),
        detail=device.detail,
        points=tuple(PointShown(name=point.name, state=point.state.value) for point in device.points),
    )


def camera_shown(camera: CameraView) -> CameraShown:
    """A camera for the page."""
    return CameraShown(
        id=camera.camera_id,
        name=camera.name,
        condition=str(camera.condition),
        detail=camera.detail,
        since=iso_utc(camera.since),
        last_segment_at=None if camera.last_segment_at is None else iso_utc(camera.last_segment_at),
        bits_per_second=camera.bits_per_second,
        reconnects=camera.reconnects,
    )


def storage_shown(view: StorageView) -> StorageShown:
    """The storage for the page."""
    return StorageShown(
        footage_bytes=view.footage_bytes,
        cap_bytes=view.cap_bytes,
        free_bytes=view.free_bytes,
        bytes_per_day=view.bytes_per_day,
        full_in_days=None if view.full_in_days is None else round(view.full_in_days, 2),
        text=view.text,
        short=view.short,
    )


def footage_shown(item: CameraEvent, missing: Sequence[Missing] | None) -> FootageShown:
    """A camera event for the page; `missing` is None while footage may still come."""
    extent: Extent = "coming" if missing is None else extent_of(missing, item.pinned_from, item.pinned_until)
    text = "; ".join(f"{(gap.end - gap.begin) / 1e6:.1f} s are missing: {gap.why}" for gap in missing or ())
    if extent == "none" and missing:
        text = f"there is no footage: {missing[0].why}"
    return FootageShown(id=item.id, camera_id=item.camera_id, ready=item.ready, footage=extent, missing=text)


def event_shown(event: RecordedEvent, footage: tuple[FootageShown, ...]) -> EventShown:
    """An event for the page, with the footage that proves it."""
    return EventShown(
        id=event.id,
        type=event.type,
        category=event.category,
        severity=Severity(event.subcategory).name.lower(),
        name=event.name,
        description=event.description,
        date_at=iso_utc(event.date_at),
        clock_trusted=event.clock_trusted,
        lane_id=event.lane_id,
        trace=trace_of(event),
        passed_back=_passed_back(event),
        footage=footage,
    )


def trace_of(event: RecordedEvent) -> tuple[str, ...]:
    """Each rule of a decision, in words; empty for other events."""
    if '"trace"' not in event.data:
        return ()
    told = json.loads(event.data).get("trace")
    return tuple(told.split("; ")) if isinstance(told, str) else ()


def _passed_back(event: RecordedEvent) -> int | None:
    if event.type != EventKind.ACCESS_DENIED or '"anti_passback"' not in event.data:
        return None
    told = json.loads(event.data)
    card_id = told.get("card_id")
    return card_id if told.get("reason") == "anti_passback" and isinstance(card_id, int) else None


def central_shown(view: CentralView) -> CentralShown:
    """Central for the page."""
    return CentralShown(
        reachable=view.reachable,
        since=iso_utc(view.since),
        error=view.error,
        last_sign_in=None if view.last_sign_in is None else iso_utc(view.last_sign_in),
        pulled_at=None if view.pulled_at is None else iso_utc(view.pulled_at),
        pulled=view.pulled,
        progress=view.progress,
        refreshing=view.refreshing,
        notices=view.notices,
    )


def books_shown(books: Books) -> BooksShown:
    """The outbox's books for the page."""
    return BooksShown(
        accepted=books.accepted,
        delivered=books.delivered,
        dropped=books.dropped,
        waiting=books.waiting,
        parked=books.parked,
        balance=books.balance(),
    )


def demo_shown(cards: tuple[DemoCard, ...]) -> DemoShown | None:
    """What the demo offers; None outside it."""
    return DemoShown(cards=tuple(DemoCardShown(card=item.card, label=item.label) for item in cards)) if cards else None
