"""A lane's decisions: the pure rules, fed with cards, presence and the state of things."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import structlog

from gateway.clock import Clock, Stamp
from gateway.domain.access import (
    AccessRules,
    Conditions,
    Decision,
    Reason,
    Shown,
    decide,
    sentence_of,
    store_unavailable,
)
from gateway.domain.credentials import Card, Credential
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import PassageOutcome
from gateway.domain.plates import NearPlate
from gateway.domain.presence import Movement
from gateway.lanes.areas import Areas
from gateway.store import Entry
from gateway.store.cards import Cards

log = structlog.get_logger(__name__)

_LOOK_UP_SECONDS = 1.0
_MOVED = frozenset({PassageOutcome.PASSED, PassageOutcome.UNAUTHORISED})
_NOTICES = {Reason.ANTI_PASSBACK: EventKind.PASSBACK_NOTED, Reason.DURESS: EventKind.DURESS_SIGNALLED}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A decision that is wanted: on what, for which direction, and for which visit, told by its arrival."""

    credential: Credential
    direction: str
    visit: Stamp | None


class Decisions:
    """Decides for one lane. Only `looked_up` waits, at most a second."""

    def __init__(
        self,
        *,
        rules: Mapping[str, AccessRules],
        cards: Cards,
        areas: Areas,
        clock: Clock,
        recording: Callable[[], bool],
        has_central: bool,
    ) -> None:
        """`rules` by direction, "entry" and "exit"; `has_central`: the card list is kept from outside and can age."""
        self._rules = rules
        self._cards = cards
        self._areas = areas
        self._clock = clock
        self._recording = recording
        self._has_central = has_central
        self._first: tuple[Stamp, Card] | None = None
        self._last: Decision | None = None

    def at_once(self, wanted: Wanted) -> Decision | None:
        """The decision without waiting; None while the cards are not in memory."""
        cards = self._cards.at_once(wanted.credential.aliases())
        return None if cards is None else self._judge(wanted, cards)

    async def looked_up(self, wanted: Wanted) -> Decision:
        """The decision with the cards from the file."""
        try:
            async with asyncio.timeout(_LOOK_UP_SECONDS):
                cards = await self._cards.matching(wanted.credential.aliases())
        except (StoreError, TimeoutError) as error:
            rules = self._rules[wanted.direction]
            log.error("cards_not_readable", lane=rules.lane_id, error=str(error) or "took too long")  # noqa: TRY400 (one line suffices)
            return store_unavailable(rules)
        return self._judge(wanted, cards)

    def noticed(self, wanted: Wanted, decision: Decision) -> Iterator[Entry]:
        """What a person should hear of beside the decision."""
        stamp, shown = self._clock.wall(), wanted.credential.shown()
        for reason in decision.notices:
            event = Event(
                kind=_NOTICES[reason],
                date_at=stamp.micros,
                clock_trusted=stamp.trusted,
                description=f"card {shown}: {sentence_of(reason)}",
                lane_id=self._rules[wanted.direction].lane_id,
                data={"credential": shown, "card_id": decision.card.card_id if decision.card else None},
            )
            yield Entry(events=(event,))

    def with_movement(self, entry: Entry) -> Entry:
        """The entry of a passage with what it changes about who is where; other entries as they are."""
        passage = entry.passage
        if passage is None or passage.outcome not in _MOVED:
            return entry
        rules = self._rules[passage.direction]
        if not rules.way:
            return entry
        movement = Movement(rules.way, passage.ended_at)
        if passage.card_id is not None:
            last = self._last
            card = last.card if last is not None and last.card is not None else None
            if last is None or card is None or card.card_id != passage.card_id:
                movement = replace(movement, holder=rules.holder(Card(passage.card_id, "")))
            else:
                movement = replace(movement, holder=rules.holder(card), opens=last.granted and card.first_person)
        self._areas.move(movement)
        return replace(entry, movements=(*entry.movements, movement))

    def _judge(self, wanted: Wanted, cards: tuple[Card, ...]) -> Decision:
        rules, stamp = self._rules[wanted.direction], self._clock.wall()
        plate = wanted.credential.plate
        near: tuple[NearPlate, ...] = self._cards.near(plate) if plate and rules.near_plates and not cards else ()
        first = self._first[1] if self._first is not None and self._first[0] == wanted.visit else None
        decision = decide(
            wanted.credential,
            cards,
            now=stamp.micros,
            rules=rules,
            presence=self._areas.presence,
            conditions=Conditions(
                clock_trusted=stamp.trusted,
                recording=self._recording(),
                listed_at=self._cards.listed_at if self._has_central else None,
            ),
            shown=Shown(first=first, near=near),
        )
        self._last = decision
        if decision.reason is Reason.SECOND_CREDENTIAL_AWAITED and decision.card and wanted.visit and first is None:
            self._first = (wanted.visit, decision.card)
        return decision
