"""Wrong PINs of late, by card, so that nobody tries them all. In memory: a restart forgets them."""

from __future__ import annotations

from collections import OrderedDict

TRIES = 5
LOCKED_SECONDS = 900.0
_MOST_CARDS = 1000


class PinTries:
    """After `TRIES` wrong PINs within `LOCKED_SECONDS` a card is locked at PIN lanes for as long, whatever is typed.

    One for the whole site: going to another lane does not help. Instants are monotonic seconds.
    """

    def __init__(self) -> None:
        self._wrong: OrderedDict[int, tuple[int, float]] = OrderedDict()

    def is_locked(self, card_id: int, now: float) -> bool:
        """Whether the card must wait."""
        tries, since = self._wrong.get(card_id, (0, now))
        return tries >= TRIES and now < since + LOCKED_SECONDS

    def wrong(self, card_id: int, now: float) -> bool:
        """A wrong PIN was typed; whether the card is locked by it."""
        tries, since = self._wrong.pop(card_id, (0, now))
        tries = 1 if now >= since + LOCKED_SECONDS else tries + 1
        self._wrong[card_id] = (tries, now)
        if len(self._wrong) > _MOST_CARDS:
            self._wrong.popitem(last=False)
        return tries == TRIES

    def right(self, card_id: int) -> None:
        """The right PIN was typed."""
        self._wrong.pop(card_id, None)
