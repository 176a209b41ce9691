"""The page's further views of cards: unknown reads, changes that wait for central, and changes on both sides."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice

from gateway.domain.events import EventKind, RecordedEvent
from gateway.runtime.clock import iso_utc
from gateway.store import EventFilter
from gateway.web.answers import Answer, AnswerPart, WaitingRow
from gateway.web.families import Family, operation
from gateway.web.operation import VIEW_CARDS, VIEW_EVENTS
from gateway.web.operations.cards import KIND
from gateway.web.status.outbox import waiting_row
from gateway.web.status.snapshot import read_of

_DAY = 86_400_000_000
_PAGE = 500
_MOST_EVENTS = 5_000
_MOST_SHOWN = 50


class UnknownRead(AnswerPart):
    """An unknown card or plate: its newest event, and the number of its events. `enrol`: fields for a new card."""

    credential: str
    event_id: int
    lane_id: str
    date_at: str
    times: int
    enrol: dict[str, str]


class UnknownReads(Answer):
    """The unknown cards and plates of the last 24 hours, newest first."""

    reads: tuple[UnknownRead, ...]


class CardConflict(AnswerPart):
    """A card that was changed on both sides; the text says which side counts."""

    event_id: int
    card_id: int | None
    date_at: str
    text: str


class CardSync(AnswerPart):
    """The changes of cards that wait for central or were refused, and the latest conflicts."""

    waiting: tuple[WaitingRow, ...]
    conflicts: tuple[CardConflict, ...]


class CardSyncAnswer(Answer):
    """The changes of cards that the site and central do not agree on yet."""

    sync: CardSync


class StatusCards(Family):
    """The handlers of `/status/card/unknown` and `/status/card/sync`."""

    @operation("GET", "/status/card/unknown", VIEW_CARDS & VIEW_EVENTS, "reads")
    async def _unknown(self) -> UnknownReads:
        wanted = EventFilter(types=(EventKind.ACCESS_DENIED,), date_from=self.context.clock.wall().micros - _DAY)
        found: list[RecordedEvent] = []
        before: int | None = 0
        while before is not None and len(found) < _MOST_EVENTS:
            page = await self.context.store.events.page(wanted, before=before, limit=_PAGE)
            found += page.events
            before = page.next_cursor
        return UnknownReads(reads=tuple(islice(_unknown_reads(found), _MOST_SHOWN)))

    @operation("GET", "/status/card/sync", VIEW_CARDS, "sync")
    async def _sync(self) -> CardSyncAnswer:
        waiting = await self.context.store.refused.page(kind=KIND, limit=_MOST_SHOWN, refused=False)
        both = await self.context.store.events.page(EventFilter(types=(EventKind.CHANGED_ON_BOTH_SIDES,)), limit=_PAGE)
        conflicts: list[CardConflict] = []
        for event in both.events:
            data = json.loads(event.data)
            if data.get("kind") == KIND:
                conflicts.append(
                    CardConflict(
                        event_id=event.id,
                        card_id=data.get("record_id"),
                        date_at=iso_utc(event.date_at),
                        text=event.description,
                    )
                )
        shown = CardSync(waiting=tuple(map(waiting_row, waiting)), conflicts=tuple(conflicts[:_MOST_SHOWN]))
        return CardSyncAnswer(sync=shown)


def _unknown_reads(events: Sequence[RecordedEvent]) -> Iterator[UnknownRead]:
    """Yield each unknown reading once, with its newest event and the number of its events."""
    times: dict[str, list[RecordedEvent]] = {}
    for event in events:
        read = read_of(event)
        if read is not None and read.is_unknown:
            times.setdefault(read.credential, []).append(event)
    for credential, same in times.items():
        read = read_of(same[0])
        yield UnknownRead(
            credential=credential,
            event_id=same[0].id,
            lane_id=same[0].lane_id,
            date_at=iso_utc(same[0].date_at),
            times=len(same),
            enrol=dict(read.enrol) if read else {},
        )
