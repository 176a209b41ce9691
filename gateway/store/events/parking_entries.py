"""Reading of parking entries. Passages make them (`entry_rows`), and so do people (`EntryRecords`)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from drivers.plate_text import plain_plate
from gateway.domain.passages import LONGEST_STAY, EntryStatus, ParkingEntry
from gateway.store.engine.database import Database, is_id
from gateway.store.engine.text_search import search_in

_COLUMNS = (
    "id, central_id, status, entry_at, exit_at, entry_device_id, exit_device_id, entry_lane, exit_lane, area, card_id,"
    " credential, plate, manual, clock_trusted, record"
)
_BATCH = 500
# The status as shown: an open entry times out after the longest stay. The parameter is the earliest time still open.
_STATUS = "CASE WHEN status = 'open' AND entry_at < ? THEN 'timed_out' ELSE status END"

Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Filter for entries; empty fields do not filter.

    Attributes:
        date_from: the earliest time (wall micros, inclusive) of the entry, or of the exit if only that is known.
        date_until: the end of the time span (wall micros, exclusive).
        device_ids: gates of the entry or the exit.
        lane_ids: lanes of the entry or the exit.
        card_ids: ids of cards.
        plates: plates in any spelling.
        statuses: the statuses as shown, timed-out entries included.
        search: text within the plate or the credential.
    """

    date_from: int | None = None
    date_until: int | None = None
    device_ids: tuple[int, ...] = ()
    lane_ids: tuple[str, ...] = ()
    card_ids: tuple[int, ...] = ()
    plates: tuple[str, ...] = ()
    statuses: tuple[EntryStatus, ...] = ()
    search: str = ""


@dataclass(frozen=True, slots=True)
class EntryTotals:
    """Totals of entries: their number by status, and the average and longest stay of ended ones (micros)."""

    count: int
    by_status: tuple[tuple[EntryStatus, int], ...]
    stayed_on_average: int | None
    stayed_longest: int | None


@dataclass(frozen=True, slots=True)
class EntryPage:
    """A page of entries by descending id.

    Attributes:
        entries: the entries of the page.
        count: the number of all matches.
        next_cursor: the `before` of the next page, None at the end.
    """

    entries: tuple[ParkingEntry, ...]
    count: int
    next_cursor: int | None


