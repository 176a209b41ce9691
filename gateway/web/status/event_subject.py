"""Search for events about a plate, a card or a person. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from gateway.domain.events import RecordedEvent
from gateway.domain.plates import plain_plate
from gateway.store import CardRecord

About = Literal["plate", "card", "person"]


@dataclass(frozen=True, slots=True)
class Subject:
    """A plate, a card or a person to search for.

    Attributes:
        about: the kind of subject.
        text: the text that was typed, normalised for comparison.
        card_ids: the cards that match the text. Readers often send other numbers than the printed ones, so events are
            found by the card's id too.
    """

    about: About
    text: str
    card_ids: frozenset[int]

    @classmethod
    def of(cls, about: About, search: str, known: Collection[CardRecord]) -> Subject:
        """Return the subject of a search, with those of the `known` cards whose own field for it matches."""
        text = _compared(about, search)
        found = (one.card.card_id for one in known if text in _compared(about, _field(about, one)))
        return cls(about, text, frozenset(found))

    def is_of(self, event: RecordedEvent) -> bool:
        """Return whether the event is about this subject."""
        data = json.loads(event.data) if '"card_id"' in event.data or '"credential"' in event.data else {}
        if data.get("card_id") in self.card_ids:
            return True
        said = str(data.get("credential") or "") if self.about != "person" else event.description
        return bool(self.text) and self.text in _compared(self.about, said)


def _compared(about: About, text: str) -> str:
    return plain_plate(text) if about == "plate" else text.strip().casefold()


def _field(about: About, known: CardRecord) -> str:
    if about == "card":
        return known.card.number
    record = json.loads(known.record)
    if about == "plate":
        return str(record.get("plate") or "")
    return f"{known.card.holder} {record.get('username') or ''}"
