"""Access cards, in a database file of their own, with an index of every alias under which readings arrive.

The same index is also kept in memory, for decisions that must not wait; see `gateway.store.cards.index`.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import structlog

from gateway.domain.credentials import Card, near_alias, plate_alias
from gateway.domain.errors import StoreError
from gateway.domain.plates import NearPlate, skeleton
from gateway.domain.printed import readings_of
from gateway.domain.writes import FIRST_PROVISIONAL_ID
from gateway.store.cards.index import CardIndex
from gateway.store.cards.rows import (
    COLUMNS,
    Notes,
    ReadyCard,
    StoredCard,
    aliases_of,
    cards_of_aliases,
    put_note,
    put_rows,
    read_card,
    ready,
)
from gateway.store.engine.database import Database, is_id
from gateway.store.engine.text_search import Condition, any_of, folded, json_may_hold, search_in

log = structlog.get_logger(__name__)

_LISTED = "listed_at"
_LOST = "lost"
_FOLLOWED_IN_A_BATCH = 50  # under 2 ms
_MOST_FOLLOWED = 900  # in a second, and of those that wait
_SECOND = 1.0
_COPIES_APART = 10  # times as long as a copy takes
_RETRY_SECONDS = 5.0
_USERNAMES = ("username", "user.username", "guest.username")


@dataclass(frozen=True, slots=True)
class CardChanges:
    """The numbers of cards that an `apply` added, changed and removed."""

    added: int
    changed: int
    removed: int


class Cards:
    """The card list.

    Attributes:
        listed_at: when the list was last known to be complete, as central has it (wall micros); None for never.
        turn: a lock for callers that look at records waiting for central and change cards accordingly; they hold it
            over both.
        lost: how cards were lost, also before earlier openings, until the list is back: complete as central has it, or
            without a central until a card is put. "" if none were.
        newly_lost: how cards were lost before this opening but after the one before it, "" if none were.
        generation: a number that rises with every `apply` that is on disk.
        behind: whether the disk refused a change of cards that follows from a write already in the other database.
    """

    def __init__(self, *, database: Database, notes: Notes, has_central: bool) -> None:
        self._database = database
        self._notes = notes
        self._has_central = has_central
        self._index: CardIndex | None = None
        self._followed: deque[int | ReadyCard] = deque()  # changes not yet in the index: ids removed, cards put
        self._second_began = float("-inf")
        self._in_this_second = 0
        self._many_come = False
        self._copied_in = 0.0
        self._stale = asyncio.Event()
        self._stale.set()
        self.listed_at: int | None = None
        self.turn = asyncio.Lock()
        self.behind = False
        self.lost = ""
        self.newly_lost = ""
        self.generation = 0

    @property
    def index_size(self) -> int:
        """Bytes that the index in memory takes."""
        return self._index.size if self._index is not None else 0

    @property
    def is_indexed(self) -> bool:
        """True if the index in memory is complete, so that `at_once` and `near_at_once` can answer."""
        return self._complete_index is not None

    @property
    def _complete_index(self) -> CardIndex | None:
        return None if self._followed else self._index

    async def open(self, *, expected: bool) -> bool:
        """Recall when the list was last complete and how cards were lost; return whether the file is marked as known.

        A file that cannot be read or written does not prevent the start. `expected`: whether there was one before.
        """
        self.lost = self.newly_lost = self._database.salvaged or ""
        try:
            listed, noted = await self._notes.remembered(_LISTED), await self._notes.remembered(_LOST)
        except StoreError as error:
            log.warning("cards_not_readable", error=str(error))
            return False
        if listed is not None and listed.isdecimal():
            self.listed_at = int(listed)
        if noted is None and expected and not self.newly_lost:
            self.newly_lost = "cards.db was missing or empty"
        self.lost = self.newly_lost or noted or ""
        if noted != self.lost:
            try:
                await self._notes.remember(_LOST, self.lost)
            except StoreError as error:
                log.warning("cards_not_marked", error=str(error))
                return False
        return True

    def close(self) -> None:
        """Drop the index; it is built anew after the next opening."""
        self._read_anew()

    async def run(self) -> None:
        """Build the index in memory, and rebuild it whenever much has changed at once, until cancelled."""
        while True:
            await self._stale.wait()
            try:
                await self._build()
            except StoreError as error:
                log.warning("cards_not_indexed", error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)

    def at_once(self, aliases: Sequence[str]) -> tuple[Card, ...] | None:
        """Return the cards that answer to any of the aliases, without waiting; None while the index is incomplete."""
        index = self._complete_index
        return None if index is None else index.find(aliases)

    def near_at_once(self, plate: str) -> tuple[NearPlate, ...] | None:
        """Return listed plates that cameras may confuse with this one; None while the index is incomplete."""
        index = self._complete_index
        if index is None:
            return None
        return _near(index.find((_near_alias(plate),)), index.aliases_of)

    async def near(self, plate: str) -> tuple[NearPlate, ...]:
        """Return listed plates that cameras may confuse with this one, from the file. Raises StoreError."""

        def query(connection: sqlite3.Connection) -> tuple[NearPlate, ...]:
            return _near(cards_of_aliases(connection, (_near_alias(plate),)), partial(aliases_of, connection))

        return await self._database.read(query)

    async def matching(self, aliases: Sequence[str]) -> tuple[Card, ...]:
        """Return the cards that answer to any of the aliases, each once and without its own aliases.

        At most 8, which is enough to see an ambiguity. Raises StoreError for a row that cannot be understood.
        """
        return await self._database.read(partial(cards_of_aliases, aliases=aliases)) if aliases else ()

    async def get(self, card_id: int) -> StoredCard | None:
        """Return one card with its aliases, or None."""

        def query(connection: sqlite3.Connection) -> StoredCard | None:
            row = connection.execute(f"SELECT {COLUMNS}, record FROM card WHERE id = ?", (card_id,)).fetchone()
            return StoredCard(_whole(connection, row), row[7]) if row else None

        return await self._database.read(query) if is_id(card_id) else None

    async def page(self, *, search: str = "", offset: int = 0, limit: int = 25) -> tuple[tuple[StoredCard, ...], int]:
        """Return one page of matching cards by descending id, without their aliases, and how many match in all."""

        def query(connection: sqlite3.Connection) -> tuple[tuple[StoredCard, ...], int]:
            match = search_cards(search)
            (count,) = connection.execute(f"SELECT count(*) FROM card WHERE {match.sql}", match.values).fetchone()
            rows = connection.execute(
                f"SELECT {COLUMNS}, record FROM card WHERE {match.sql} ORDER BY id DESC LIMIT ? OFFSET ?",
                (*match.values, max(limit, 0), offset),
            ).fetchall()
            return tuple(StoredCard(read_card(row[:7]), row[7]) for row in rows), int(count)

        return await self._database.read(query)

    async def ids_below(self, card_id: int, *, search: str = "", limit: int) -> tuple[int, ...]:
        """Return the next matching ids below `card_id`, descending; a walk in this order misses and repeats none."""

        def query(connection: sqlite3.Connection) -> tuple[int, ...]:
            match = search_cards(search)
            rows = connection.execute(
                f"SELECT id FROM card WHERE {match.sql} AND id < ? ORDER BY id DESC LIMIT ?",
                (*match.values, card_id, limit),
            )
            return tuple(number for (number,) in rows)

        return await self._database.read(query)

    async def of_ids(self, card_ids: Sequence[int]) -> tuple[StoredCard, ...]:
        """Return those of these cards that exist, by descending id, without their aliases."""
        places = ", ".join("?" * len(card_ids))

        def query(connection: sqlite3.Connection) -> tuple[StoredCard, ...]:
            rows = connection.execute(
                f"SELECT {COLUMNS}, record FROM card WHERE id IN ({places}) ORDER BY id DESC", tuple(card_ids)
            )
            return tuple(StoredCard(read_card(row[:7]), row[7]) for row in rows)

        return await self._database.read(query)

    async def of_username(self, username: str) -> StoredCard | None:
        """Return the card whose record has this username, in any case; of several the one with the lowest id."""

        def query(connection: sqlite3.Connection) -> StoredCard | None:
            match = having_username(username)
            rows = connection.execute(f"SELECT {COLUMNS}, record FROM card WHERE {match.sql} ORDER BY id", match.values)
            found = (row for row in rows if folded(username_of(row[7])) == folded(username))
            row = next(found, None)
            return StoredCard(_whole(connection, row), row[7]) if row else None

        return await self._database.read(query)

    async def ids_of_number(self, number: str) -> tuple[int, ...]:
        """Return the ids of cards with this printed number: at most two, which is enough to see an ambiguity."""

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
        """Return central's record of those of these cards that exist, by id."""
        places = ", ".join("?" * len(card_ids))

        def query(connection: sqlite3.Connection) -> Mapping[int, str]:
            return dict(connection.execute(f"SELECT id, record FROM card WHERE id IN ({places})", tuple(card_ids)))

        return await self._database.read(query)

    async def central_ids(self) -> tuple[int, ...]:
        """Return the ids of all cards that have an id of central, ascending."""
        return await self._database.read(
            lambda connection: tuple(
                number
                for (number,) in connection.execute(
                    "SELECT id FROM card WHERE id < ? ORDER BY id", (FIRST_PROVISIONAL_ID,)
                )
            )
        )

    async def made_here(self) -> tuple[int, ...]:
        """Return the provisional ids: those of cards made at the site, to which central has given no id yet."""
        return await self._database.read(
            lambda connection: tuple(
                number for (number,) in connection.execute("SELECT id FROM card WHERE id >= ?", (FIRST_PROVISIONAL_ID,))
            )
        )

    async def apply(
        self, *, put: Iterable[StoredCard | ReadyCard] = (), remove: Iterable[int] = (), now: int
    ) -> CardChanges:
        """Remove cards and add or replace others, in this order and in one commit.

        For many cards, make them `ready` a few at a time before, so that neither the loop nor the writing thread
        computes for long. `now`: wall micros UTC.
        """
        put, remove = tuple(put), tuple(remove)
        cards: list[ReadyCard] = []
        is_back = bool(self.lost and put) and not self._has_central

        def job(connection: sqlite3.Connection) -> CardChanges:
            gone = connection.executemany("DELETE FROM card WHERE id = ?", [(card_id,) for card_id in remove])
            cards[:] = (item if isinstance(item, ReadyCard) else ready(item) for item in put)
            added, changed = put_rows(connection, cards, now)
            if is_back:
                put_note(connection, _LOST, "")
            return CardChanges(added=added, changed=changed, removed=max(gone.rowcount, 0))

        changes = await self._database.write(job, then=partial(self._changed, cards, remove))
        if is_back:
            self.lost = ""
        return changes

    async def complete(self) -> None:
        """Record that the list is complete as central has it, so that it does not count as lost any more."""
        if self.lost:
            await self._notes.remember(_LOST, "")
            self.lost = ""

    async def listed(self, at: int) -> None:
        """Record that the list was complete, as central has it, at this moment of a trusted clock (wall micros)."""
        await self._notes.remember(_LISTED, str(at))
        self.listed_at = at

    async def _build(self) -> None:
        """Copy the index from the file, and again while too much changes meanwhile.

        While many cards come, wait for their end: each page would spoil the copy.
        """
        while self._stale.is_set():
            self._stale.clear()
            self._index = None
            try:
                if self._many_come:
                    await asyncio.sleep(max(_SECOND, _COPIES_APART * self._copied_in))
                    if self._stale.is_set():
                        continue
                began = asyncio.get_running_loop().time()
                copied = await self._database.in_memory(CardIndex.copied)
                self._copied_in = asyncio.get_running_loop().time() - began
            except BaseException:  # cancelled or unreadable: the next run starts over
                self._stale.set()
                raise
            if not self._stale.is_set():
                self._index, self._many_come = copied, False
        # Changes that came meanwhile may be in the copy already: following them once more, in order, changes nothing.
        self._follow()

    def _changed(self, put: Sequence[ReadyCard], remove: Sequence[int]) -> None:
        """Queue a commit's changes for the index. If they are too many, rebuild it; the file answers until then."""
        self.generation += 1
        now = asyncio.get_running_loop().time()
        if now - self._second_began >= _SECOND:
            self._second_began, self._in_this_second = now, 0
        changes = len(put) + len(remove)
        self._in_this_second += changes
        if self._in_this_second > _MOST_FOLLOWED or len(self._followed) + changes > _MOST_FOLLOWED:
            self._many_come = True
            self._read_anew()
            return
        was_idle = not self._followed
        self._followed.extend(remove)
        self._followed.extend(put)
        if was_idle:
            self._follow()

    def _follow(self) -> None:
        """Apply one batch of queued changes to the index, of each card the last one, and schedule the next batch."""
        if self._index is None:
            return
        try:
            last: dict[int, ReadyCard | None] = {}
            for _ in range(min(len(self._followed), _FOLLOWED_IN_A_BATCH)):
                change = self._followed.popleft()
                last.update({change: None} if isinstance(change, int) else {change.values[0]: change})
            self._index.remove([number for number, card in last.items() if card is None])
            self._index.put([card for card in last.values() if card is not None])
        except Exception:  # whatever the cause: an index with half a change gives wrong answers
            log.exception("cards_not_followed")
            self._read_anew()
        if self._followed:
            asyncio.get_running_loop().call_soon(self._follow)

    def _read_anew(self) -> None:
        """Start a rebuild of the index from the file, which already has every queued change."""
        self._followed.clear()
        self._index = None
        self._stale.set()