class ParkingEntries:
    """The site's parking entries. Methods take `now` (wall micros) to tell which open entries have timed out."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def get(self, entry_id: int, *, now: int) -> ParkingEntry | None:
        """Return one entry by the site's id or by central's, or None."""
        if not is_id(entry_id):
            return None

        def query(connection: sqlite3.Connection) -> ParkingEntry | None:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM parking_entry WHERE id = ?1 OR central_id = ?1 ORDER BY id = ?1 DESC LIMIT 1",
                (entry_id,),
            ).fetchone()
            return _entry(row, now) if row else None

        return await self._database.read(query)

    async def page(
        self, wanted: EntryFilter, *, now: int, before: int = 0, offset: int = 0, limit: int = 25
    ) -> EntryPage:
        """Return a page of entries by descending id, from below `before` (0: the newest) on."""
        where, values = _where(wanted, now)
        limit = max(limit, 0)

        def query(connection: sqlite3.Connection) -> EntryPage:
            (count,) = connection.execute(f"SELECT count(*) FROM parking_entry WHERE {where}", values).fetchone()
            rows = _older(connection, where, values, before=before, offset=offset, limit=limit + 1)
            entries = tuple(_entry(row, now) for row in rows[:limit])
            following = entries[-1].id if len(rows) > limit > 0 else None
            return EntryPage(entries, int(count), following)

        return await self._database.read(query, lengthy=True)

    async def batches(self, wanted: EntryFilter, *, now: int) -> AsyncIterator[tuple[ParkingEntry, ...]]:
        """Yield all matches, newest first, in batches of up to 500."""
        where, values = _where(wanted, now)
        before = 0
        while True:

            def query(connection: sqlite3.Connection, below: int = before) -> tuple[ParkingEntry, ...]:
                rows = _older(connection, where, values, before=below, offset=0, limit=_BATCH)
                return tuple(_entry(row, now) for row in rows)

            batch = await self._database.read(query, lengthy=True)
            if not batch:
                return
            yield batch
            before = batch[-1].id

    async def totals(self, wanted: EntryFilter, *, now: int) -> EntryTotals:
        """Return the totals of matching entries."""
        where, values = _where(wanted, now)

        def query(connection: sqlite3.Connection) -> EntryTotals:
            rows = connection.execute(
                f"SELECT {_STATUS} AS shown_status, count(*) FROM parking_entry WHERE {where} GROUP BY shown_status",
                (now - LONGEST_STAY, *values),
            ).fetchall()
            average, longest = connection.execute(
                "SELECT avg(max(0, exit_at - entry_at)), max(max(0, exit_at - entry_at)) FROM parking_entry"
                f" WHERE {where} AND entry_at IS NOT NULL AND exit_at IS NOT NULL",
                values,
            ).fetchone()
            found = {EntryStatus(name): int(count) for name, count in rows}
            return EntryTotals(
                count=sum(found.values()),
                by_status=tuple((status, found.get(status, 0)) for status in EntryStatus),
                stayed_on_average=None if average is None else int(average),
                stayed_longest=longest,
            )

        return await self._database.read(query, lengthy=True)


def _older(
    connection: sqlite3.Connection, where: str, values: Values, *, before: int, offset: int, limit: int
) -> list[tuple[object, ...]]:
    bound = " AND id < ?" if before else ""
    return connection.execute(
        f"SELECT {_COLUMNS} FROM parking_entry WHERE {where}{bound} ORDER BY id DESC LIMIT ? OFFSET ?",
        (*values, *((before,) if before else ()), limit, offset),
    ).fetchall()


def _where(wanted: EntryFilter, now: int) -> tuple[str, Values]:
    """Return the SQL condition of a filter and the values of its parameters. The SQL has no text from outside."""
    parts: list[str] = ["1"]
    values: list[object] = []

    def among(columns: tuple[str, ...], allowed: tuple[object, ...]) -> None:
        if allowed:
            places = ", ".join("?" * len(allowed))
            parts.append("(" + " OR ".join(f"{column} IN ({places})" for column in columns) + ")")
            values.extend(allowed * len(columns))

    if wanted.date_from is not None:
        parts.append("at >= ?")
        values.append(wanted.date_from)
    if wanted.date_until is not None:
        parts.append("at < ?")
        values.append(wanted.date_until)
    among(("entry_device_id", "exit_device_id"), wanted.device_ids)
    among(("entry_lane", "exit_lane"), wanted.lane_ids)
    among(("card_id",), wanted.card_ids)
    among(("plate",), tuple(plain_plate(plate) for plate in wanted.plates))
    if wanted.statuses:
        parts.append(f"{_STATUS} IN ({', '.join('?' * len(wanted.statuses))})")
        values += [now - LONGEST_STAY, *(status.value for status in wanted.statuses)]
    if wanted.search:
        match = search_in(wanted.search, texts=("credential",), plates=("plate",))
        parts.append(match.sql)
        values += match.values
    return " AND ".join(parts), tuple(values)


def _entry(row: Any, now: int) -> ParkingEntry:
    status = EntryStatus(row[2])
    if status is EntryStatus.OPEN and row[3] is not None and row[3] < now - LONGEST_STAY:
        status = EntryStatus.TIMED_OUT
    return ParkingEntry(
        id=row[0],
        central_id=row[1],
        status=status,
        entry_at=row[3],
        exit_at=row[4],
        entry_device_id=row[5],
        exit_device_id=row[6],
        entry_lane=row[7],
        exit_lane=row[8],
        area=row[9],
        card_id=row[10],
        credential=row[11],
        plate=row[12],
        manual=bool(row[13]),
        clock_trusted=bool(row[14]),
        record=row[15],
    )
