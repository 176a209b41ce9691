"""Every card in memory, so that a decision waits neither for a thread nor for the disk.

The index is an SQLite database in memory with the tables of the file, without central's records. SQLite fills it by
itself in a thread, without the interpreter lock. A look-up on the loop takes some tens of microseconds.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import structlog

from gateway.domain.credentials import Card
from gateway.store.cards.rows import (
    CardRow,
    ReadyCard,
    aliases_of,
    batches,
    delete_aliases,
    insert_aliases,
    read_card,
    rows_of_aliases,
)

log = structlog.get_logger(__name__)

_IN_A_STATEMENT = 50

_TABLES = """
PRAGMA main.journal_mode = OFF;
CREATE TABLE card (
    id          INTEGER PRIMARY KEY,
    number      TEXT NOT NULL,
    status      TEXT NOT NULL,
    valid_from  INTEGER,
    valid_until INTEGER,
    holder      TEXT NOT NULL,
    facts       TEXT NOT NULL
) STRICT;
CREATE TABLE card_alias (
    alias   TEXT NOT NULL,
    card_id INTEGER NOT NULL,
    PRIMARY KEY (alias, card_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX card_alias_by_card ON card_alias (card_id);
"""
# The tables of aliases are alike, so SQLite copies the second one without reading its rows.
_FILL = """
INSERT INTO card SELECT id, number, status, valid_from, valid_until, holder, facts FROM file.card;
INSERT INTO card_alias SELECT * FROM file.card_alias;
"""


class CardIndex:
    """Cards by their aliases. Not thread-safe, but another thread may fill it before its use."""

    def __init__(self, memory: sqlite3.Connection) -> None:
        """Create the tables in a new database in memory."""
        self._memory = memory
        memory.executescript(_TABLES)

    def __del__(self) -> None:
        """Close the database: a cancelled caller leaves an index that nobody owns."""
        self._memory.close()

    @classmethod
    def copied(cls, memory: sqlite3.Connection) -> CardIndex:
        """Fill a new index from the database that is attached as `file`. For a thread."""
        index = cls(memory)
        memory.executescript(f"BEGIN; {_FILL} COMMIT;")
        return index

    @property
    def size(self) -> int:
        """Bytes that the pages of the database take."""
        return int(self._number("PRAGMA page_count") * self._number("PRAGMA page_size"))

    def __len__(self) -> int:
        """Return the number of cards."""
        return self._number("SELECT count(*) FROM card")

    def find(self, aliases: Sequence[str]) -> tuple[Card, ...]:
        """Return the cards that answer to any of the aliases, each once and without its own aliases.

        At most 8, which is enough to see an ambiguity. Cards that cannot be understood are left out and logged.
        """
        return tuple(_readable(rows_of_aliases(self._memory, aliases)))

    def aliases_of(self, card_id: int) -> tuple[str, ...]:
        """Return the aliases of a card; empty for an unknown card."""
        return aliases_of(self._memory, card_id)

    def put(self, cards: Iterable[ReadyCard]) -> None:
        """Add or replace cards, each of them once."""
        for batch in batches(cards, _IN_A_STATEMENT):
            delete_aliases(self._memory, [card.values[0] for card in batch])
            self._memory.execute(_put_statement(len(batch)), [value for card in batch for value in card.values[:-1]])
            insert_aliases(self._memory, batch)

    def remove(self, card_ids: Iterable[int]) -> None:
        """Remove cards; unknown ids are ignored."""
        gone = tuple(card_ids)
        delete_aliases(self._memory, gone)
        self._memory.executemany("DELETE FROM card WHERE id = ?", [(card_id,) for card_id in gone])

    def _number(self, query: str) -> int:
        return int(self._memory.execute(query).fetchone()[0])


@lru_cache(64)
def _put_statement(cards: int) -> str:
    return f"INSERT OR REPLACE INTO card VALUES {', '.join(['(?, ?, ?, ?, ?, ?, ?)'] * cards)}"


def _readable(rows: Iterable[CardRow]) -> Iterator[Card]:
    for row in rows:
        try:
            yield read_card(row)
        except ValueError as error:
            log.warning("card_not_readable", card=row[0], error=str(error))
