"""The card list as central would keep it: which cards may pass at this moment."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from gateway.domain.credentials import Card, CardStatus
from gateway.domain.errors import StoreError
from gateway.store import StoredCard
from simulation.virtual_site import observations as seen
from simulation.virtual_site.agenda import Fault
from simulation.virtual_site.scene import UNKNOWN_CARD, bad_cards, good_cards, refuses_unsure_time
from simulation.virtual_site.world import World


class CardList:
    """Good cards, some of them suspended for a while, and bad ones."""

    def __init__(self, *, world: World) -> None:
        self._world = world
        self._good = {card.number: card for card in good_cards(days=world.plan.days)}
        self._bad = {card.number: card for card in bad_cards()}
        self._suspended: dict[str, bool | None] = {}

    def pick(self, *, good: bool, chance: float) -> str:
        """Choose what a card sends; `chance` 0.0 to 1.0 selects it."""
        numbers = tuple(self._good) if good else (*self._bad, UNKNOWN_CARD)
        return numbers[int(chance * len(numbers))]

    def may_pass(self, number: str, *, lane: int) -> bool | None:
        """Return whether this card may pass a lane now.

        None while its right is being changed, and where the right depends on a clock that is not trusted.
        """
        card = self._good.get(number)
        has_days = card is not None and card.valid_until is not None
        if has_days and refuses_unsure_time(lane) and not self._world.clock.wall().trusted:
            return None
        suspended = self._suspended.get(number, False)
        return None if suspended is None else number in self._good and not suspended

    async def put_all(self) -> None:
        """Put the whole list into the store, once the store is open."""
        box = self._world.box
        await box.life.came_up.wait()
        cards = (*self._good.values(), *self._bad.values())
        records = [StoredCard(card, "{}") for card in cards]
        await box.life.store.cards.apply(put=records, now=self._world.clock.true_micros())
        for card in cards:
            self._world.see(seen.CardJudged(0.0, card.card_id, card.number in self._good))

    async def suspend(self, *, chance: float, seconds: float) -> None:
        """Suspend a card for a while, as if a sweep had found it suspended at central."""
        number = tuple(self._good)[int(chance * len(self._good))]
        if number in self._suspended or not self._world.box.is_up:
            return
        self._world.see(seen.Injected(self._world.now(), Fault.CARD, number, f"{seconds:.1f} s"))
        card = self._good[number]
        await self._put_card(replace(card, status=CardStatus.SUSPENDED), good=False)
        await asyncio.sleep(seconds)
        await self._put_card(card, good=True)
        del self._suspended[number]

    async def _put_card(self, card: Card, *, good: bool) -> None:
        """Put a card into the store; try again after the gateway has died meanwhile."""
        self._suspended[card.number] = None
        self._world.see(seen.CardJudged(self._world.now(), card.card_id, None))
        while True:
            life = self._world.box.life
            try:
                async with asyncio.timeout(20):
                    await life.store.cards.apply(put=(StoredCard(card, "{}"),), now=self._world.clock.true_micros())
            except (StoreError, TimeoutError):
                pass
            else:
                if life.up:
                    break
            await asyncio.sleep(5)
        self._suspended[card.number] = not good
        self._world.see(seen.CardJudged(self._world.now(), card.card_id, good))
