"""Access cards, in a file of their own, with an index of every alias that a reading may come under."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gateway.domain.credentials import Card, CardStatus
from gateway.store.database import Database, is_id

_COLUMNS = "card.id, number, status, valid_from, valid_until, holder"
_MOST_MATCHES = 8


@dataclass(frozen=True, slots=True)
class CardRecord:
    """A card with central's record as it came (`record`, JSON text), unknown fields included."""

    card: Card
    record: str


@dataclass(frozen=True, slots=True)
class CardChanges:
    """What an `apply` changed."""

    added: int
    changed: int
    removed: int


class Cards:
    """The card list."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def matching(self, aliases: Sequence[str]) -> tuple[Card, ...]:
        """Every card that answers to any of the aliases, each once; at most 8, enough to know of an ambiguity."""

        def query(connection: sqlite3.Connection) -> tuple[Card, ...]:
            rows = connection.execute(
                f"SELECT DISTINCT {_COLUMNS} FROM card_alias JOIN card ON card.id = card_alias.card_id"
                f" WHERE alias IN ({', '.join('?' * len(aliases))}) LIMIT ?",
                (*aliases, _MOST_MATCHES),
            ).fetchall()
            return tuple(_card(row) for row in rows)

        return await self._database.read(query) if aliases else ()

    async def get(self, card_id: int) -> CardRecord | None:
        """One card, or None."""

        def query(connection: sqlite3.Connection) -> CardRecord | None:
            row = connection.execute(f"SELECT {_COLUMNS}, record FROM card WHERE id = ?", (card_id,)).fetchone()
            return CardRecord(_with_aliases(connection, _card(row[:6])), row[6]) if row else None

        return await self._database.read(query) if is_id(card_id) else None

    async def count(self) -> int:
        """How many cards there are."""
        return await self._database.read(_count)

    async def records(self) -> Mapping[int, str]:
        """Central's record of every card by id: what a sweep compares with."""
        return await self._database.read(lambda connection: dict(connection.execute("SELECT id, record FROM card")))

    async def apply(self, *, put: Iterable[CardRecord] = (), remove: Iterable[int] = (), now: int) -> CardChanges:
        """Add or replace cards and remove others, all in one commit; removals take effect first in it."""
        put, remove = tuple(put), tuple(remove)

        def job(connection: sqlite3.Connection) -> CardChanges:
            start = _count(connection)
            connection.executemany("DELETE FROM card WHERE id = ?", [(card_id,) for card_id in remove])
            left = _count(connection)
            _put(connection, put, now)
            removed, added = start - left, _count(connection) - left
            return CardChanges(added=added, changed=len(put) - added, removed=removed)

        return await self._database.write(job)

    async def remember(self, name: str, value: str) -> None:
        """Keep a note about sweeps."""
        await self._database.write(
            lambda connection: connection.execute(
                "INSERT INTO sweep VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (name, value)
            )
        )

    async def remembered(self, name: str) -> str | None:
        """A note about sweeps, or None."""

        def query(connection: sqlite3.Connection) -> str | None:
            row = connection.execute("SELECT value FROM sweep WHERE name = ?", (name,)).fetchone()
            return str(row[0]) if row else None

        return await self._database.read(query)


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM card").fetchone()[0])


def _put(connection: sqlite3.Connection, items: Sequence[CardRecord], now: int) -> None:
    """Many rows per statement: a whole list in one commit must not keep the interpreter from the loop."""
    last = {item.card.card_id: item for item in items}
    connection.executemany(
        "INSERT INTO card VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET number = excluded.number,"
        " status = excluded.status, valid_from = excluded.valid_from, valid_until = excluded.valid_until,"
        " holder = excluded.holder, record = excluded.record, updated_at = excluded.updated_at",
        (_values(item, now) for item in last.values()),
    )
    connection.executemany("DELETE FROM card_alias WHERE card_id = ?", ((number,) for number in last))
    connection.executemany(
        "INSERT OR IGNORE INTO card_alias VALUES (?, ?)",
        ((alias, number) for number, item in last.items() for alias in item.card.aliases),
    )


def _values(item: CardRecord, now: int) -> tuple[int, str, str, int | None, int | None, str, str, int]:
    card = item.card
    return (
        card.card_id,
        card.number,
        card.status.value,
        card.valid_from,
        card.valid_until,
        card.holder,
        item.record,
        now,
    )


def _card(row: tuple[int, str, str, int | None, int | None, str]) -> Card:
    return Card(
        card_id=row[0],
        number=row[1],
        status=CardStatus(row[2]),
        valid_from=row[3],
        valid_until=row[4],
        holder=row[5],
    )


def _with_aliases(connection: sqlite3.Connection, card: Card) -> Card:
    aliases: Iterator[tuple[str]] = connection.execute(
        "SELECT alias FROM card_alias WHERE card_id = ? ORDER BY alias", (card.card_id,)
    )
    return Card(
        card_id=card.card_id,
        number=card.number,
        status=card.status,
        valid_from=card.valid_from,
        valid_until=card.valid_until,
        holder=card.holder,
        aliases=tuple(alias for (alias,) in aliases),
    )
