"""The collector: records of all gateways, from the stream into PostgreSQL, each exactly once.

The place in the stream is written in the transaction that writes the rows, so a crash at any moment loses and repeats
nothing. A stream that is made anew is read from its beginning; the key of each table, the record's own time and its
message id, drops what is already there.

Tables are partitioned by month. `asyncpg` is an optional library; it is imported only where a database is opened.

Whoever has a gateway's key can put anything on its subjects. What is no record becomes a refused row: it stops
nothing, and nothing is lost.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NoReturn, TypeAlias

from gateway.domain.errors import ConfigError, GatewayError
from gateway.fleet.connection import FleetServer, connected
from gateway.fleet.events_up import SENT
from gateway.fleet.line import FleetAway, FleetLine
from gateway.fleet.names import STREAM, STREAM_SUBJECTS, Extent, StreamMessage
from gateway.runtime.supervision import Backoff, heed_cancellation

MOST_AT_ONCE = 500

MISSING: Final = "the library for PostgreSQL is missing: install edge-gateway[collector]"
_CONNECT_SECONDS = 10.0
_COMMAND_SECONDS = 60.0
_LOCK: Final = 0x65_67_63_6F_6C_6C
_MONTHS_FROM, _MONTHS_TO = 2000, 2099
_PASSING_CLASSES: Final = frozenset({"08", "40", "53", "55", "57", "58"})
"""Classes of SQLSTATE that pass by themselves: lost lines, deadlocks, full disks, locks, shut-downs, its system."""

_TABLES = """
CREATE TABLE IF NOT EXISTS {table} (
    at timestamptz NOT NULL, message_id text NOT NULL, site text NOT NULL, gateway text NOT NULL, id bigint NOT NULL,
    name text NOT NULL, lane text NOT NULL, stored_at timestamptz NOT NULL, body jsonb NOT NULL,
    PRIMARY KEY (at, message_id)
) PARTITION BY RANGE (at);
CREATE TABLE IF NOT EXISTS {table}_other PARTITION OF {table} DEFAULT;
CREATE INDEX IF NOT EXISTS {table}_by_site ON {table} (site, at);
"""
_PLACES = """
CREATE TABLE IF NOT EXISTS collected_to (stream text PRIMARY KEY, created text NOT NULL, sequence bigint NOT NULL);
CREATE TABLE IF NOT EXISTS refused_message (
    subject text NOT NULL, sequence bigint NOT NULL, stored_at timestamptz NOT NULL, why text NOT NULL,
    data bytea NOT NULL
);
"""
_PARTITIONS = """
SELECT child.relname AS name FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
WHERE inhparent = ANY (SELECT to_regclass(name) FROM unnest($1::text[]) name)
"""
_INCOMING = "CREATE TEMP TABLE IF NOT EXISTS incoming_{table} (LIKE {table}) ON COMMIT DELETE ROWS"
_TAKE = "INSERT INTO {table} ({columns}) SELECT {columns} FROM incoming_{table} ON CONFLICT DO NOTHING"
_MOVE = (
    "INSERT INTO collected_to VALUES ($1, $2, $3)"
    " ON CONFLICT (stream) DO UPDATE SET created = excluded.created, sequence = excluded.sequence"
)

_LARGEST_INT: Final = 2**63 - 1
_SUBJECT: Final = re.compile(rf"events\.([a-z0-9_-]{{1,40}})\.([a-z0-9_-]{{1,40}})\.({'|'.join(SENT)})")
_BOX: Final = re.compile(r"[0-9]{1,20}")

Values: TypeAlias = tuple[datetime, str, str, str, int, str, str, datetime, str]
"""The values of `COLUMNS`."""
COLUMNS: Final = ("at", "message_id", "site", "gateway", "id", "name", "lane", "stored_at", "body")


class DatabaseAway(GatewayError):
    """The database does not answer, or cannot take anything at present. It is tried again."""


class DatabaseRefused(GatewayError):
    """The database refuses. A person must change something there."""


@dataclass(frozen=True, slots=True)
class Row:
    """A record of a table, which is called like the list that it comes from."""

    table: str
    values: Values

    @property
    def at(self) -> datetime:
        """The record's own time, in UTC."""
        return self.values[0]


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A message that is no record of a gateway, with the reason."""

    subject: str
    sequence: int
    stored_at: datetime
    why: str
    data: bytes


def row_of(message: StreamMessage) -> Row | RefusedRow:
    """Read a message of the stream."""
    stored_at = datetime.fromtimestamp(message.at / 1_000_000, UTC)
    try:
        return _row(message, stored_at)
    except (ValueError, OverflowError, RecursionError) as error:
        why = str(error) if type(error) is ValueError else "it is no JSON that can be kept"
        subject = message.subject.replace("\0", "")
        return RefusedRow(subject, message.sequence, stored_at, why, message.data)


def _row(message: StreamMessage, stored_at: datetime) -> Row:
    """Read a record. Raises ValueError, OverflowError, RecursionError."""
    named = _SUBJECT.fullmatch(message.subject)
    if named is None:
        raise ValueError("its subject is none of a gateway's lists")
    site, gateway, name = named.groups()
    record = json.loads(message.data, parse_constant=_refuse)
    if not isinstance(record, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004  # the fault of a message, not of the program
    number = record.get("id")
    if not isinstance(number, int) or not 0 < number <= _LARGEST_INT:
        raise ValueError("it has no id")
    box = message.message_id.removeprefix(f"{site}.{gateway}.{name}.").removesuffix(f".{number}")
    if not _BOX.fullmatch(box):
        raise ValueError("its message id is not that of its record")
    body = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    body.encode()  # halves of a surrogate pair alone have no UTF-8
    if "\\u0000" in body:
        raise ValueError("it holds the character NUL, which PostgreSQL does not keep")
    lane = record.get("lane_id", record.get("lane", ""))
    values = (
        _time(record),
        message.message_id,
        site,
        gateway,
        number,
        str(record.get("name", "")),
        str(lane or ""),
        stored_at,
        body,
    )
    return Row(name, values)


def _time(record: dict[str, Any]) -> datetime:
    try:
        found = datetime.fromisoformat(str(record.get("date_at")))
    except ValueError as error:
        raise ValueError("it has no date") from error
    if found.tzinfo is None:
        raise ValueError("its date has no zone")
    return found.astimezone(UTC)


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"it holds {word}, which is no JSON")


class Tables:
    """The tables over one connection, whose session alone writes to them."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._partitions: set[str] = set()

    async def prepare(self) -> None:
        """Make what lacks, and take the lock. Raises DatabaseAway while another collector has it, DatabaseRefused."""
        with _translated():
            if not await self._connection.fetchval("SELECT pg_try_advisory_lock($1)", _LOCK):
                raise DatabaseAway("another collector writes to the database; this one waits for its end")
            await self._connection.execute(_PLACES)
            for table in SENT:
                await self._connection.execute(_TABLES.format(table=table))
                await self._connection.execute(_INCOMING.format(table=table))
            self._partitions = {row["name"] for row in await self._connection.fetch(_PARTITIONS, list(SENT))}

    async def place(self, stream: str, extent: Extent) -> int:
        """Return the sequence number up to which a stream is collected; 0 for one that was made anew or set back."""
        with _translated():
            row = await self._connection.fetchrow(
                "SELECT created, sequence FROM collected_to WHERE stream = $1", stream
            )
        if row is None or row["created"] != extent.created or row["sequence"] > extent.last:
            return 0
        return int(row["sequence"])

    async def write(
        self, rows: Sequence[Row], refused: Sequence[RefusedRow], *, stream: str, extent: Extent, sequence: int
    ) -> None:
        """Write a batch and its place in one transaction. Raises DatabaseAway, DatabaseRefused."""
        with _translated():
            await self._make_partitions(rows)
            async with self._connection.transaction():
                for table in SENT:
                    await self._write(table, [row for row in rows if row.table == table])
                await self._connection.executemany(
                    "INSERT INTO refused_message VALUES ($1, $2, $3, $4, $5)",
                    [(one.subject, one.sequence, one.stored_at, one.why, one.data) for one in refused],
                )
                await self._connection.execute(_MOVE, stream, extent.created, sequence)

    async def _make_partitions(self, rows: Sequence[Row]) -> None:
        """Make the months that lack: before the rows are written, since it shuts readers out until it is committed."""
        for table, name, begin, end in sorted({_partition(row) for row in rows if _has_month(row)}):
            if name not in self._partitions:
                await self._connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF {table} FOR VALUES FROM ('{begin}') TO ('{end}')"
                )
                self._partitions.add(name)

    async def _write(self, table: str, rows: Sequence[Row]) -> None:
        if not rows:
            return
        await self._connection.copy_records_to_table(
            f"incoming_{table}", records=[row.values for row in rows], columns=COLUMNS
        )
        await self._connection.execute(_TAKE.format(table=table, columns=", ".join(COLUMNS)))


