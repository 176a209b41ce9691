"""What rooms say, made into what the page shows."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gateway.domain.events import EventKind, RecordedEvent, Severity
from gateway.domain.footage import Extent, Missing, extent_of
from gateway.domain.passages import CameraEvent
from gateway.lanes.snapshots import AreaSnapshot, DeviceSnapshot, LaneSnapshot
from gateway.runtime.clock import iso_utc
from gateway.store import Books
from gateway.web.rooms import CameraView, CentralView, DemoCard, StorageView
from gateway.web.status.snapshot import (
    AreaShown,
    BooksShown,
    CameraShown,
    CentralShown,
    DemoCardShown,
    DemoShown,
    DeviceShown,
    EventShown,
    FootageShown,
    LaneShown,
    PointShown,
    StorageShown,
)


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
        unable=lane.unable,
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
        reconciling=view.reconciling,
        reconciled=view.reconciled,
        incomplete=view.incomplete,
        notices=view.notices,
    )


def books_shown(books: Books) -> BooksShown:
    """The outbox's books for the page."""
    return BooksShown(
        accepted=books.accepted,
        delivered=books.delivered,
        replaced=books.replaced,
        dropped=books.dropped,
        waiting=books.waiting,
        parked=books.parked,
        balance=books.balance(),
    )


def demo_shown(cards: tuple[DemoCard, ...]) -> DemoShown | None:
    """What the demo offers; None outside it."""
    return DemoShown(cards=tuple(DemoCardShown(card=item.card, label=item.label) for item in cards)) if cards else None
