"""The hash chain of each camera's segments, linked in the commit that adds the row or once the hash is known."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from gateway.domain.footage import GENESIS, Edge, GapReason, continues, leaf_of, link_of, parse_segment_path
from gateway.store.engine.database import Database


class ChainLinks:
    """The chain links of segments in the store. The leaves of deleted segments are in `gateway.recording.chain`."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def unlinked(self, *, after: int, limit: int) -> tuple[tuple[int, str], ...]:
        """Return the ids above `after` and the paths of segments whose hash is not known yet, oldest first."""
        return await self._database.read(
            lambda connection: tuple(
                connection.execute(
                    "SELECT id, path FROM segment INDEXED BY segment_unlinked"
                    " WHERE number IS NULL AND id > ? AND garbage = 0 ORDER BY id LIMIT ?",
                    (after, limit),
                )
            )
        )

    async def link(self, hashes: Sequence[tuple[int, str, str]]) -> None:
        """Append segments to their camera's chain in the given order. `hashes`: id, path and SHA-256 (hex) of each."""

        def job(connection: sqlite3.Connection) -> None:
            for segment_id, path, sha256 in hashes:
                link_segment(connection, segment_id=segment_id, path=path, sha256=sha256)

        await self._database.write(job)

    async def head(self, camera_id: int) -> tuple[int, str]:
        """Return the number and link of the last segment in a camera's chain; 0 and GENESIS for an empty chain."""
        return await self._database.read(lambda connection: _head(connection, camera_id))

    async def longest(self, camera_id: int) -> int:
        """Return the duration of the longest segment that a camera ever had, in micros; 0 if it had none."""
        row = await self._database.read(
            lambda connection: connection.execute(
                "SELECT longest FROM footage_chain WHERE camera_id = ?", (camera_id,)
            ).fetchone()
        )
        return int(row[0]) if row else 0

    async def leaves(self, camera_id: int, first: int, last: int) -> dict[int, str]:
        """Return the leaves of a camera's segments from number `first` to `last` that still have rows, by number."""
        return await self._database.read(
            lambda connection: {
                number: leaf_of(path=path, sha256=sha256.hex())
                for number, path, sha256 in connection.execute(
                    "SELECT number, path, sha256 FROM segment WHERE camera_id = ? AND number BETWEEN ? AND ?",
                    (camera_id, first, last),
                )
            }
        )


def link_segment(connection: sqlite3.Connection, *, segment_id: int, path: str, sha256: str) -> None:
    """Append a segment to its camera's chain, within a running transaction. A linked segment keeps its place."""
    parsed = parse_segment_path(path)
    if parsed is None:
        return
    camera_id = parsed[0]
    number, link = _head(connection, camera_id)
    breaks = _breaks(connection, camera_id, number, segment_id)
    changed = connection.execute(
        "UPDATE segment SET sha256 = ?, number = ?, previous = ?, breaks = ?"
        " WHERE id = ? AND number IS NULL AND garbage = 0",
        (bytes.fromhex(sha256), number + 1, bytes.fromhex(link), breaks, segment_id),
    )
    if changed.rowcount:
        connection.execute(
            "INSERT INTO footage_chain (camera_id, number, link, breaks, longest) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (camera_id) DO UPDATE SET number = excluded.number, link = excluded.link,"
            " breaks = excluded.breaks, longest = max(longest, excluded.longest)",
            (camera_id, number + 1, bytes.fromhex(link_of(link, leaf_of(path=path, sha256=sha256))), breaks, parsed[2]),
        )


def _breaks(connection: sqlite3.Connection, camera_id: int, head: int, segment_id: int) -> int:
    """Return how often the camera's footage was interrupted up to this segment, which follows number `head`."""
    row = connection.execute("SELECT breaks FROM footage_chain WHERE camera_id = ?", (camera_id,)).fetchone()
    if row is None:
        return 0
    columns = "started_at, started_at + duration, gap, codec, width, height"
    before = connection.execute(
        f"SELECT {columns} FROM segment WHERE camera_id = ? AND number = ?", (camera_id, head)
    ).fetchone()
    after = connection.execute(f"SELECT {columns} FROM segment WHERE id = ?", (segment_id,)).fetchone()
    runs_on = before is not None and after is not None and continues(_edge(before), _edge(after))
    return int(row[0]) + (not runs_on)


def _edge(row: tuple[int, int, str, str, int, int]) -> Edge:
    return Edge(row[0], row[1], GapReason(row[2]), row[3:6])


def _head(connection: sqlite3.Connection, camera_id: int) -> tuple[int, str]:
    row = connection.execute("SELECT number, link FROM footage_chain WHERE camera_id = ?", (camera_id,)).fetchone()
    return (row[0], row[1].hex()) if row else (0, GENESIS)