def _has_month(row: Row) -> bool:
    """Return whether the row has a partition of its own: dates of a wrong clock go to the one for all others."""
    return _MONTHS_FROM <= row.at.year <= _MONTHS_TO


def _partition(row: Row) -> tuple[str, str, str, str]:
    """Return a row's table, the name of its partition, and the partition's first moment and that of the next."""
    begin = datetime(row.at.year, row.at.month, 1, tzinfo=UTC)
    end = begin.replace(year=begin.year + begin.month // 12, month=begin.month % 12 + 1)
    return row.table, f"{row.table}_{begin:%Y_%m}", begin.isoformat(), end.isoformat()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Tables]:
    """Yield the tables of a database. Raises ConfigError, DatabaseAway, DatabaseRefused."""
    try:
        import asyncpg  # noqa: PLC0415  # an optional library
    except ImportError as error:
        raise ConfigError(MISSING) from error
    try:
        with _translated():
            connection = await asyncpg.connect(url, timeout=_CONNECT_SECONDS, command_timeout=_COMMAND_SECONDS)
    except ValueError as error:  # also what the library makes of a wrong address; that may hold a password
        raise ConfigError("--database must be postgresql://USER@HOST/NAME") from error
    try:
        tables = Tables(connection)
        await tables.prepare()
        yield tables
    finally:
        connection.terminate()


