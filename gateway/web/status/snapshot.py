"""What the page shows at one moment, as frozen values that become its JSON, and what of it a caller may see."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from gateway.domain.footage import Extent
from gateway.web.auth.sessions import Caller
from gateway.web.catalogue.camera_events import CAMERA_EVENT
from gateway.web.catalogue.cameras import CAMERA_LIST
from gateway.web.catalogue.devices import DEVICE_LIST, DEVICE_OPEN
from gateway.web.catalogue.events import EVENT_LIST
from gateway.web.catalogue.page import AREA_COUNT, SYNC_REFRESH
from gateway.web.status.consumers import ReaderShown


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
    unable: tuple[str, ...] = ()


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
    reconciling: bool
    reconciled: str
    incomplete: bool
    notices: tuple[str, ...]


class BooksShown(_Shown):
    """The outbox's books."""

    accepted: int
    delivered: int
    replaced: int
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
