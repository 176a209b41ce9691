"""Events in the form that the page shows, with their footage."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.events import RecordedEvent
from gateway.recording import Recording
from gateway.store.footage.camera_events import CameraEvents
from gateway.web.status.snapshot import EventState, FootageState, event_state, footage_state


@dataclass(frozen=True, kw_only=True)
class EventStates:
    """The conversion of stored events to the page's events, with the camera events that belong to them."""

    camera_events: CameraEvents
    recording: Recording

    async def of(self, events: Sequence[RecordedEvent]) -> tuple[EventState, ...]:
        """Return the page's form of these events, in the same order. Raises StoreError."""
        footage: defaultdict[int, list[FootageState]] = defaultdict(list)
        camera_events = await self.camera_events.of_events(tuple(event.id for event in events))
        missing = await self.recording.missing(item for item in camera_events if item.ready)
        for item in camera_events:
            footage[item.event_id].append(footage_state(item, missing.get(item.id)))
        return tuple(event_state(event, tuple(footage[event.id])) for event in events)