@contextmanager
def _translated() -> Iterator[None]:
    """Name errors of the library by the reaction that they need."""
    import asyncpg  # noqa: PLC0415  # loaded by `opened`

    try:
        yield
    except asyncpg.PostgresError as error:
        if (error.sqlstate or "")[:2] in _PASSING_CLASSES:
            raise DatabaseAway(f"the database: {error}") from error
        raise DatabaseRefused(f"the database refuses: {error}") from error
    except TimeoutError as error:
        raise DatabaseAway("the database does not answer in time") from error
    except asyncpg.InterfaceError as error:
        if isinstance(error, ValueError):
            raise
        raise DatabaseAway(f"the database: {error}") from error
    except OSError as error:
        raise DatabaseAway(f"the database is not reached: {error.strerror or 'the connection is lost'}") from error


@dataclass(kw_only=True, eq=False)
class Collector:
    """The collector of one fleet.

    Attributes:
        server: the fleet's server.
        database: the address of the database.
        told: takes sentences for the person who runs it.
        records, refused: the number of messages that were read and written, and of those that were no records.
    """

    server: FleetServer
    database: str = field(repr=False)
    told: Callable[[str], None]
    backoff: Backoff = field(default_factory=lambda: Backoff(first=1.0, longest=60.0))
    records: int = field(default=0, init=False)
    refused: int = field(default=0, init=False)
    _trouble: str = field(default="", init=False)
    _failures: int = field(default=0, init=False)

    async def run(self) -> None:
        """Collect until cancelled, over every loss of the server and of the database.

        Raises ConfigError, FleetRefused, DatabaseRefused.
        """
        while True:
            try:
                await self.collect(once=False)
            except (FleetAway, DatabaseAway) as error:
                self._failures += 1
                if str(error) != self._trouble:
                    self.told(f"{error}; trying again")
                self._trouble = str(error)
            heed_cancellation()  # the database's library raises errors in its place too
            await asyncio.sleep(self.backoff.wait(self._failures))

    async def collect(self, *, once: bool) -> None:
        """Collect over one connection to each; with `once`, up to what is there.

        Raises ConfigError, FleetAway, FleetRefused, DatabaseAway, DatabaseRefused.
        """
        async with opened(self.database) as tables, connected(self.server) as (line, _):
            await self._follow(line, tables, once=once)

    async def _follow(self, line: FleetLine, tables: Tables, *, once: bool) -> None:
        extent = await line.extent(STREAM, STREAM_SUBJECTS)
        place = await tables.place(STREAM, extent)
        if (lost := extent.first - place - 1) > 0 and place:
            self.told(f"{lost:,} messages had left the stream before they were collected")
        async for batch in line.follow(STREAM, STREAM_SUBJECTS, after=place, most=MOST_AT_ONCE):
            if self._trouble:
                self.told("collecting again")
            self._failures, self._trouble = 0, ""
            if batch:
                found = [row_of(one) for one in batch]
                rows = [one for one in found if isinstance(one, Row)]
                refused = [one for one in found if isinstance(one, RefusedRow)]
                await tables.write(rows, refused, stream=STREAM, extent=extent, sequence=batch[-1].sequence)
                self.records += len(rows)
                self.refused += len(refused)
            if once and (not batch or batch[-1].sequence >= extent.last):
                return
