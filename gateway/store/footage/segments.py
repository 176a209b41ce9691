"""Index of segments on disk. A row exists only for a durable file, and is deleted after its file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.domain.footage import Missing, SegmentFinished
from gateway.domain.passages import CameraEvent
from gateway.store.engine.database import Database
from gateway.store.footage.chain_links import link_segment
from gateway.store.footage.event_footage import HELD, LONGEST_SEGMENT, footage_of, missing_of
from gateway.store.footage.segment_rows import COLUMNS, Segment, segment_of

_EVER = 2**62


@dataclass(frozen=True, slots=True)
class Choice:
    """Rules for choosing footage to delete: oldest first, and none of a camera event that central does not have yet.

    Footage of the present boot is also judged by monotonic micros, which no change of the clock affects.

    Attributes:
        at_least: the bytes to free.
        transactions_from: footage of ordinary camera events since then stays (wall micros); 0: of all of them.
        incidents_from: footage of incidents since then stays (wall micros); 0: of all of them.
        begin: only segments that began then or later (wall micros).
        end: only segments that began before this by a trusted clock (wall micros); None: any segments.
        boot_id: the present boot, "" if unknown.
        uptime_from: with an `end`, segments of this boot since then stay (monotonic micros).
        transactions_uptime: footage of ordinary camera events of this boot since then stays (monotonic micros).
        incidents_uptime: footage of incidents of this boot since then stays (monotonic micros).
        limit: the greatest number of segments.
    """

    at_least: int
    transactions_from: int = 0
    incidents_from: int = 0
    begin: int = -(2**62)
    end: int | None = None
    boot_id: str = ""
    uptime_from: int = 0
    transactions_uptime: int = 0
    incidents_uptime: int = 0
    limit: int = 500

    def values(self) -> dict[str, int | str]:
        """Return the values of the query's parameters."""
        return {
            "transactions_from": self.transactions_from,
            "incidents_from": self.incidents_from,
            "begin": self.begin,
            "end": _EVER if self.end is None else self.end,
            "any_clock": self.end is None,
            "boot_id": self.boot_id,
            "uptime_from": self.uptime_from,
            "transactions_uptime": self.transactions_uptime,
            "incidents_uptime": self.incidents_uptime,
            "limit": self.limit,
        }


