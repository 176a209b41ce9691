"""Rows of cards in their tables, as steps within a running transaction.

One statement writes many rows. A statement per row would make the writing thread and the loop compete for the
interpreter lock after every row.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from typing import Final, NamedTuple, TypeVar

from pydantic import TypeAdapter

from gateway.domain.credentials import Card, CardStatus
from gateway.domain.errors import StoreError
from gateway.store.engine.database import Database

COLUMNS: Final = "card.id, number, status, valid_from, valid_until, holder, facts"
_IN_A_STATEMENT = 500
_ALIASES_IN_A_STATEMENT = 4 * _IN_A_STATEMENT
_MOST_MATCHES = 8

_T = TypeVar("_T")
CardRow = tuple[int, str, str, int | None, int | None, str, str]
_Values = tuple[int, str, str, int | None, int | None, str, str, str]


@dataclass(frozen=True, slots=True)
class StoredCard:
    """A card with central's record of it (`record`, JSON text) as it arrived, unknown fields included."""

    card: Card
    record: str


class ReadyCard(NamedTuple):
    """A card in the form in which it is written to its tables. Its plain values can come from another process."""

    values: _Values
    aliases: tuple[str, ...]


class _CardFacts(NamedTuple):
    """The rarely used fields of a card, as text in one column of its row; their meanings are those of `Card`."""

    zones: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    owner: str = ""
    first_person: bool = False
    duress: bool = False
    pin: str = ""
    unread: str = ""


_NO_FACTS = _CardFacts()
_FACTS = TypeAdapter(_CardFacts)
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def ready(item: StoredCard) -> ReadyCard:
    """Compute all values of a card's rows, before they are written. Pure."""
    card = item.card
    values = (
        card.card_id,
        card.number,
        card.status.value,
        card.valid_from,
        card.valid_until,
        card.holder,
        _facts_text(card),
        item.record,
    )
    return ReadyCard(values, card.aliases)


def put_rows(connection: sqlite3.Connection, cards: Iterable[ReadyCard], now: int) -> tuple[int, int]:
    """Add or replace cards; return how many were added and how many replaced. Of two with one id the later one counts.

    Rows are written by ascending id, whatever their order in the list: descending ids would leave every page of the
    tables half empty.
    """
    last = {card.values[0]: card for card in cards}
    there = 0
    for batch in batches((last[number] for number in sorted(last)), _IN_A_STATEMENT):
        numbers = [card.values[0] for card in batch]
        there += _there(connection, numbers)
        connection.execute(_put_statement(len(batch)), [value for card in batch for value in (*card.values, now)])
        current = _current_aliases(connection, numbers)
        differing = [card for card in batch if current.get(card.values[0], set()) != set(card.aliases)]
        # New cards too may have old aliases: those of a lost card that were salvaged from a damaged file.
        gone = [card.values[0] for card in differing if card.values[0] in current]
        delete_aliases(connection, gone)
        # Ordered by id: in the order of aliases, the index by card would be written all over and take more pages.
        insert_aliases(connection, differing)
    return len(last) - there, there


