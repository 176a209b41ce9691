"""Access cards, in a file of their own, with an index of every alias that a reading may come under.

The same index is kept in memory beside it, for decisions that must not wait; see `gateway.store.cards.index`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import structlog

from gateway.domain.credentials import Card, near_alias, plate_alias
from gateway.domain.errors import StoreError
from gateway.domain.plates import NearPlate, skeleton
from gateway.domain.text_search import folded
from gateway.domain.writes import FIRST_PROVISIONAL_ID
from gateway.store.cards.index import CardIndex, IndexRow
from gateway.store.cards.rows import (
    COLUMNS,
    CardRecord,
    ReadyCard,
    batch_of_cards,
    put_rows,
    read_card,
    ready,
    with_aliases,
)
from gateway.store.engine.database import Database, is_id
from gateway.store.engine.text_search import Condition, any_of, json_may_hold, search_in

log = structlog.get_logger(__name__)

_MOST_MATCHES = 8
_USERNAMES = ("username", "user.username", "guest.username")
_LISTED = "listed_at"
_IN_A_BATCH = 150  # cards that are taken into the index in a few ms
_FOLLOWED_IN_A_BATCH = 50  # under 2 ms, also where the index's tables grow: all of them do at about the same time
_MOST_FOLLOWED = 900
_RETRY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class CardChanges:
    """Changes that an `apply` made."""

    added: int
    changed: int
    removed: int


class Cards:
    """The card list.

    `listed_at` is when it was last known to be all that central has (wall micros), None when that never was. Whoever
    looks at what waits for central and changes cards by it does both in one `turn`. `generation` moves on with every
    `apply` that is on disk. `behind`: the disk has refused what follows from a write that is on disk elsewhere.
    """

    def __init__(self, *, database: Database) -> None:
        self._database = database
        self._index = CardIndex()
        self._built = False
        self._touched: set[int] = set()
        self._followed: deque[int | IndexRow] = deque()  # ids that went, and cards that came
        self._stale = asyncio.Event()
        self._stale.set()
        self.listed_at: int | None = None
        self.turn = asyncio.Lock()
        self.behind = False
        self.generation = 0

    @property
    def index_size(self) -> int:
        """Bytes that the index in memory takes."""
        return self._index.size

    @property
    def is_indexed(self) -> bool:
        """True if `at_once` and `near` have answers."""
        return self._built and not self._followed

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
        """Return the same as `matching` without waiting; None while the index is not there."""
        return self._index.find(aliases) if self.is_indexed else None

    def near(self, plate: str) -> tuple[NearPlate, ...]:
        """Return listed plates that cameras may confuse with this one; empty while there is no index."""
        found = self._index.find((near_alias(skeleton(plate)),)) if self.is_indexed else ()
        mark = plate_alias("")
        return tuple(
            NearPlate(alias.removeprefix(mark), card)
            for card in found
            for alias in self._index.aliases_of(card.card_id)
            if alias.startswith(mark)
        )

    async def matching(self, aliases: Sequence[str]) -> tuple[Card, ...]:
        """Return every card that answers to any of the aliases, each once; at most 8, enough to know of an
        ambiguity.
        """

        def query(connection: sqlite3.Connection) -> tuple[Card, ...]:
            rows = connection.execute(
                f"SELECT DISTINCT {COLUMNS} FROM card_alias JOIN card ON card.id = card_alias.card_id"
                f" WHERE alias IN ({', '.join('?' * len(aliases))}) LIMIT ?",
                (*aliases, _MOST_MATCHES),
            ).fetchall()
            try:
                return tuple(read_card(row) for row in rows)
            except ValueError as error:
                raise StoreError(f"a card that was found cannot be understood: {error}") from error

        return await self._database.read(query) if aliases else ()

    async def get(self, card_id: int) -> CardRecord | None:
        """Return one card, or None."""

        def query(connection: sqlite3.Connection) -> CardRecord | None:
            row = connection.execute(f"SELECT {COLUMNS}, record FROM card WHERE id = ?", (card_id,)).fetchone()
            return CardRecord(with_aliases(connection, read_card(row[:7])), row[7]) if row else None

        return await self._database.read(query) if is_id(card_id) else None

    async def page(self, *, search: str = "", offset: int = 0, limit: int = 25) -> tuple[tuple[CardRecord, ...], int]:
        """Return cards by descending id, without their aliases, and how many match in all."""

        def query(connection: sqlite3.Connection) -> tuple[tuple[CardRecord, ...], int]:
            match = _search_cards(search)
            (count,) = connection.execute(f"SELECT count(*) FROM card WHERE {match.sql}", match.values).fetchone()
            rows = connection.execute(
                f"SELECT {COLUMNS}, record FROM card WHERE {match.sql} ORDER BY id DESC LIMIT ? OFFSET ?",
                (*match.values, max(limit, 0), offset),
            ).fetchall()
            return tuple(CardRecord(read_card(row[:7]), row[7]) for row in rows), int(count)

        return await self._database.read(query)

    async def ids_below(self, card_id: int, *, search: str = "", limit: int) -> tuple[int, ...]:
        """Return the next ids below one, descending: a walk that nothing new disturbs."""

        def query(connection: sqlite3.Connection) -> tuple[int, ...]:
            match = _search_cards(search)
            rows = connection.execute(
                f"SELECT id FROM card WHERE {match.sql} AND id < ? ORDER BY id DESC LIMIT ?",
                (*match.values, card_id, limit),
            )
            return tuple(number for (number,) in rows)

        return await self._database.read(query)

    async def of_ids(self, card_ids: Sequence[int]) -> tuple[CardRecord, ...]:
        """Return those of these cards that are there, by descending id, without their aliases."""
        places = ", ".join("?" * len(card_ids))

        def query(connection: sqlite3.Connection) -> tuple[CardRecord, ...]:
            rows = connection.execute(
                f"SELECT {COLUMNS}, record FROM card WHERE id IN ({places}) ORDER BY id DESC", tuple(card_ids)
            )
            return tuple(CardRecord(read_card(row[:7]), row[7]) for row in rows)

        return await self._database.read(query)

    async def of_username(self, username: str) -> CardRecord | None:
        """Return the card whose record has this username, whatever its case; of several the one made first."""

        def query(connection: sqlite3.Connection) -> CardRecord | None:
            match = _having_username(username)
            rows = connection.execute(f"SELECT {COLUMNS}, record FROM card WHERE {match.sql} ORDER BY id", match.values)
            found = (row for row in rows if folded(_username_of(row[7])) == folded(username))
            row = next(found, None)
            return CardRecord(with_aliases(connection, read_card(row[:7])), row[7]) if row else None

        return await self._database.read(query)

    async def ids_of_number(self, number: str) -> tuple[int, ...]:
        """Return the ids of the cards that bear this printed number."""

        def query(connection: sqlite3.Connection) -> tuple[int, ...]:
            rows = connection.execute("SELECT id FROM card WHERE number = ? LIMIT 2", (number,))
            return tuple(int(card_id) for (card_id,) in rows)

        return await self._database.read(query)

    async def count(self) -> int:
        """Return how many cards there are."""
        return await self._database.read(_count)

    async def records(self) -> Mapping[int, str]:
        """Return central's record of every card by id."""
        return await self._database.read(lambda connection: dict(connection.execute("SELECT id, record FROM card")))

    async def records_of(self, card_ids: Sequence[int]) -> Mapping[int, str]:
        """Return the same of these cards, as far as they are there."""
        places = ", ".join("?" * len(card_ids))

        def query(connection: sqlite3.Connection) -> Mapping[int, str]:
            return dict(connection.execute(f"SELECT id, record FROM card WHERE id IN ({places})", tuple(card_ids)))

        return await self._database.read(query)

    async def central_ids(self) -> tuple[int, ...]:
        """Return the ids of the cards that are central's, ascending."""
        return await self._database.read(
            lambda connection: tuple(
                number
                for (number,) in connection.execute(
                    "SELECT id FROM card WHERE id < ? ORDER BY id", (FIRST_PROVISIONAL_ID,)
                )
            )
        )

    async def made_here(self) -> tuple[int, ...]:
        """Return the ids of cards that were made at the site and that central has given no id yet."""
        return await self._database.read(
            lambda connection: tuple(
                number for (number,) in connection.execute("SELECT id FROM card WHERE id >= ?", (FIRST_PROVISIONAL_ID,))
            )
        )

    async def apply(
        self, *, put: Iterable[CardRecord | ReadyCard] = (), remove: Iterable[int] = (), now: int
    ) -> CardChanges:
        """Add or replace cards and remove others, all in one commit; removals take effect first in it.

        Many cards come as `ready` ones, made a few at a time, so that neither loop nor writer computes for long.
        """
        put, remove = tuple(put), tuple(remove)
        in_index: list[IndexRow] = []

        def job(connection: sqlite3.Connection) -> CardChanges:
            gone = connection.executemany("DELETE FROM card WHERE id = ?", [(card_id,) for card_id in remove])
            cards = [item if isinstance(item, ReadyCard) else ready(item) for item in put]
            in_index.extend(card.in_index for card in cards)
            added, changed = put_rows(connection, cards, now)
            return CardChanges(added=added, changed=changed, removed=max(gone.rowcount, 0))

        return await self._database.write(job, then=partial(self._changed, in_index, remove))

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
        """Return a note about sweeps, or None."""

        def query(connection: sqlite3.Connection) -> str | None:
            row = connection.execute("SELECT value FROM sweep WHERE name = ?", (name,)).fetchone()
            return str(row[0]) if row else None

        return await self._database.read(query)

    async def _build(self) -> None:
        """Build the index in parts. Changes made meanwhile are newer than the part being read, and stay."""
        listed = await self.remembered(_LISTED)
        if self.listed_at is None and listed is not None and listed.isdecimal():
            self.listed_at = int(listed)
        while self._stale.is_set():
            self._stale.clear()
            self._built = False
            self._index, self._touched = CardIndex(), set()
            behind = 0
            try:
                while not self._stale.is_set():
                    batch = await self._database.read(partial(batch_of_cards, behind, _IN_A_BATCH))
                    if batch is None:
                        break
                    behind, cards = batch
                    self._index.put(card for card in cards if card.card_id not in self._touched)
                    await asyncio.sleep(0)
            except BaseException:  # cancelled or unreadable: half an index is none, so whoever runs next builds it anew
                self._stale.set()
                raise
        self._touched = set()
        self._built = True

    def _changed(self, put: Sequence[IndexRow], remove: Sequence[int]) -> None:
        """Follow a commit. More than can be followed is read anew, and until then the file is asked."""
        self.generation += 1
        if len(self._followed) + len(put) + len(remove) > _MOST_FOLLOWED:
            self._read_anew()
            return
        was_idle = not self._followed
        self._followed.extend(remove)
        self._followed.extend(put)
        if was_idle:
            self._follow()

    def _follow(self) -> None:
        """Take a batch of what changed into the index, in its order, and the rest soon."""
        try:
            for _ in range(min(len(self._followed), _FOLLOWED_IN_A_BATCH)):
                self._take_in(self._followed.popleft())
        except Exception:  # whatever it was: an index with a part of a change says what is not so
            log.exception("cards_not_followed")
            self._read_anew()
        if self._followed:
            asyncio.get_running_loop().call_soon(self._follow)

    def _take_in(self, change: int | IndexRow) -> None:
        if isinstance(change, int):
            self._index.remove((change,))
        else:
            self._index.put_rows((change,))
        if not self._built:
            self._touched.add(change if isinstance(change, int) else change.card_id)

    def _read_anew(self) -> None:
        """Build the index from the file, which has all that waits to be followed; until then the file is asked."""
        self._followed.clear()
        self._built = False
        self._stale.set()


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM card").fetchone()[0])


def _search_cards(search: str) -> Condition:
    """Build the condition for cards whose number, holder, username or plate has this text; all cards for none."""
    if not search or "\0" in search:
        return search_in(search)
    plate = search_in(search, plates=("alias",))
    return any_of(
        search_in(search, texts=("number", "holder")),
        _having_username(search),
        Condition(
            f"id IN (SELECT card_id FROM card_alias WHERE alias >= 'plate:' AND alias < 'plate;' AND {plate.sql})",
            plate.values,
        ),
    )


def _having_username(search: str) -> Condition:
    """Build the condition for cards whose username has this text."""
    usernames = tuple(f"json_extract(record, '$.{path}')" for path in _USERNAMES)
    username, record = search_in(search, texts=usernames), json_may_hold("record", search)
    # Few records are taken apart; one that SQLite takes for no JSON keeps no other from being found.
    return Condition(
        f"CASE WHEN {record.sql} AND json_valid(record) THEN {username.sql} ELSE 0 END",
        (*record.values, *username.values),
    )


def _username_of(record: str) -> str:
    """Return the username in a record's JSON text, "" for none."""
    value: object = json.loads(record)
    for path in _USERNAMES:
        found = value
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, str) and found:
            return found
    return ""
