"""A lane's decisions: the pure rules of `gateway.domain.access`, fed with cards, presence, grants and conditions."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from gateway.domain.access import (
    AccessRules,
    Coming,
    Conditions,
    Decision,
    Reason,
    Shown,
    decide,
    store_unavailable,
    words_of,
)
from gateway.domain.credentials import Card, Credential, plate_alias
from gateway.domain.errors import StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.grants import LaneGrants, listed_id, without_code
from gateway.domain.passages import MOVED
from gateway.domain.plates import NearPlate
from gateway.domain.presence import Movement
from gateway.lanes.claims import ClaimOutcome, OwnClaim
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.transition import named
from gateway.lanes.presence import Areas
from gateway.runtime.clock import Clock, Stamp
from gateway.store import Entry
from gateway.store.cards.cards import Cards
from gateway.texts import Words, text

log = structlog.get_logger(__name__)

TRIES = 5
LOCKED_SECONDS = 900.0
_MOST_CARDS = 1000
_LOOK_UP_SECONDS = 1.0
_BY_THE_RULE_SECONDS = 0.01
_NOTICES = {Reason.ANTI_PASSBACK: EventKind.PASSBACK_NOTED, Reason.DURESS: EventKind.DURESS_SIGNALLED}


class PinTries:
    """Wrong PINs by card: `TRIES` in a row lock a card for `LOCKED_SECONDS` at every lane that asks for a PIN.

    Tries are in a row while each follows the last within `LOCKED_SECONDS`; a granted decision or a restart clears them.
    One instance serves the whole site, so that going to another lane does not help. Instants are monotonic seconds.
    """

    def __init__(self) -> None:
        self._wrong: OrderedDict[int, tuple[int, float]] = OrderedDict()

    def is_locked(self, card_id: int, now: float) -> bool:
        """Return whether the card is locked at `now`."""
        tries, since = self._wrong.get(card_id, (0, now))
        return tries >= TRIES and now < since + LOCKED_SECONDS

    def wrong(self, card_id: int, now: float) -> bool:
        """Count a wrong PIN, and return whether it locks the card."""
        tries, since = self._wrong.pop(card_id, (0, now))
        tries = 1 if now >= since + LOCKED_SECONDS else tries + 1
        self._wrong[card_id] = (tries, now)
        if len(self._wrong) > _MOST_CARDS:
            self._wrong.popitem(last=False)
        return tries == TRIES

    def right(self, card_id: int) -> None:
        """Forget the card's wrong PINs."""
        self._wrong.pop(card_id, None)


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionContext:
    """Parts of a site that the decisions of all its lanes stand on.

    Attributes:
        cards: the card file.
        areas: the numbers of vehicles by area.
        clock: the monotonic clock and the wall clock.
        recording: tells whether records can be written now.
        has_central: whether central keeps the card list, which can therefore be out of date.
        pin_tries: the wrong PINs by card.
        granted_vehicles: returns the granted vehicles of all lanes.
        grants: returns the grants of a lane by its id.
    """

    cards: Cards
    areas: Areas
    clock: Clock
    recording: Callable[[], bool]
    has_central: bool
    pin_tries: PinTries
    granted_vehicles: Callable[[], Iterable[Coming]]
    grants: Callable[[str], LaneGrants]