def delete_aliases(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Delete all aliases of these cards."""
    connection.execute(f"DELETE FROM card_alias WHERE card_id IN ({_places(numbers)})", numbers)


def insert_aliases(connection: sqlite3.Connection, cards: Iterable[ReadyCard]) -> None:
    """Add the aliases of these cards; those that are there already stay."""
    pairs = [(alias, card.values[0]) for card in cards for alias in card.aliases]
    for aliases in batches(pairs, _ALIASES_IN_A_STATEMENT):
        connection.execute(_alias_statement(len(aliases)), [value for pair in aliases for value in pair])


def read_card(row: CardRow) -> Card:
    """Parse a row of `COLUMNS` into a card without aliases. Raises ValueError for a row that cannot be understood."""
    facts = _read_facts(row[6])
    return Card(
        card_id=row[0],
        number=row[1],
        status=CardStatus(row[2]),
        valid_from=row[3],
        valid_until=row[4],
        holder=row[5],
        zones=facts.zones,
        schedules=facts.schedules,
        owner=facts.owner,
        first_person=facts.first_person,
        duress=facts.duress,
        pin=facts.pin,
        unread=facts.unread,
    )


def rows_of_aliases(connection: sqlite3.Connection, aliases: Sequence[str]) -> list[CardRow]:
    """Return the rows of the cards that answer to any of the aliases, at most 8: enough to see an ambiguity."""
    rows: list[CardRow] = connection.execute(
        f"SELECT DISTINCT {COLUMNS} FROM card_alias JOIN card ON card.id = card_alias.card_id"
        f" WHERE alias IN ({_places(aliases)}) LIMIT ?",
        (*aliases, _MOST_MATCHES),
    ).fetchall()
    return rows


def cards_of_aliases(connection: sqlite3.Connection, aliases: Sequence[str]) -> tuple[Card, ...]:
    """Return the cards of `rows_of_aliases`. Raises StoreError for a row that cannot be understood."""
    try:
        return tuple(map(read_card, rows_of_aliases(connection, aliases)))
    except ValueError as error:
        raise StoreError(f"a card that was found cannot be understood: {error}") from error


def aliases_of(connection: sqlite3.Connection, card_id: int) -> tuple[str, ...]:
    """Return the aliases of a card in order; empty for an unknown card."""
    found = connection.execute("SELECT alias FROM card_alias WHERE card_id = ? ORDER BY alias", (card_id,))
    return tuple(alias for (alias,) in found)


def _facts_text(card: Card) -> str:
    """Return the rarely used fields of a card as JSON text; "" for a card without any."""
    facts = _CardFacts(card.zones, card.schedules, card.owner, card.first_person, card.duress, card.pin, card.unread)
    return "" if facts == _NO_FACTS else _ENCODER.encode(facts)


def _read_facts(text: str) -> _CardFacts:
    """Parse the result of `_facts_text`. Raises ValueError for any other text."""
    return _FACTS.validate_json(text) if text else _NO_FACTS


def _there(connection: sqlite3.Connection, numbers: Sequence[int]) -> int:
    """Return how many of these ids have a card. Counting the whole table before and after would take too long."""
    found = connection.execute(f"SELECT count(*) FROM card WHERE id IN ({_places(numbers)})", numbers)
    return int(found.fetchone()[0])


def _current_aliases(connection: sqlite3.Connection, numbers: Sequence[int]) -> dict[int, set[str]]:
    """Return the aliases by card id. The query gives one row, so that the thread does not wait for the interpreter
    lock at each alias.
    """
    (text,) = connection.execute(
        f"SELECT json_group_array(json_array(card_id, alias)) FROM card_alias WHERE card_id IN ({_places(numbers)})",
        numbers,
    ).fetchone()
    current: dict[int, set[str]] = {}
    for number, alias in json.loads(text):
        current.setdefault(number, set()).add(alias)
    return current


def _places(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


@lru_cache(16)
def _put_statement(cards: int) -> str:
    rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?)"] * cards)
    return (
        "INSERT INTO card (id, number, status, valid_from, valid_until, holder, facts, record, updated_at)"
        f" VALUES {rows} ON CONFLICT (id) DO UPDATE SET number = excluded.number, status = excluded.status,"
        " valid_from = excluded.valid_from, valid_until = excluded.valid_until, holder = excluded.holder,"
        " facts = excluded.facts, record = excluded.record, updated_at = excluded.updated_at"
    )


def _alias_statement(aliases: int) -> str:
    return f"INSERT OR IGNORE INTO card_alias VALUES {', '.join(['(?, ?)'] * aliases)}"


def batches(items: Iterable[_T], length: int) -> Iterator[list[_T]]:
    """Divide items into lists of at most this length."""
    rest = iter(items)
    while batch := list(islice(rest, length)):
        yield batch


class Notes:
    """The notes, each a text under a name. Its methods raise StoreError."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def remember(self, name: str, value: str) -> None:
        """Store a note in place of an earlier one of this name."""
        await self._database.write(partial(put_note, name=name, value=value))

    async def remembered(self, name: str) -> str | None:
        """Return the note of this name, or None."""

        def query(connection: sqlite3.Connection) -> str | None:
            row = connection.execute("SELECT value FROM sweep WHERE name = ?", (name,)).fetchone()
            return str(row[0]) if row else None

        return await self._database.read(query)


def put_note(connection: sqlite3.Connection, name: str, value: str) -> None:
    """Store a note in place of an earlier one. Within a transaction."""
    connection.execute(
        "INSERT INTO sweep VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
    )
