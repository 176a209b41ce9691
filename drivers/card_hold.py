"""Repeated readings of a card or tag that stays at its reader. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from drivers.contract import CardPresented, MonotonicSeconds

_MOST_REMEMBERED: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Stay:
    """A card at the reader: when it was last reported, and when it was last read."""

    reported_at: MonotonicSeconds
    read_at: MonotonicSeconds


class CardHold:
    """The filter of repeated readings: a card is reported once, and every `seconds` again as held while it stays.

    A card that stays must be reported again from time to time. Its first reading may not count, because the vehicle did
    not stand on the arming loop yet. A card that was not read for `seconds` is presented anew.
    """

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._stays: dict[tuple[int, int, str], _Stay] = {}

    def of(self, card: CardPresented) -> CardPresented | None:
        """Return the report that this reading makes, None for a repetition; remember the reading."""
        key, at = (card.bit_length, card.bits, card.text), card.at
        stay = self._stays.pop(key, None)
        if stay is not None and at - stay.read_at < self._seconds:
            is_due = at - stay.reported_at >= self._seconds
            self._stays[key] = _Stay(at if is_due else stay.reported_at, at)
            return replace(card, held=True) if is_due else None
        if len(self._stays) >= _MOST_REMEMBERED:
            self._stays = {known: old for known, old in self._stays.items() if at - old.read_at < self._seconds}
            if len(self._stays) >= _MOST_REMEMBERED:
                del self._stays[next(iter(self._stays))]
        self._stays[key] = _Stay(at, at)
        return card