class Decisions:
    """The decisions of one lane. `at_once` never waits; `looked_up` waits for the card file, at most a second."""

    def __init__(self, context: DecisionContext, *, rules: Mapping[str, AccessRules], second_within: float) -> None:
        """`rules` are by direction, "entry" and "exit".

        A first credential waits `second_within` seconds for its second.
        """
        self._context = context
        self._rules = rules
        self._second_within = second_within
        self._first: tuple[Stamp, Card, float] | None = None

    @property
    def rules(self) -> Mapping[str, AccessRules]:
        """The lane's rules by direction."""
        return self._rules

    def change(self, rules: Mapping[str, AccessRules]) -> None:
        """Replace the rules, from the next decision on."""
        self._rules = rules

    def at_once(self, wanted: m.Decide, *, apart: bool = False) -> Decision | None:
        """Decide without waiting; return None while the cards are not in memory.

        `apart`: the other gateways of shared areas were asked, and did not answer.
        """
        cards = self._context.cards.at_once(wanted.credential.aliases())
        if cards == () and (others := wanted.credential.other_spellings()):
            cards = self._context.cards.at_once(others)
        if cards is None:
            return None
        known, plate = self._context.cards, wanted.credential.plate
        plates = known.at_once(_aliases(wanted.plates)) if wanted.plates else ()
        near = known.near_at_once(plate) if plate and not cards else ()
        return self._judge(wanted, cards, plates or (), near or (), apart=apart)

    async def looked_up(self, wanted: m.Decide, *, apart: bool = False) -> Decision:
        """Decide with the cards from the file. If it cannot be read within a second, decide by `store_unavailable`."""
        try:
            async with asyncio.timeout(_LOOK_UP_SECONDS):
                found = await self._found(wanted)
        except (StoreError, TimeoutError) as error:
            rules = self._rules[wanted.direction]
            log.error("cards_not_readable", lane=rules.lane_id, error=str(error) or "took too long")  # noqa: TRY400 (one line suffices)
            return store_unavailable(rules)
        return self._judge(wanted, *found, apart=apart)

    def claim(self, wanted: m.Decide, decision: Decision) -> OwnClaim | None:
        """Begin to claim what was just granted among the gateways of a shared area; None if there is no need."""
        shared, rules = self._context.areas.shared, self._rules[wanted.direction]
        if shared is None or not decision.granted:
            return None
        entered = rules.areas.get(rules.way.enters)
        return shared.ask(decision.holder, rules.way, limit=None if entered is None else entered.limit)

    async def claimed(self, wanted: m.Decide, decision: Decision, claim: OwnClaim | None, *, since: float) -> Decision:
        """Wait for the claim, and decide again if it failed. Without an answer in time, the area's rule decides.

        The card has waited since `since` (monotonic), and waits `claim_ms` in all: the last moments are for the rule.
        """
        shared = self._context.areas.shared
        if shared is None or claim is None:
            return decision
        until = since + shared.claim_seconds - _BY_THE_RULE_SECONDS
        while claim is not None:
            outcome = await shared.outcome(claim, until=until)
            if outcome is ClaimOutcome.CLAIMED:
                return decision.with_claim(claim.claim.id, f"{claim.shown} is claimed")
            away = outcome is ClaimOutcome.AWAY
            decision = self.at_once(wanted, apart=away) or await self.looked_up(wanted, apart=away)
            if away and decision.granted:
                return decision.with_claim(
                    claim.claim.id, f"{claim.shown}: no answer within {shared.claim_seconds * 1000:g} ms"
                )
            if away:
                shared.release(claim.claim.id)
                return decision
            claim = self.claim(wanted, decision)
        return decision

    async def tried(self, credential: Credential, direction: str, *, arrived: Stamp) -> Decision:
        """Decide as if the credential were read now, and keep no trace. Raises StoreError when cards cannot be read."""
        wanted = m.Decide(0, credential, direction, arrived)
        return self._judge(wanted, *await self._found(wanted), is_test=True)

    def noticed(self, wanted: m.Decide, decision: Decision) -> Iterator[Entry]:
        """Count a typed PIN. Yield the events beside the decision: duress, soft anti-passback, a card now locked."""
        noted = [(_NOTICES[reason], words_of(reason)) for reason in decision.notices]
        if self._is_locked_by(decision):
            noted.append((EventKind.PIN_LOCKED, text("read.pin_locked", count=TRIES, minutes=LOCKED_SECONDS / 60)))
        if not noted:
            return
        stamp, shown = self._context.clock.wall(), without_code(wanted.credential, decision.card).shown()
        for kind, why in noted:
            event = Event(
                kind=kind,
                date_at=stamp.micros,
                clock_trusted=stamp.trusted,
                text=text("event.decided", credential=text("credential.card", number=shown), why=why),
                lane_id=self._rules[wanted.direction].lane_id,
                data={"credential": shown, "card_id": listed_id(decision.card)},
            )
            yield Entry(events=(event,))

    def with_movement(self, entry: Entry) -> Entry:
        """Apply a passage's movement between areas, and return its entry with it. Return other entries unchanged."""
        passage = entry.passage
        if passage is None or passage.outcome not in MOVED:
            return entry
        rules = self._rules[passage.direction]
        if not rules.way:
            return entry
        left = rules.areas.get(rules.way.leaves)
        shared = left is not None and left.shared
        movement = Movement(rules.way, passage.ended_at, holder=passage.holder, opens=passage.opens, shared=shared)
        self._context.areas.move(movement)
        return replace(entry, movements=(*entry.movements, movement))

    def release(self, claim: str) -> None:
        """Give a claim back that nobody used."""
        if self._context.areas.shared is not None:
            self._context.areas.shared.release(claim)

    def teller(self, entry: Entry) -> Callable[[], None] | None:
        """Return what tells an entry's movements to the other gateways once it is on disk; None for nothing to tell."""
        shared = self._context.areas.shared
        if shared is None or not entry.movements:
            return None
        return lambda: shared.moved(entry.movements)

    def _is_locked_by(self, decision: Decision) -> bool:
        """Count the typed PIN; return whether the card is locked."""
        if decision.card is None:
            return False
        if decision.reason is Reason.WRONG_PIN:
            return self._context.pin_tries.wrong(decision.card.card_id, self._context.clock.monotonic())
        if decision.granted:
            self._context.pin_tries.right(decision.card.card_id)
        return False

    async def _found(self, wanted: m.Decide) -> tuple[tuple[Card, ...], tuple[Card, ...], tuple[NearPlate, ...]]:
        """Read the credential's cards, those of the other plates, and the near plates from the file.

        Raises StoreError.
        """
        cards = await self._context.cards.matching(wanted.credential.aliases())
        cards = cards or await self._context.cards.matching(wanted.credential.other_spellings())
        plates = await self._context.cards.matching(_aliases(wanted.plates))
        near = await self._context.cards.near(wanted.credential.plate) if wanted.credential.plate and not cards else ()
        return cards, plates, near

    def _judge(
        self,
        wanted: m.Decide,
        cards: Sequence[Card],
        plates: tuple[Card, ...],
        near: tuple[NearPlate, ...],
        *,
        is_test: bool = False,
        apart: bool = False,
    ) -> Decision:
        rules, stamp, now = self._rules[wanted.direction], self._context.clock.wall(), self._context.clock.monotonic()
        first = self._first_of(wanted, now)
        decision = decide(
            wanted.credential,
            cards,
            now=stamp.micros,
            rules=rules,
            presence=self._context.areas.presence,
            conditions=Conditions(
                clock_trusted=stamp.trusted,
                recording=self._context.recording(),
                at_least=stamp.at_least,
                listed_at=self._context.cards.listed_at if self._context.has_central else None,
                apart=apart or self._context.areas.is_apart,
            ),
            shown=Shown(
                first=first,
                plates=plates,
                near=near,
                pin=wanted.pin,
                pin_locked=any(self._context.pin_tries.is_locked(card.card_id, now) for card in cards),
                coming=(*self._context.granted_vehicles(), *self._context.areas.coming()),
            ),
            grants=self._context.grants(rules.lane_id),
        )
        if decision.reason is Reason.SECOND_CREDENTIAL_AWAITED and decision.card and first is None and not is_test:
            card = replace(decision.card, duress=Reason.DURESS in decision.notices)
            self._first = (wanted.arrived, card, now)
        return decision

    def _first_of(self, wanted: m.Decide, now: float) -> Card | None:
        """Return the card that this visit showed as the first of two, until its time is over; None for none."""
        if self._first is None or self._first[0] != wanted.arrived or now >= self._first[2] + self._second_within:
            return None
        return self._first[1]


def _aliases(plates: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(plate_alias, plates))


@dataclass(frozen=True, slots=True)
class TriedCard:
    """The outcome of a trial. `hindered`: why even a granted card would open nothing now, "" if it would open."""

    decision: Decision
    hindered: Words

    @property
    def opens(self) -> bool:
        """True if the lane would open for the card."""
        return self.decision.granted and not self.hindered

    def words(self) -> Words:
        """Write the reason for people."""
        return self.hindered or self.decision.words()

    def event(self, credential: Credential, *, lane_id: str, by: str, stamp: Stamp) -> Event:
        """Return the event that records the trial, marked as a test."""
        verdict = "let_in" if self.opens else "refused"
        return Event(
            kind=EventKind.CARD_TESTED,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=text(f"event.card_tested.{verdict}", who=by, credential=named(credential), why=self.words()),
            lane_id=lane_id,
            data={
                "test": True,
                "by": by,
                "credential": credential.shown(),
                "card_id": listed_id(self.decision.card),
                "granted": self.opens,
                "reason": self.decision.reason,
                "trace": self.decision.traced(),
            },
        )
