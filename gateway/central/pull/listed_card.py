"""A card of one of central's pages: made here, or by the process that reads long lists."""

from __future__ import annotations

import json
from typing import NamedTuple

from gateway.central.pull.field_map import CardMapper, MappedCard
from gateway.domain.writes import JsonObject
from gateway.store import CardRecord
from gateway.store.cards.rows import PackedCard, ReadyCard, ready, ready_from
from gateway.store.outbox.record_kinds import record_text


class ListedCard(NamedTuple):
    """Central's record as text, and the card that it is, as far as that is known yet.

    Attributes:
        card_id: its id.
        text: its record.
        parsed: the same, None of a card that was read elsewhere.
        mapped: the card, None while nobody wanted it, or it was read elsewhere.
        packed: the card that was read elsewhere.
        is_unread: whether something of the packed card could not be read.
    """

    card_id: int
    text: str
    parsed: JsonObject | None = None
    mapped: MappedCard | None = None
    packed: PackedCard | None = None
    is_unread: bool = False

    @property
    def record(self) -> JsonObject:
        """Central's record."""
        if self.parsed is not None:
            return self.parsed
        parsed: JsonObject = json.loads(self.text)
        return parsed

    def judged(self, mapper: CardMapper) -> JudgedCard:
        """What it is as a card."""
        if self.packed is not None:
            return JudgedCard(bool(self.packed.aliases), self.is_unread, self)
        mapped = self.mapped or mapper.map(self.card_id, self.record)
        return JudgedCard(mapped.has_credential, bool(mapped.unread), self._replace(mapped=mapped))


class JudgedCard(NamedTuple):
    """A listed card of which it is known whether any reading can match it, and whether a part could not be read."""

    has_credential: bool
    is_unread: bool
    listed: ListedCard

    def ready(self) -> ReadyCard:
        """As it is written."""
        if self.listed.packed is not None:
            return ready_from(self.listed.packed)
        if self.listed.mapped is None:
            raise AssertionError("a judged card is mapped or packed")
        return ready(CardRecord(self.listed.mapped.card, self.listed.text))


def listed_here(card_id: int, record: JsonObject, mapper: CardMapper | None) -> ListedCard:
    """A record of a page that was read here; mapped where there is a mapper."""
    mapped = None if mapper is None else mapper.map(card_id, record)
    return ListedCard(card_id, record_text(record), record, mapped)


def listed_elsewhere(packed: PackedCard, is_unread: bool) -> ListedCard:  # noqa: FBT001 (as it comes from there)
    """A record of a page that was read elsewhere."""
    return ListedCard(packed.values[0], packed.values[-1], packed=packed, is_unread=is_unread)
