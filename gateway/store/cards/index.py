"""Every card in memory, in compact form, so that a decision waits neither for a thread nor for the disk.

The index has a row of bytes for each card, and hash tables from the 64-bit hashes of its aliases to its row. Hashes may
collide, so a row that is found counts only if the alias is among its own. The tables are many and small, so that no
single growth takes long.
"""

from __future__ import annotations

import marshal
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from gateway.domain.credentials import Card, CardStatus
from gateway.store.cards.facts import NO_FACTS, CardFacts, facts_of

_SHARDS = 256
_SMALLEST = 16
_EMPTY, _GONE, _FIRST = 0, 1, 2
_STATUSES = tuple(CardStatus)
_PLACE = {status: place for place, status in enumerate(_STATUSES)}
_MOST_MATCHES = 8
alias_hash = (
    hash  # Python's own, of 64 bits for a text and keyed anew in every process: nobody can make aliases collide
)


class _Table:
    """A hash table from alias hashes to row numbers: open addressing, at most two thirds full."""

    __slots__ = ("hashes", "live", "mask", "slots", "used")

    def __init__(self, size: int = _SMALLEST) -> None:
        self.mask = size - 1
        self.hashes = array("q", bytes(8 * size))
        self.slots = array("I", bytes(4 * size))
        self.live = self.used = 0

    def __contains__(self, key: int) -> bool:
        """Return whether a hash leads to any row."""
        slots, hashes, mask = self.slots, self.hashes, self.mask
        place = key >> 8 & mask
        while (slot := slots[place]) != _EMPTY:
            if slot >= _FIRST and hashes[place] == key:
                return True
            place = place + 1 & mask
        return False

    def rows(self, key: int) -> Iterator[int]:
        """Yield every row under a hash."""
        place = key >> 8 & self.mask
        while (slot := self.slots[place]) != _EMPTY:
            if slot >= _FIRST and self.hashes[place] == key:
                yield slot - _FIRST
            place = place + 1 & self.mask

    def add(self, key: int, row: int) -> None:
        """Add a row under a hash."""
        if self.used * 3 >= self.mask * 2:
            self._make_room()
        slots, mask = self.slots, self.mask
        place = key >> 8 & mask
        while slots[place]:
            place = place + 1 & mask
        self.hashes[place] = key
        slots[place] = row + _FIRST
        self.live += 1
        self.used += 1

    def drop(self, key: int, row: int) -> None:
        """Remove a row from under a hash, if it is there."""
        place = key >> 8 & self.mask
        while (slot := self.slots[place]) != _EMPTY:
            if slot == row + _FIRST and self.hashes[place] == key:
                self.slots[place] = _GONE
                self.live -= 1
                return
            place = place + 1 & self.mask

    def _make_room(self) -> None:
        size = _SMALLEST
        while size < (self.live + 1) * 2:
            size *= 2
        mask = size - 1
        hashes, slots = array("q", bytes(8 * size)), array("I", bytes(4 * size))
        for key, slot in zip(self.hashes, self.slots, strict=True):
            if slot >= _FIRST:
                place = key >> 8 & mask
                while slots[place]:
                    place = place + 1 & mask
                hashes[place] = key
                slots[place] = slot
        self.mask, self.hashes, self.slots, self.used = mask, hashes, slots, self.live


class IndexRow(NamedTuple):
    """A card as the index stores it: its id, its row of bytes, and the hashes to find it by, that of its id first."""

    card_id: int
    packed: bytes
    keys: tuple[int, ...]


