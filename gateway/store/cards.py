"""Access cards, in a file of their own, with an index of every alias that a reading may come under.

The same index is kept in memory beside it, for decisions that must not wait; see `card_index`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import structlog

from gateway.domain.credentials import Card, CardStatus, near_alias, plate_alias
from gateway.domain.errors import StoreError
from gateway.domain.plates import NearPlate, skeleton
from gateway.domain.writes import FIRST_PROVISIONAL_ID
from gateway.store.card_facts import facts_of, facts_text, read_facts
from gateway.store.card_index import CardIndex
from gateway.store.card_search import in_pattern, search_cards, username_of
from gateway.store.database import Database, is_id

log = structlog.get_logger(__name__)

_COLUMNS = "card.id, number, status, valid_from, valid_until, holder, facts"
_MOST_MATCHES = 8
_LISTED = "listed_at"
_AT_A_STRETCH = 150  # cards that are taken into the index in a few ms
_RETRY_SECONDS = 5.0


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
    """The card list.

    `listed_at` is when it was last known to be all that central has (wall micros), None when that never was. Whoever
    looks at what waits for central and changes cards by it does both in one `turn`. `generation` moves on with every
    `apply` that is on disk.
    """

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._index = CardIndex()
        self._built = False
        self._touched: set[int] = set()
        self._stale = asyncio.Event()
        self._stale.set()
        self.listed_at: int | None = None
        self.turn = asyncio.Lock()
        self.generation = 0

    @property
    def index_size(self) -> int:
        """Bytes that the index in memory takes."""
        return self._index.size

    @property
    def is_indexed(self) -> bool:
        """Whether `at_once` and `near` have answers."""
        return self._built

    async def run(self) -> None:
        """Build the index, and build it anew whenever much has changed at once, until cancelled."""
        while True:
            await self._stale.wait()
            try:
                await self._build()
            except StoreError as error:
                log.warning("cards_not_indexed", error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)

    def at_once(self, aliases: Sequence[str]) -> tuple[Card, ...] | None:
        """The same as `matching` without waiting; None while the index is not there."""
        return self._index.find(aliases) if self._built else None

    def near(self, plate: str) -> tuple[NearPlate, ...]:
        """Listed plates that cameras may confuse with this one; none while the index is not there."""
        found = self._index.find((near_alias(skeleton(plate)),)) if self._built else ()
        mark = plate_alias("")
        return tuple(
            NearPlate(alias.removeprefix(mark), card)
            for card in found
            for alias in self._index.aliases_of(card.card_id)
            if alias.startswith(mark)
        )

    async def matching(self, aliases: Sequence[str]) -> tuple[Card, ...]:
        """Every card that answers to any of the aliases, each once; at most 8, enough to know of an ambiguity."""

        def query(connection: sqlite3.Connection) -> tuple[Card, ...]:
            rows = connection.execute(
                f"SELECT DISTINCT {_COLUMNS} FROM card_alias JOIN card ON card.id = card_alias.card_id"
                f" WHERE alias IN ({', '.join('?' * len(aliases))}) LIMIT ?",
                (*aliases, _MOST_MATCHES),
            ).fetchall()
            try:
                return tuple(_card(row) for row in rows)
            except ValueError as error:
                raise StoreError(f"a card that was found cannot be understood: {error}") from error

        return await self._database.read(query) if aliases else ()

    async def get(self, card_id: int) -> CardRecord | None:
        """One card, or None."""

        def query(connection: sqlite3.Connection) -> CardRecord | None:
            row = connection.execute(f"SELECT {_COLUMNS}, record FROM card WHERE id = ?", (card_id,)).fetchone()
            return CardRecord(_with_aliases(connection, _card(row[:7])), row[7]) if row else None

        return await self._database.read(query) if is_id(card_id) else None

    async def page(self, *, search: str = "", offset: int = 0, limit: int = 25) -> tuple[tuple[CardRecord, ...], int]:
        """Cards by descending id, without their aliases, and how many match in all; see `search_cards`."""

        def query(connection: sqlite3.Connection) -> tuple[tuple[CardRecord, ...], int]:
            match = search_cards(search)
            (count,) = connection.execute(f"SELECT count(*) FROM card WHERE {match.sql}", match.values).fetchone()
            rows = connection.execute(
                f"SELECT {_COLUMNS}, record FROM card WHERE {match.sql} ORDER BY id DESC LIMIT ? OFFSET ?",
                (*match.values, max(limit, 0), offset),
            ).fetchall()
            return tuple(CardRecord(_card(row[:7]), row[7]) for row in rows), int(count)

        return await self._database.read(query)

    async def ids_below(self, card_id: int, *, search: str = "", limit: int) -> tuple[int, ...]:
        """The next ids below one, descending: a walk that nothing new disturbs."""

        def query(connection: sqlite3.Connection) -> tuple[int, ...]:
            match = search_cards(search)
            rows = connection.execute(
                f"SELECT id FROM card WHERE {match.sql} AND id < ? ORDER BY id DESC LIMIT ?",
                (*match.values, card_id, limit),
            )
            return tuple(number for (number,) in rows)

        return await self._database.read(query)

    async def of_ids(self, card_ids: Sequence[int]) -> tuple[CardRecord, ...]:
        """Those of these cards that are there, by descending id, without their aliases."""
        places = ", ".join("?" * len(card_ids))

        def query(connection: sqlite3.Connection) -> tuple[CardRecord, ...]:
            rows = connection.execute(
                f"SELECT {_COLUMNS}, record FROM card WHERE id IN ({places}) ORDER BY id DESC", tuple(card_ids)
            )
            return tuple(CardRecord(_card(row[:7]), row[7]) for row in rows)

        return await self._database.read(query)

    async def of_username(self, username: str) -> CardRecord | None:
        """The card whose record has this username, whatever its case; of several the one made first."""

        def query(connection: sqlite3.Connection) -> CardRecord | None:
            rows = connection.execute(
                f"SELECT {_COLUMNS}, record FROM card WHERE record LIKE ? ESCAPE '\\' ORDER BY id",
                (f"%{in_pattern(json.dumps(username, ensure_ascii=False)[1:-1])}%",),
            )
            found = (row for row in rows if username_of(row[7]).casefold() == username.casefold())
            row = next(found, None)
            return CardRecord(_with_aliases(connection, _card(row[:7])), row[7]) if row else None

        return await self._database.read(query)

    async def count(self) -> int:
        """How many cards there are."""
        return await self._database.read(_count)

    async def records(self) -> Mapping[int, str]:
        """Central's record of every card by id: what a sweep compares with."""
        return await self._database.read(lambda connection: dict(connection.execute("SELECT id, record FROM card")))

    async def ids(self) -> frozenset[int]:
        """The id of every card."""
        return await self._database.read(
            lambda connection: frozenset(number for (number,) in connection.execute("SELECT id FROM card"))
        )

    async def made_here(self) -> tuple[int, ...]:
        """Ids of cards that were made at the site and that central has given none yet, as far as is known here."""
        return await self._database.read(
            lambda connection: tuple(
                number for (number,) in connection.execute("SELECT id FROM card WHERE id >= ?", (FIRST_PROVISIONAL_ID,))
            )
        )

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

        return await self._database.write(job, then=partial(self._changed, put, remove))

    async def listed(self, at: int) -> None:
        """Note that the list is all that central has, at this moment of a trusted clock (wall micros)."""
        await self.remember(_LISTED, str(at))
        self.listed_at = at

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

    async def _build(self) -> None:
        """A stretch at a time: what changes meanwhile is newer than what is being read, and stays."""
        listed = await self.remembered(_LISTED)
        if self.listed_at is None and listed is not None and listed.isdecimal():
            self.listed_at = int(listed)
        while self._stale.is_set():
            self._stale.clear()
            self._built = False
            self._index, self._touched = CardIndex(), set()
            behind = 0
            try:
                while not self._stale.is_set() and (stretch := await self._database.read(partial(_stretch, behind))):
                    behind, cards = stretch
                    self._index.put(card for card in cards if card.card_id not in self._touched)
                    await asyncio.sleep(0)
            except BaseException:  # cancelled or unreadable: half an index is none, so whoever runs next builds it anew
                self._stale.set()
                raise
        self._touched = set()
        self._built = True

    def _changed(self, put: Sequence[CardRecord], remove: Sequence[int]) -> None:
        """Follow a commit. More than can be followed in a few ms is read anew, and until then the file is asked."""
        self.generation += 1
        if len(put) + len(remove) > _AT_A_STRETCH:
            self._built = False
            self._stale.set()
            return
        self._index.remove(remove)
        self._index.put(item.card for item in put)
        if not self._built:
            self._touched.update(remove, (item.card.card_id for item in put))


