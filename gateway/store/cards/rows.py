"""Rows of cards in their tables, as steps within a running transaction.

One statement writes many rows. A statement per row would make the writing thread and the loop compete for the
interpreter lock after every row.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple, TypeVar

import structlog

from gateway.domain.credentials import Card, CardStatus
from gateway.store.cards.facts import facts_of, facts_text, read_facts
from gateway.store.cards.index import IndexRow, keyed, packed

log = structlog.get_logger(__name__)

COLUMNS: Final = "card.id, number, status, valid_from, valid_until, holder, facts"
_IN_A_STATEMENT = 500
_ALIASES_IN_A_STATEMENT = 4 * _IN_A_STATEMENT

_T = TypeVar("_T")
CardRow = tuple[int, str, str, int | None, int | None, str, str]
_Values = tuple[int, str, str, int | None, int | None, str, str, str]


@dataclass(frozen=True, slots=True)
class CardRecord:
    """A card with central's record of it (`record`, JSON text) as it arrived, unknown fields included."""

    card: Card
    record: str


class ReadyCard(NamedTuple):
    """A card in the form in which it is written to its tables and to the index in memory."""

    values: _Values
    aliases: tuple[str, ...]
    in_index: IndexRow


class PackedCard(NamedTuple):
    """A ready card without the hashes, which differ per process. Its plain values can come from another process."""

    values: _Values
    aliases: tuple[str, ...]
    packed: bytes


def ready(item: CardRecord) -> ReadyCard:
    """Compute all values of a card's rows, before they are written. Pure."""
    return ready_from(pack(item))


def ready_from(card: PackedCard) -> ReadyCard:
    """Complete a packed card for this process. Pure."""
    return ReadyCard(card.values, card.aliases, keyed(card.values[0], card.packed, card.aliases))


def pack(item: CardRecord) -> PackedCard:
    """Compute those values of a card's rows that are the same in every process. Pure."""
    card = item.card
    facts = facts_of(card)
    values = (
        card.card_id,
        card.number,
        card.status.value,
        card.valid_from,
        card.valid_until,
        card.holder,
        facts_text(facts),
        item.record,
    )
    return PackedCard(values, card.aliases, packed(card, facts))


def put_rows(connection: sqlite3.Connection, cards: Iterable[ReadyCard], now: int) -> tuple[int, int]:
    """Add or replace cards; return how many were added and how many replaced. Of two with one id the later one counts.

    Rows are written by ascending id, whatever their order in the list: descending ids would leave every page of the
    tables half empty.
    """
    last = {card.values[0]: card for card in cards}
    there = 0
    for batch in _batches((last[number] for number in sorted(last)), _IN_A_STATEMENT):
        numbers = [card.values[0] for card in batch]
        there += _there(connection, numbers)
        connection.execute(_put_statement(len(batch)), [value for card in batch for value in (*card.values, now)])
        current = _current_aliases(connection, numbers)
        differing = [card for card in batch if current.get(card.values[0], set()) != set(card.aliases)]
        # New cards too may have old aliases: those of a lost card that were salvaged from a damaged file.
        gone = [card.values[0] for card in differing if card.values[0] in current]
        connection.execute(f"DELETE FROM card_alias WHERE card_id IN ({_places(gone)})", gone)
        # Ordered by id: in the order of aliases, the index by card would be written all over and take more pages.
        pairs = [(alias, card.values[0]) for card in differing for alias in card.aliases]
        for aliases in _batches(pairs, _ALIASES_IN_A_STATEMENT):
            connection.execute(_alias_statement(len(aliases)), [value for pair in aliases for value in pair])
    return len(last) - there, there


def read_card(row: CardRow) -> Card:
    """Parse a row of `COLUMNS` into a card without aliases. Raises ValueError for a row that cannot be understood."""
    facts = read_facts(row[6])
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


def with_aliases(connection: sqlite3.Connection, card: Card) -> Card:
    """Return the card with its aliases from the database."""
    aliases: Iterator[tuple[str]] = connection.execute(
        "SELECT alias FROM card_alias WHERE card_id = ? ORDER BY alias", (card.card_id,)
    )
    return replace(card, aliases=tuple(alias for (alias,) in aliases))


def batch_of_cards(behind: int, limit: int, connection: sqlite3.Connection) -> tuple[int, list[Card]] | None:
    """Return the next cards after id `behind`, with their aliases, and the last id that was read; None at the end.

    Rows that cannot be understood are left out and logged.
    """
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM card WHERE id > ? ORDER BY id LIMIT ?", (behind, limit)
    ).fetchall()
    if not rows:
        return None
    aliases: dict[int, list[str]] = {row[0]: [] for row in rows}
    for alias, card_id in connection.execute(
        "SELECT alias, card_id FROM card_alias WHERE card_id BETWEEN ? AND ?", (rows[0][0], rows[-1][0])
    ):
        aliases.setdefault(card_id, []).append(alias)
    cards: list[Card] = []
    for row in rows:
        try:
            cards.append(replace(read_card(row), aliases=tuple(aliases[row[0]])))
        except ValueError as error:
            log.warning("card_not_readable", card=row[0], error=str(error))
    return rows[-1][0], cards


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


def _places(numbers: Sequence[int]) -> str:
    return ", ".join("?" * len(numbers))


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


def _batches(items: Iterable[_T], length: int) -> Iterator[list[_T]]:
    rest = iter(items)
    while batch := list(islice(rest, length)):
        yield batch
