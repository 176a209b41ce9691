"""Promises 3 and 4: acknowledged records are on disk, and reach central once.

No id is used twice, even through power cuts, and the counts of the outbox balance.
"""

from __future__ import annotations

from gateway.domain.events import EventKind
from gateway.store import Books
from simulation.virtual_site import observations as seen


class DurableCheck:
    """The comparison of everything that was acknowledged with what the store holds after each start."""

    promise = "3 acknowledged is on disk"
    wants = (seen.Acknowledged, seen.Found)

    def __init__(self) -> None:
        self._unproven: dict[int, tuple[int, int, str]] = {}
        self._all: dict[int, tuple[int, int, str]] = {}
        self._passages: set[int] = set()
        self._highest: dict[str, int] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
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


class BooksCheck:
    """Independent counts to compare with the outbox's: acknowledged records, and records that central has."""

    promise = "4 books balance"
    wants = (seen.Acknowledged, seen.CentralTook, seen.BooksSeen)

    def __init__(self) -> None:
        self._acknowledged: set[int] = set()
        self._at_central: set[int] = set()

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.Acknowledged():
                self._acknowledged.update(observation.recorded.camera_event_ids)
            case seen.CentralTook():
                self._at_central.add(observation.site_id)
                if observation.again and observation.site_id > 0:
                    return f"central has record {observation.site_id} twice"
            case seen.BooksSeen():
                return self._judge(observation)
            case _:
                pass
        return ""

    def _judge(self, observation: seen.BooksSeen) -> str:
        return self._unbalanced(observation.books) or (
            self._unsettled(observation.books) if observation.settled else ""
        )

    def _unbalanced(self, books: Books) -> str:
        if not books.balance():
            return f"the books do not balance: {books}"
        if books.accepted < len(self._acknowledged):
            return f"{len(self._acknowledged)} camera events were acknowledged, {books.accepted} accepted for sending"
        if books.delivered > len(self._at_central):
            return f"{books.delivered} counted as delivered, central has {len(self._at_central)}"
        return ""

    def _unsettled(self, books: Books) -> str:
        """Return what is wrong with counts at rest: nothing is being sent and central has been reachable for long."""
        if books.delivered + books.waiting + books.parked < len(self._at_central):
            return f"central has {len(self._at_central)}, and only {books.delivered} are counted as delivered"
        missing = len(self._acknowledged - self._at_central)
        kept = books.waiting + books.parked + books.dropped
        if missing > kept:
            return f"{missing} acknowledged camera events are not at central, and only {kept} are still kept"
        if books.waiting > books.parked:  # behind an entry that was refused waits its exit
            return f"{books.waiting} rows still wait long after central came back"
        return ""
