"""Access cards as an Excel file."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from pydantic import JsonValue

from gateway.store import CardRecord
from gateway.store.cards.cards import Cards
from gateway.web.http.bodies import LARGEST_ID
from gateway.web.spreadsheets import Cell, Column

_IDS = 2000
_STRETCH = 40  # about 1 ms of work, so that lanes come first
_FIELDS = (
    Column("Username"),
    Column("Plate", width=12),
    Column("Facility code", "number", 12),
    Column("Card number", width=14),
    Column("Card format", width=12),
    Column("UID"),
    Column("Type", width=12),
    Column("Customer id", "number", 12),
    Column("Company id", "number", 12),
    Column("Note", width=40),
)
_NAMES = tuple(column.title.lower().replace(" ", "_") for column in _FIELDS)
COLUMNS = (
    Column("Id", "number", 12),
    Column("Number"),
    Column("Status", width=12),
    Column("Holder", width=28),
    Column("Valid from", "moment", 20),
    Column("Valid until", "moment", 20),
    *_FIELDS,
)


async def card_rows(cards: Cards, search: str) -> AsyncIterator[list[list[Cell]]]:
    """Yield the rows of all cards that pass the search, newest first, without PINs."""
    below = LARGEST_ID
    while ids := await cards.ids_below(below, search=search, limit=_IDS):
        below = ids[-1]
        for start in range(0, len(ids), _STRETCH):
            yield [_row(item) for item in await cards.of_ids(ids[start : start + _STRETCH])]


def _row(item: CardRecord) -> list[Cell]:
    card, record = item.card, json.loads(item.record)
    stated: list[Cell] = [card.card_id, card.number, card.status.value, card.holder, card.valid_from, card.valid_until]
    return stated + [_cell(record.get(name)) for name in _NAMES]


def _cell(value: JsonValue) -> Cell:
    return None if isinstance(value, dict | list | bool) else value
