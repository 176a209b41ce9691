"""Records as the interface shows them: central's record kept whole, with the site's own fields over it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from pydantic import JsonValue

from gateway.domain.commands import Command
from gateway.domain.events import RecordedEvent
from gateway.domain.evidence import Exhibit
from gateway.domain.footage import Missing, extent_of
from gateway.domain.passages import CameraEvent
from gateway.domain.writes import WaitingWrite
from gateway.lanes.snapshots import DeviceSnapshot
from gateway.recording import CameraSnapshot
from gateway.runtime.clock import iso_utc
from gateway.store import KnownRecord
from gateway.store.outbox.pending_writes import HeldWrites
from gateway.web.shapes.camera_events import CameraEventRecord
from gateway.web.shapes.cameras import CameraStatus, Status
from gateway.web.shapes.evidence import evidence_record

Record = dict[str, JsonValue]


def event_record(event: RecordedEvent) -> Record:
    """An event as the interface shows it: an `EventRecord`, plain because lists hold very many of them."""
    record: Record = {
        "id": event.id,
        "device_id": event.device_id,
        "type": event.type,
        "category": event.category,
        "subcategory": event.subcategory,
        "name": event.name,
        "description": event.description,
        "date_at": iso_utc(event.date_at),
        "data": event.data,
        "lane_id": event.lane_id,
        "clock_trusted": event.clock_trusted,
        "late": event.recorded_at is not None,
    }
    if event.recorded_at is not None:
        record["recorded_at"] = iso_utc(event.recorded_at)
    return record


def camera_event_record(
    event: CameraEvent,
    *,
    exhibits: Iterable[Exhibit] = (),
    waiting: Sequence[WaitingWrite] = (),
    missing: Sequence[Missing] | None = None,
    site_only: bool = False,
    address: Callable[[str], str],
) -> CameraEventRecord:
    """A camera event as the interface shows it, with what was added to it and what waits of it for central.

    `missing`: what of its time no footage is of, None while some may still come. `site_only`: central never gets it.
    `address`: makes an address with a token of a path of its footage.
    """
    media = "/v1/camera/event"
    extent = "coming" if missing is None else extent_of(missing, event.pinned_from, event.pinned_until)
    there = extent != "none"
    clip, vod = f"{media}/clip/{event.id}", f"{media}/vod/{event.id}/master.m3u8"
    standing = standing_with_central(waiting, site_only=site_only)
    return CameraEventRecord.model_validate(
        {
            "id": event.id,
            "central_id": event.central_id,
            "camera_id": event.camera_id,
            "event_id": event.event_id,
            "lane_id": event.lane_id,
            "name": event.name,
            "description": event.description,
            "date_at": iso_utc(event.date_at),
            "start_date": iso_utc(event.pinned_from),
            "end_date": iso_utc(event.pinned_until),
            "clock_trusted": event.clock_trusted,
            "ready": event.ready,
            "incident": event.incident,
            "clip": clip if there else "",
            "clip_url": address(clip) if there else "",
            "thumbnail": f"{media}/thumbnail/{event.id}" if there else "",
            "vod": vod if there else "",
            "vod_url": address(vod) if there else "",
            "footage": extent,
            "gaps": tuple(
                {
                    "start_date": iso_utc(gap.begin),
                    "end_date": iso_utc(gap.end),
                    "seconds": round((gap.end - gap.begin) / 1e6, 1),
                    "reason": gap.why,
                }
                for gap in missing or ()
            ),
            "evidence": tuple(evidence_record(item) for item in exhibits if item.camera_event_id == event.id),
            **standing,
        }
    )


def device_record(known: KnownRecord, seen: DeviceSnapshot | None, *, location: str) -> Record:
    """A device as the interface shows it.

    Args:
        known: what the store has of it.
        seen: its state now; None for a device of central's that is not of this site.
        location: where it stands, "" when only central may know.
    """
    central = _central(known)
    kind = central.get("type")
    its_own = kind if isinstance(kind, str | int) and not known.at_site else known.kind
    record: Record = {**central, "id": known.id, "name": known.name, "type": its_own, "at_site": known.at_site}
    record["location"] = location or _text(central, "location")
    if seen is None:
        record["status"] = _text(central, "status") or "unknown"
        record["position"] = None
    else:
        record["status"] = status_of(online=seen.online)
        record["position"] = seen.position.value if seen.position else None
        record["status_since"] = iso_utc(seen.since)
        record["status_detail"] = seen.detail
    return record


async def site_only_among(
    held: HeldWrites, kind: str, unknown: Iterable[int], waiting: Mapping[int, object]
) -> frozenset[int]:
    """Those of records without an id of central's that central never gets; of the others something is under way."""
    doubted = [number for number in unknown if not waiting.get(number)]
    return await held.site_only(kind, doubted) if doubted else frozenset()


def standing_with_central(waiting: Sequence[WaitingWrite], *, site_only: bool = False) -> Record:
    """Whether central has what the site has of a record.

    `in_step`, `waiting`, `refused` with central's words, or `site_only`: central never gets it.
    """
    refused = next((write.refused for write in waiting if write.refused), "")
    if refused:
        return {"sync": "refused", "sync_error": refused}
    return {"sync": "waiting" if waiting else "site_only" if site_only else "in_step"}


def command_record(command: Command) -> Record:
    """A command as whoever gave it is told of it."""
    return {
        "id": command.command_id,
        "action": command.action.value,
        "state": command.state.value,
        "recorded": command.recorded,
        "requested_at": iso_utc(command.requested_at),
        "deadline_at": iso_utc(command.deadline_at),
    }


def camera_record(
    known: KnownRecord,
    seen: CameraSnapshot | None,
    *,
    stream: str = "",
    hls_url: str = "",
    waiting: Sequence[WaitingWrite] = (),
) -> Record:
    """A camera as the interface shows it. `stream` is its WHEP address, `hls_url` that of its live playlist; both are
    "" for a camera that is not recorded here.

    Its name is central's, which people can change; the site file's as long as central has none.
    """
    central = _central(known)
    name = _text(central, "name").strip() or known.name
    record: Record = {**central, "id": known.id, "name": name, "at_site": known.at_site}
    record |= {"stream": stream, "hls_url": hls_url}
    record |= standing_with_central(waiting)
    record["status"] = camera_status_word(seen.condition) if seen else _text(central, "status") or "unknown"
    return record


def camera_status(seen: CameraSnapshot) -> CameraStatus:
    """A camera's state as the interface shows it."""
    return CameraStatus(
        id=seen.camera_id,
        name=seen.name,
        status=camera_status_word(seen.condition),
        condition=str(seen.condition),
        detail=seen.detail,
        since=iso_utc(seen.since),
        last_segment_at=None if seen.last_segment_at is None else iso_utc(seen.last_segment_at),
        bits_per_second=seen.bits_per_second,
        reconnects=seen.reconnects,
    )


def status_of(*, online: bool | None) -> Status:
    """The interface's word for whether a device answers."""
    return "unknown" if online is None else "online" if online else "offline"


def camera_status_word(condition: str) -> Status:
    """The interface's word for a camera's condition."""
    return "online" if condition == "recording" else "unknown" if condition == "starting" else "offline"


def _central(known: KnownRecord) -> Record:
    record = json.loads(known.record)
    return record if isinstance(record, dict) else {}


def _text(record: Record, name: str) -> str:
    value = record.get(name)
    return value if isinstance(value, str) else ""
