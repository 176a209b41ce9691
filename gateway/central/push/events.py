"""Events about records on their way to central: refused, gone at central, changed on both sides."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import structlog

from gateway.central.push.search_attempts import NotYet, Unclear
from gateway.domain.conflicts import Conflict
from gateway.domain.events import Event, EventKind, Scalar
from gateway.domain.writes import record_name
from gateway.runtime.clock import Clock
from gateway.store import Entry, OutboxRow, Store
from gateway.texts import Text, Words, text

log = structlog.get_logger(__name__)

_SECONDS = 3600.0

_MOST_PARKED_EVENTS = 20  # an hour; the outbox lists them all
_LONGEST_TEXT = 1000


class EventLimit:
    """Rate limit for similar events: at most `most` an hour. `monotonic` returns monotonic seconds."""

    def __init__(self, *, monotonic: Callable[[], float], most: int) -> None:
        self._monotonic = monotonic
        self._most = most
        self._admitted: deque[float] = deque(maxlen=most)
        self._suppressed = 0

    def admit(self) -> int | None:
        """Count one event. Return None if it is suppressed, else how many were suppressed since the last admitted."""
        now = self._monotonic()
        if len(self._admitted) == self._most and now - self._admitted[0] < _SECONDS:
            self._suppressed += 1
            return None
        self._admitted.append(now)
        suppressed, self._suppressed = self._suppressed, 0
        return suppressed


class OutboxEvents:
    """Events of the outbox. Every method raises StoreError."""

    def __init__(self, *, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._parked = EventLimit(monotonic=clock.monotonic, most=_MOST_PARKED_EVENTS)

    async def not_known(self, row: OutboxRow, outcome: NotYet | Unclear) -> None:
        """Put a row of unknown outcome off until the next search, or leave it to a person.

        If it were sent again, it might be doubled; if it were counted as delivered, it might be lost.
        """
        rows = self._store.unknown_outcomes
        if isinstance(outcome, NotYet):
            next_at = self._clock.wall().micros + int(outcome.wait * 1_000_000)
            await rows.look_later(row, reason=outcome.reason, next_at=next_at)
        elif await rows.leave_to_a_person(row, reason=f"it may be at central: {outcome.reason}"):
            await self.parked(row, text("parked.not_known", why=outcome.reason))

    async def parked(self, row: OutboxRow, reason: Words) -> None:
        """Record that a row is parked for a person; at most 20 such events an hour, with the number of the others."""
        log.warning("record_parked", kind=row.kind, record_id=row.record_id, error=str(reason))
        suppressed = self._parked.admit()
        if suppressed is not None:
            said = text("event.record_parked", record=_named(row), why=reason)
            if suppressed:
                said = text("event.record_parked_more", said=said, count=str(suppressed))
            await self._about(row, said)

    async def dropped(self, row: OutboxRow, reason: str) -> None:
        """Record that a change was dropped because central no longer has the record."""
        await self._about(row, text("event.change_dropped", record=_named(row), why=reason))

    async def conflicts(self, row: OutboxRow, conflicts: Sequence[Conflict]) -> None:
        """Record which fields were changed on both sides, and which side counts."""
        said = "; ".join(conflict.sentence() for conflict in conflicts)[:_LONGEST_TEXT]
        await self._record(
            EventKind.CHANGED_ON_BOTH_SIDES,
            text("event.changed_on_both_sides", record=_named(row), why=said),
            {
                "kind": row.kind,
                "record_id": row.record_id,
                "fields": ", ".join(conflict.field for conflict in conflicts),
                "centrals_count": ", ".join(conflict.field for conflict in conflicts if conflict.centrals_counts),
            },
        )

    async def _about(self, row: OutboxRow, said: Text) -> None:
        about: dict[str, Scalar] = {"outbox_id": row.id, "kind": row.kind, "record_id": row.record_id}
        await self._record(EventKind.RECORD_PARKED, said, about)

    async def _record(self, kind: EventKind, said: Text, data: dict[str, Scalar]) -> None:
        stamp = self._clock.wall()
        event = Event(kind=kind, date_at=stamp.micros, clock_trusted=stamp.trusted, text=said, data=data)
        await self._store.journal.record(Entry(events=(event,)))


def _named(row: OutboxRow) -> Words:
    return record_name(row.kind, row.record_id)
