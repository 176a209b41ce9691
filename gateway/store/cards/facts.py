"""The rarely used fields of a card that access rules need, as text in one column of its row. Pure."""

from __future__ import annotations

import json
from typing import NamedTuple

from pydantic import TypeAdapter

from gateway.domain.credentials import Card


class CardFacts(NamedTuple):
    """The rarely used fields of a card; their meanings are those of `Card`."""

    zones: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    owner: str = ""
    first_person: bool = False
    duress: bool = False
    pin: str = ""
    unread: str = ""


NO_FACTS = CardFacts()
_ADAPTER = TypeAdapter(CardFacts)
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def facts_of(card: Card) -> CardFacts:
    """Return the rarely used fields of a card."""
    return CardFacts(card.zones, card.schedules, card.owner, card.first_person, card.duress, card.pin, card.unread)


def facts_text(facts: CardFacts) -> str:
    """Return facts as JSON text; "" for a card without any."""
    return "" if facts == NO_FACTS else _ENCODER.encode(facts)


def read_facts(text: str) -> CardFacts:
    """Parse the result of `facts_text`. Raises ValueError for any other text."""
    return _ADAPTER.validate_json(text) if text else NO_FACTS