def _stretch(behind: int, connection: sqlite3.Connection) -> tuple[int, list[Card]] | None:
    """The last id of the next stretch, and its cards with their aliases; None when there is none.

    A row that cannot be understood is no card.
    """
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM card WHERE id > ? ORDER BY id LIMIT ?", (behind, _AT_A_STRETCH)
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
            cards.append(replace(_card(row), aliases=tuple(aliases[row[0]])))
        except ValueError as error:
            log.warning("card_not_readable", card=row[0], error=str(error))
    return rows[-1][0], cards


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM card").fetchone()[0])


def _put(connection: sqlite3.Connection, items: Sequence[CardRecord], now: int) -> None:
    """Many rows per statement: a whole list in one commit must not keep the interpreter from the loop."""
    last = {item.card.card_id: item for item in items}
    connection.executemany(
        "INSERT INTO card VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET number = excluded.number,"
        " status = excluded.status, valid_from = excluded.valid_from, valid_until = excluded.valid_until,"
        " holder = excluded.holder, record = excluded.record, updated_at = excluded.updated_at, facts = excluded.facts",
        (_values(item, now) for item in last.values()),
    )
    connection.executemany("DELETE FROM card_alias WHERE card_id = ?", ((number,) for number in last))
    connection.executemany(
        "INSERT OR IGNORE INTO card_alias VALUES (?, ?)",
        ((alias, number) for number, item in last.items() for alias in item.card.aliases),
    )


def _values(item: CardRecord, now: int) -> tuple[int, str, str, int | None, int | None, str, str, int, str]:
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
        facts_text(facts_of(card)),
    )


def _card(row: tuple[int, str, str, int | None, int | None, str, str]) -> Card:
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


def _with_aliases(connection: sqlite3.Connection, card: Card) -> Card:
    aliases: Iterator[tuple[str]] = connection.execute(
        "SELECT alias FROM card_alias WHERE card_id = ? ORDER BY alias", (card.card_id,)
    )
    return replace(card, aliases=tuple(alias for (alias,) in aliases))