class CardIndex:
    """Cards by their aliases. Not thread-safe."""

    def __init__(self) -> None:
        self._tables = tuple(_Table() for _ in range(_SHARDS))
        self._rows: list[bytes] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return the number of cards."""
        return len(self._rows) - len(self._free)

    @property
    def size(self) -> int:
        """Bytes that the tables and rows take in memory."""
        tables = sum(
            sys.getsizeof(table) + sys.getsizeof(table.hashes) + sys.getsizeof(table.slots) for table in self._tables
        )
        return tables + sum(map(sys.getsizeof, self._rows)) + sys.getsizeof(self._rows) + sys.getsizeof(self._free)

    def find(self, aliases: Sequence[str]) -> tuple[Card, ...]:
        """Return the cards that answer to any of the aliases, each once and without its own aliases.

        At most 8, which is enough to see an ambiguity.
        """
        found: dict[int, Card] = {}
        for alias in aliases:
            for row in self._rows_of(alias):
                if row not in found and len(found) < _MOST_MATCHES:
                    fields = _fields(self._rows[row])
                    if alias in fields[-1]:
                        found[row] = _card(fields)
        return tuple(found.values())

    def aliases_of(self, card_id: int) -> tuple[str, ...]:
        """Return the aliases of a card; empty for an unknown card."""
        row = self._row_of(card_id)
        return () if row is None else _fields(self._rows[row])[-1]

    def put(self, cards: Iterable[Card]) -> None:
        """Add or replace cards."""
        self.put_rows(index_row(card, facts_of(card)) for card in cards)

    def put_rows(self, cards: Iterable[IndexRow]) -> None:
        """Add or replace cards whose rows were computed before."""
        tables, rows = self._tables, self._rows
        for card_id, packed, keys in cards:
            if keys[0] in tables[keys[0] % _SHARDS]:
                self._drop(card_id)
            if self._free:
                row = self._free.pop()
                rows[row] = packed
            else:
                row = len(rows)
                rows.append(packed)
            for key in keys:
                tables[key % _SHARDS].add(key, row)

    def remove(self, card_ids: Iterable[int]) -> None:
        """Remove cards; unknown ids are ignored."""
        for card_id in card_ids:
            self._drop(card_id)

    def _drop(self, card_id: int) -> None:
        row = self._row_of(card_id)
        if row is None:
            return
        for key in _keys(card_id, _fields(self._rows[row])[-1]):
            self._tables[key % _SHARDS].drop(key, row)
        self._rows[row] = b""
        self._free.append(row)

    def _rows_of(self, alias: str) -> Iterator[int]:
        key = alias_hash(alias)
        return self._tables[key % _SHARDS].rows(key)

    def _row_of(self, card_id: int) -> int | None:
        rows = self._rows_of(_id_alias(card_id))
        return next((row for row in rows if _fields(self._rows[row])[0] == card_id), None)


_Facts = tuple[tuple[str, ...], tuple[str, ...], str, bool, bool, str, str]
_Fields = tuple[int, str, int, int | None, int | None, str, _Facts | None, tuple[str, ...]]


def index_row(card: Card, facts: CardFacts) -> IndexRow:
    """Compute the index's row for a card with these facts. Pure."""
    return keyed(card.card_id, packed(card, facts), card.aliases)


def keyed(card_id: int, packed: bytes, aliases: Sequence[str]) -> IndexRow:
    """Compute the index's row from a card that is `packed` already. The hashes are valid in this process only. Pure."""
    return IndexRow(card_id, packed, _keys(card_id, aliases))


def packed(card: Card, facts: CardFacts) -> bytes:
    """Encode a card with these facts as bytes that are the same in every process. Pure."""
    fields: _Fields = (
        card.card_id,
        card.number,
        _PLACE[card.status],
        card.valid_from,
        card.valid_until,
        card.holder,
        None if facts == NO_FACTS else facts[:],
        card.aliases,
    )
    return marshal.dumps(fields)


def _fields(row: bytes) -> _Fields:
    fields: _Fields = marshal.loads(row)  # noqa: S302 (made by `packed`, in a process of this program)
    return fields


def _card(fields: _Fields) -> Card:
    card_id, number, status, valid_from, valid_until, holder, stored, _ = fields
    facts = NO_FACTS if stored is None else CardFacts._make(stored)
    return Card(card_id, number, _STATUSES[status], valid_from, valid_until, holder, *facts)


def _keys(card_id: int, aliases: Sequence[str]) -> tuple[int, ...]:
    """Return the hashes to find a card by, that of its id first."""
    return tuple(map(alias_hash, dict.fromkeys((_id_alias(card_id), *aliases))))


def _id_alias(card_id: int) -> str:
    """Return an alias for finding a card by its id. No reading has such an alias."""
    return f"\0{card_id}"