class Segments:
    """Segments by camera and time."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, finished: Sequence[SegmentFinished]) -> int:
        """Add rows for durable files, except for known ones. Return how many were new."""

        def job(connection: sqlite3.Connection) -> int:
            return sum(_add(connection, item) for item in finished)

        return await self._database.write(job)

    async def between(self, camera_id: int, start: int, end: int) -> tuple[Segment, ...]:
        """Return the segments that overlap `[start, end)` (wall micros), by start."""
        return await self._database.rows(
            f"SELECT {COLUMNS} FROM segment WHERE camera_id = ? AND started_at > ? AND started_at < ?"
            " AND started_at + duration > ? AND garbage = 0 ORDER BY started_at, id",
            (camera_id, start - LONGEST_SEGMENT, end, start),
            of=segment_of,
        )

    async def of_event(self, event: CameraEvent) -> tuple[Segment, ...]:
        """Return the footage of a camera event, by start, with the times of the event's own clock.

        If the clock was set during the event or later, times are those that it would have shown without that.
        """
        return await self._database.read(lambda connection: footage_of(connection, event))

    async def latest(self, camera_id: int, *, before: int = _EVER) -> Segment | None:
        """Return the newest segment of a camera that began before these wall micros, or None."""

        def query(connection: sqlite3.Connection) -> Segment | None:
            row = connection.execute(
                f"SELECT {COLUMNS} FROM segment WHERE camera_id = ? AND garbage = 0 AND started_at < ?"
                " ORDER BY started_at DESC LIMIT 1",
                (camera_id, before),
            ).fetchone()
            return segment_of(row) if row else None

        return await self._database.read(query)

    async def missing(self, camera_events: Iterable[CameraEvent]) -> dict[int, tuple[Missing, ...]]:
        """Return the spans that the clip of each camera event does not show, in order, by the camera event's id."""
        wanted = tuple(camera_events)

        def query(connection: sqlite3.Connection) -> dict[int, tuple[Missing, ...]]:
            return {item.id: missing_of(connection, item) for item in wanted}

        return await self._database.read(query) if wanted else {}

    async def newest(self, camera_id: int, *, most: int) -> tuple[Segment, ...]:
        """Return a camera's newest linked segments, at most `most`, by ascending number."""
        rows = await self._database.read(
            lambda connection: connection.execute(
                f"SELECT {COLUMNS} FROM segment WHERE camera_id = ? AND number IS NOT NULL AND garbage = 0"
                " ORDER BY number DESC LIMIT ?",
                (camera_id, most),
            ).fetchall()
        )
        return tuple(segment_of(row) for row in reversed(rows))

    async def numbered(self, camera_id: int, number: int) -> Segment | None:
        """Return the segment with this number in its camera's chain, or None if there is none (any more)."""
        row = await self._database.read(
            lambda connection: connection.execute(
                f"SELECT {COLUMNS} FROM segment WHERE camera_id = ? AND number = ? AND garbage = 0",
                (camera_id, number),
            ).fetchone()
        )
        return segment_of(row) if row else None

    async def known(self, folder: str) -> frozenset[str]:
        """Return the paths in a folder (`7/2026112107`) that have a row, garbage included."""
        return await self._database.read(
            lambda connection: frozenset(
                path
                for (path,) in connection.execute(
                    "SELECT path FROM segment WHERE path > ? AND path < ?", (f"{folder}/", f"{folder}0")
                )
            )
        )

    async def paths(self) -> frozenset[str]:
        """Return every path that has a row, garbage included, for the comparison with the disk at the start."""
        return await self._database.read(
            lambda connection: frozenset(path for (path,) in connection.execute("SELECT path FROM segment"))
        )

    async def after(self, segment_id: int, *, limit: int = 2000) -> tuple[Segment, ...]:
        """Return the next segments with an id above `segment_id`, by id, without garbage, for a walk in steps."""
        return await self._database.rows(
            f"SELECT {COLUMNS} FROM segment WHERE id > ? AND garbage = 0 ORDER BY id LIMIT ?",
            (segment_id, limit),
            of=segment_of,
        )

    async def bytes_kept(self) -> int:
        """Return the total size of all segments that are not garbage, in bytes."""
        return await self._database.read(
            lambda connection: int(
                connection.execute(
                    "SELECT coalesce(sum(size), 0) FROM segment INDEXED BY segment_by_age WHERE garbage = 0"
                ).fetchone()[0]
            )
        )

    async def bytes_since(self, start: int) -> tuple[int, int]:
        """Return the total size of the segments since `start` (wall micros), and the start of the first of them.

        Without any segments, it returns 0 and `start`.
        """
        return await self._database.read(
            lambda connection: tuple(
                connection.execute(
                    "SELECT coalesce(sum(size), 0), coalesce(min(started_at), ?1)"
                    " FROM segment INDEXED BY segment_by_age WHERE garbage = 0 AND started_at >= ?1",
                    (start,),
                ).fetchone()
            )
        )

    async def free(self, choice: Choice) -> tuple[Segment, ...]:
        """Return the oldest segments that may be deleted, until they have enough bytes."""

        def choose(connection: sqlite3.Connection) -> tuple[Segment, ...]:
            chosen: list[Segment] = []
            covered = 0
            for row in connection.execute(
                f"SELECT {COLUMNS} FROM segment INDEXED BY segment_by_age WHERE garbage = 0 AND started_at >= :begin"
                " AND started_at < :end AND (:any_clock OR clock_trusted = 1)"
                " AND (:any_clock OR :boot_id = '' OR boot_id <> :boot_id OR monotonic < :uptime_from)"
                f" AND NOT {HELD}"
                " ORDER BY started_at LIMIT :limit",
                choice.values(),
            ):
                if covered >= choice.at_least:
                    break
                chosen.append(segment_of(row))
                covered += chosen[-1].size
            return tuple(chosen)

        return await self._database.read(choose)

    async def discard(self, choice: Choice) -> tuple[Segment, ...]:
        """Mark the oldest segments that may be deleted as garbage, until they have enough bytes, and return them.

        The caller deletes the files and then calls `forget`.
        """
        # The long search runs on a reading connection, so that it holds up no commit.
        chosen = await self.free(choice)

        def mark(connection: sqlite3.Connection) -> tuple[Segment, ...]:
            """Mark those chosen segments that were not pinned meanwhile, and return them as they are now."""
            marked = (
                connection.execute(
                    f"UPDATE segment SET garbage = 1 WHERE id = :id AND garbage = 0 AND NOT {HELD} RETURNING {COLUMNS}",
                    choice.values() | {"id": item.id},
                ).fetchone()
                for item in chosen
            )
            return tuple(segment_of(row) for row in marked if row)

        return await self._database.write(mark) if chosen else ()

    async def garbage(self) -> tuple[Segment, ...]:
        """Return the segments whose deletion has begun."""
        return await self._database.rows(f"SELECT {COLUMNS} FROM segment WHERE garbage = 1", of=segment_of)

    async def forget(self, segments: Sequence[Segment]) -> None:
        """Remove the rows of segments whose files are deleted."""
        await self._database.write(
            lambda connection: connection.executemany(
                "DELETE FROM segment WHERE id = ?", [(item.id,) for item in segments]
            )
        )


def _add(connection: sqlite3.Connection, item: SegmentFinished) -> bool:
    """Add a row unless its path is known, and link it if its hash is known; return whether it was new."""
    cursor = connection.execute(
        "INSERT OR IGNORE INTO segment (camera_id, path, started_at, duration, size, clock_trusted, gap, codec,"
        " width, height, frames, boot_id, monotonic, entry, whole_after)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            item.camera_id,
            item.path,
            item.started_at,
            item.duration,
            item.size,
            item.clock_trusted,
            item.gap.value,
            item.codec,
            item.width,
            item.height,
            item.frames,
            item.boot_id,
            item.monotonic,
            item.entry.value,
            item.whole_after,
        ),
    )
    if cursor.rowcount <= 0:
        return False
    if item.sha256:
        link_segment(connection, segment_id=int(cursor.lastrowid or 0), path=item.path, sha256=item.sha256)
    return True
