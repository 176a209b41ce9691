"""Promise 3: what was acknowledged is on disk, and no id is given twice, through power cuts."""

from __future__ import annotations

from gateway.domain.events import EventKind
from gateway.simulation import observations as seen


class DurableCheck:
    """Remembers everything that was acknowledged, and looks for it in what the store holds after each start."""

    promise = "3 acknowledged is on disk"
    wants = (seen.Acknowledged, seen.Found)

    def __init__(self) -> None:
        self._unproven: dict[int, tuple[int, int, str]] = {}
        self._all: dict[int, tuple[int, int, str]] = {}
        self._passages: set[int] = set()
        self._highest: dict[str, int] = {}

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        match observation:
            case seen.Acknowledged():
                return self._remember(observation)
            case seen.Found():
                return self._look_for(observation)
            case _:
                return ""

    def _remember(self, observation: seen.Acknowledged) -> str:
        entry, recorded = observation.entry, observation.recorded
        fault = self._ascending("event", recorded.event_ids) or self._ascending(
            "camera event", recorded.camera_event_ids
        )
        if recorded.passage_id is not None:
            fault = fault or self._ascending("passage", (recorded.passage_id,))
            self._passages.add(recorded.passage_id)
        if len(recorded.event_ids) != len(entry.events) or len(recorded.camera_event_ids) != len(entry.moments):
            fault = fault or "an entry was acknowledged, but not all of it has ids"
        for number, event in zip(recorded.event_ids, entry.events, strict=False):
            self._unproven[number] = self._all[number] = (int(event.kind), event.date_at, event.description)
            if event.kind is EventKind.STORE_DAMAGED:
                fault = fault or f"a power cut damaged the store: {event.description}"
        return fault

    def _ascending(self, kind: str, numbers: tuple[int, ...]) -> str:
        for number in numbers:
            if number <= self._highest.get(kind, 0):
                return f"{kind} id {number} was given after {self._highest[kind]}"
            self._highest[kind] = number
        return ""

    def _look_for(self, found: seen.Found) -> str:
        wanted = self._all if found.whole else self._unproven
        missing = [number for number, text in wanted.items() if found.events.get(number) != text]
        self._unproven = {}
        if missing:
            return f"{len(missing)} acknowledged events are gone or changed, the first is {missing[0]}"
        if found.whole and (gone := self._passages - found.passages):
            return f"{len(gone)} acknowledged passages are gone, one is {min(gone)}"
        return ""
