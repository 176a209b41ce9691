"""Tables of collected records in PostgreSQL: partitioned by month, each batch with its place in one transaction.

`asyncpg` is an optional library; it is imported only where a database is opened.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from gateway.domain.errors import ConfigError, GatewayError
from gateway.fleet.collected import COLUMNS, RefusedRow, Row
from gateway.fleet.events_up import SENT
from gateway.fleet.messages import Extent

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


class DatabaseAway(GatewayError):
    """The database does not answer, or cannot take anything at present. It is tried again."""


class DatabaseRefused(GatewayError):
    """The database refuses. A person must change something there."""


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