def _whole(connection: sqlite3.Connection, row: Sequence[Any]) -> Card:
    """Return the card of a row, with its aliases."""
    return replace(read_card((*row[:7],)), aliases=aliases_of(connection, row[0]))


def _near_alias(plate: str) -> str:
    return near_alias(skeleton(plate))


def _near(cards: Iterable[Card], aliases: Callable[[int], tuple[str, ...]]) -> tuple[NearPlate, ...]:
    """Return the plates among the aliases of these cards."""
    mark = plate_alias("")
    return tuple(
        NearPlate(alias.removeprefix(mark), card)
        for card in cards
        for alias in aliases(card.card_id)
        if alias.startswith(mark)
    )


def _count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM card").fetchone()[0])


def search_cards(search: str) -> Condition:
    """Build the condition for cards whose number, holder, username or plate contains this text; "" is in all.

    A card is found by its whole number in any spelling too.
    """
    if not search or "\0" in search:
        return search_in(search)
    plate = search_in(search, plates=("alias",))
    spelled = json.dumps([alias for one in readings_of(search) for alias in (*one.aliases(), *one.other_spellings())])
    return any_of(
        search_in(search, texts=("number", "holder")),
        having_username(search),
        Condition(
            f"id IN (SELECT card_id FROM card_alias WHERE alias >= 'plate:' AND alias < 'plate;' AND {plate.sql})",
            plate.values,
        ),
        Condition("id IN (SELECT card_id FROM card_alias WHERE alias IN (SELECT value FROM json_each(?)))", (spelled,)),
    )


def having_username(search: str) -> Condition:
    """Build the condition for cards whose username contains this text."""
    usernames = tuple(f"json_extract(record, '$.{path}')" for path in _USERNAMES)
    username, record = search_in(search, texts=usernames), json_may_hold("record", search)
    # The quick test first, because parsing JSON is slow. json_valid, because one bad record would fail the whole query.
    return Condition(
        f"CASE WHEN {record.sql} AND json_valid(record) THEN {username.sql} ELSE 0 END",
        (*record.values, *username.values),
    )


def username_of(record: str) -> str:
    """Return the username in a record's JSON text, "" for none."""
    value: object = json.loads(record)
    for path in _USERNAMES:
        found = value
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, str) and found:
            return found
    return ""
