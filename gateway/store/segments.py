"""The index of segments on disk. A row exists only for a durable file, and goes only after its file has gone."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.domain.footage import Edge, GapReason, Missing, SegmentFinished, missing_between
from gateway.domain.footage_chain import Place
from gateway.domain.passages import CameraEvent
from gateway.store.database import Database
from gateway.store.footage_links import link_segment

LONGEST_SEGMENT = 120_000_000
"""Micros; longer ones are not written, so that a look-up by time is bounded."""

LONGEST_PIN = 3_600_000_000
"""Micros; a camera event pins at most so much, so that a look-up of a segment's pins is bounded."""

_HELD = (
    "EXISTS (SELECT 1 FROM camera_event AS pin WHERE pin.camera_id = segment.camera_id"
    " AND pin.pinned_from > segment.started_at - ? AND pin.pinned_from < segment.started_at + segment.duration"
    " AND pin.pinned_until > segment.started_at"
    " AND (pin.date_at >= CASE pin.incident WHEN 0 THEN ? ELSE ? END OR EXISTS (SELECT 1 FROM outbox"
    " WHERE outbox.kind = 'camera_event' AND outbox.record_id = pin.id)))"
)
_EVER = 2**62
_CLOCK_WAS_SET = 1_000_000
"""Micros; wall and monotonic time drift apart by less than that within an event, unless somebody sets the clock."""
_MOST_OF_EVENT = 5_000
_COLUMNS = (
    "id, camera_id, path, started_at, duration, size, clock_trusted, gap, codec, width, height, frames, sha256, number,"
    " previous, boot_id, monotonic, breaks"
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment on disk.

    Attributes:
        started_at: wall micros, as far as is known now; as recorded it is in the path.
        duration: media micros.
        size: bytes.
        frames: how many pictures, 0 when not known.
        sha256: of the file as it was written, "" when not known yet.
        place: where it stands in its camera's chain, None before it is linked.
        boot_id: of the machine's run that `monotonic` counts in, "" when not known.
        monotonic: micros of the first frame.
        breaks: how often its camera's footage broke off before it, as far as it is linked.
    """

    id: int
    camera_id: int
    path: str
    started_at: int
    duration: int
    size: int
    clock_trusted: bool
    gap: GapReason
    codec: str
    width: int
    height: int
    frames: int = 0
    sha256: str = ""
    place: Place | None = None
    boot_id: str = ""
    monotonic: int = 0
    breaks: int = 0

    @property
    def edge(self) -> Edge:
        """What decides whether another can be played right after it, or it after another."""
        return Edge(self.started_at, self.ended_at, self.gap, (self.codec, self.width, self.height))

    @property
    def ended_at(self) -> int:
        """Wall micros of its end."""
        return self.started_at + self.duration


@dataclass(frozen=True, slots=True)
class Choice:
    """Which footage goes: oldest first, never any that a camera event pins which central has not taken yet.

    Attributes:
        at_least: bytes to be covered.
        transactions_from: footage of events since then (wall micros) stays; 0: of all of them.
        incidents_from: the same for events of which something went wrong.
        begin: only segments that began then or later.
        end: only segments that began before, by a trusted clock; None: all.
        limit: how many at most.
    """

    at_least: int
    transactions_from: int = 0
    incidents_from: int = 0
    begin: int = -(2**62)
    end: int | None = None
    limit: int = 500

    def held_by(self) -> tuple[int, int, int]:
        """The values that tell footage of events."""
        return LONGEST_PIN, self.transactions_from, self.incidents_from


class Segments:
    """Segments by camera and time."""

    def __init__(self, *, database: Database) -> None:
        self._database = database

    async def add(self, finished: Sequence[SegmentFinished]) -> int:
        """Add rows for durable files; those already known are passed over. Returns how many were new."""

        def job(connection: sqlite3.Connection) -> int:
            return sum(_add(connection, item) for item in finished)

        return await self._database.write(job)

    async def between(self, camera_id: int, start: int, end: int) -> tuple[Segment, ...]:
        """Segments that overlap `[start, end)` (wall micros), by start."""
        return await self._database.read(
            lambda connection: tuple(
                _segment(row)
                for row in connection.execute(
                    f"SELECT {_COLUMNS} FROM segment WHERE camera_id = ? AND started_at > ? AND started_at < ?"
                    " AND started_at + duration > ? AND garbage = 0 ORDER BY started_at, id",
                    (camera_id, start - LONGEST_SEGMENT, end, start),
                )
            )
        )

    async def of_event(self, event: CameraEvent) -> tuple[Segment, ...]:
        """The footage of a camera event, by start, by its own clock: where the clock was set during the event or later,
        times are those that the clock would have told without that.
        """
        return await self._database.read(lambda connection: _of_event(connection, event))

    async def latest(self, camera_id: int, *, before: int = _EVER) -> Segment | None:
        """The newest segment of a camera that began before these wall micros, or None."""

        def query(connection: sqlite3.Connection) -> Segment | None:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM segment WHERE camera_id = ? AND garbage = 0 AND started_at < ?"
                " ORDER BY started_at DESC LIMIT 1",
                (camera_id, before),
            ).fetchone()
            return _segment(row) if row else None

        return await self._database.read(query)

    async def missing(self, camera_events: Iterable[CameraEvent]) -> dict[int, tuple[Missing, ...]]:
        """What of each camera event's time no footage is of, by the event's id, oldest first."""
        wanted = tuple(camera_events)

        def query(connection: sqlite3.Connection) -> dict[int, tuple[Missing, ...]]:
            return {item.id: _missing(connection, item) for item in wanted}

        return await self._database.read(query) if wanted else {}

    async def newest(self, camera_id: int, *, most: int) -> tuple[Segment, ...]:
        """A camera's newest linked segments, by number."""
        rows = await self._database.read(
            lambda connection: connection.execute(
                f"SELECT {_COLUMNS} FROM segment WHERE camera_id = ? AND number IS NOT NULL AND garbage = 0"
                " ORDER BY number DESC LIMIT ?",
                (camera_id, most),
            ).fetchall()
        )
        return tuple(_segment(row) for row in reversed(rows))

    async def numbered(self, camera_id: int, number: int) -> Segment | None:
        """The segment with this place in its camera's chain, None when it is not there (any more)."""
        row = await self._database.read(
            lambda connection: connection.execute(
                f"SELECT {_COLUMNS} FROM segment WHERE camera_id = ? AND number = ? AND garbage = 0",
                (camera_id, number),
            ).fetchone()
        )
        return _segment(row) if row else None

    async def known(self, folder: str) -> frozenset[str]:
        """The paths in a folder (`7/2026112107`) that have a row, garbage included."""
        return await self._database.read(
            lambda connection: frozenset(
                path
                for (path,) in connection.execute(
                    "SELECT path FROM segment WHERE path > ? AND path < ?", (f"{folder}/", f"{folder}0")
                )
            )
        )

    async def paths(self) -> frozenset[str]:
        """Every path that has a row, garbage included: what start-up compares with the disk."""
        return await self._database.read(
            lambda connection: frozenset(path for (path,) in connection.execute("SELECT path FROM segment"))
        )

    async def after(self, segment_id: int, *, limit: int = 2000) -> tuple[Segment, ...]:
        """Segments with an id above `segment_id`, by id, garbage left out: a walk over all of them in bounded steps."""
        return await self._database.read(
            lambda connection: tuple(
                _segment(row)
                for row in connection.execute(
                    f"SELECT {_COLUMNS} FROM segment WHERE id > ? AND garbage = 0 ORDER BY id LIMIT ?",
                    (segment_id, limit),
                )
            )
        )

    async def bytes_kept(self) -> int:
        """Bytes of all segments that are not garbage."""
        return await self._database.read(
            lambda connection: int(
                connection.execute(
                    "SELECT coalesce(sum(size), 0) FROM segment INDEXED BY segment_by_age WHERE garbage = 0"
                ).fetchone()[0]
            )
        )

    async def bytes_since(self, start: int) -> tuple[int, int]:
        """Bytes of the segments that began at `start` (wall micros) or later, and when the first of them began.

        Without any, 0 and `start`.
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
        """The oldest segments that may go, until enough bytes are covered."""

        def choose(connection: sqlite3.Connection) -> tuple[Segment, ...]:
            chosen: list[Segment] = []
            covered = 0
            for row in connection.execute(
                f"SELECT {_COLUMNS} FROM segment INDEXED BY segment_by_age WHERE garbage = 0 AND started_at >= ?"
                f" AND started_at < ? AND (? OR clock_trusted = 1) AND NOT {_HELD} ORDER BY started_at LIMIT ?",
                (
                    choice.begin,
                    choice.end if choice.end is not None else _EVER,
                    choice.end is None,
                    *choice.held_by(),
                    choice.limit,
                ),
            ):
                if covered >= choice.at_least:
                    break
                chosen.append(_segment(row))
                covered += chosen[-1].size
            return tuple(chosen)

        return await self._database.read(choose)

    async def discard(self, choice: Choice) -> tuple[Segment, ...]:
        """Mark the oldest segments that may go as garbage until enough bytes are covered, and return them.

        The caller deletes the files and then calls `forget`.
        """
        # The long look is a reader's, so that it holds up no commit.
        chosen = await self.free(choice)

        def mark(connection: sqlite3.Connection) -> tuple[Segment, ...]:
            """Those chosen that were not pinned meanwhile, as they are now."""
            marked = (
                connection.execute(
                    f"UPDATE segment SET garbage = 1 WHERE id = ? AND garbage = 0 AND NOT {_HELD} RETURNING {_COLUMNS}",
                    (item.id, *choice.held_by()),
                ).fetchone()
                for item in chosen
            )
            return tuple(_segment(row) for row in marked if row)

        return await self._database.write(mark) if chosen else ()

    async def garbage(self) -> tuple[Segment, ...]:
        """Segments whose deletion was begun."""
        return await self._database.read(
            lambda connection: tuple(
                _segment(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM segment WHERE garbage = 1")
            )
        )

    async def forget(self, segments: Sequence[Segment]) -> None:
        """Remove the rows of segments whose files have gone."""
        await self._database.write(
            lambda connection: connection.executemany(
                "DELETE FROM segment WHERE id = ?", [(item.id,) for item in segments]
            )
        )


def _missing(connection: sqlite3.Connection, item: CameraEvent) -> tuple[Missing, ...]:
    edges = [segment.edge for segment in _of_event(connection, item)]
    following = connection.execute(
        "SELECT gap FROM segment WHERE camera_id = ? AND started_at >= ? AND garbage = 0 ORDER BY started_at LIMIT 1",
        (item.camera_id, item.pinned_until),
    ).fetchone()
    after = GapReason(following[0]) if following else GapReason.NONE
    return tuple(missing_between(edges, item.pinned_from, item.pinned_until, after=after))


def _of_event(connection: sqlite3.Connection, event: CameraEvent) -> tuple[Segment, ...]:
    found = {
        row[0]: _segment(row)
        for row in connection.execute(
            f"SELECT {_COLUMNS} FROM segment WHERE camera_id = ? AND started_at > ? AND started_at < ?"
            " AND started_at + duration > ? AND garbage = 0",
            (event.camera_id, event.pinned_from - LONGEST_SEGMENT, event.pinned_until, event.pinned_from),
        )
    }
    if event.boot_id:
        found |= {segment.id: segment for segment in _recorded_then(connection, event)}
    footage = (_as_stamped(segment, event) for segment in found.values())
    return tuple(
        sorted(
            (item for item in footage if item.ended_at > event.pinned_from and item.started_at < event.pinned_until),
            key=lambda item: (item.started_at, item.id),
        )
    )


def _recorded_then(connection: sqlite3.Connection, event: CameraEvent) -> Iterator[Segment]:
    """What was recorded in the event's run of the machine while it was, in the order in which it came."""
    low, high = connection.execute(
        "SELECT coalesce(min(number), 0), coalesce(max(number), -1) FROM segment"
        " WHERE camera_id = ? AND number IS NOT NULL",
        (event.camera_id,),
    ).fetchone()
    query = (
        f"SELECT {_COLUMNS} FROM segment WHERE camera_id = ? AND number >= ? AND number IS NOT NULL AND garbage = 0"
        " ORDER BY number LIMIT ?"
    )
    while low < high:
        middle = (low + high) // 2
        row = connection.execute(query, (event.camera_id, middle, 1)).fetchone()
        if row is not None and _as_stamped(_segment(row), event).ended_at <= event.pinned_from:
            low = middle + 1
        else:
            high = middle
    for row in connection.execute(query, (event.camera_id, low, _MOST_OF_EVENT)):
        segment = _as_stamped(_segment(row), event)
        if segment.started_at >= event.pinned_until:
            return
        if segment.boot_id == event.boot_id:
            yield _segment(row)


def _as_stamped(segment: Segment, event: CameraEvent) -> Segment:
    """With the times that the event's clock would have told."""
    at = segment.monotonic + event.clock_offset
    if not event.boot_id or segment.boot_id != event.boot_id or abs(at - segment.started_at) <= _CLOCK_WAS_SET:
        return segment
    return replace(segment, started_at=at)


def _add(connection: sqlite3.Connection, item: SegmentFinished) -> bool:
    """Whether it was new."""
    cursor = connection.execute(
        "INSERT OR IGNORE INTO segment (camera_id, path, started_at, duration, size, clock_trusted, gap, codec,"
        " width, height, frames, boot_id, monotonic) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        ),
    )
    if cursor.rowcount <= 0:
        return False
    if item.sha256:
        link_segment(connection, segment_id=int(cursor.lastrowid or 0), path=item.path, sha256=item.sha256)
    return True


def _segment(row: tuple[Any, ...]) -> Segment:
    sha256, number, previous = row[12:15]
    return Segment(
        id=row[0],
        camera_id=row[1],
        path=row[2],
        started_at=row[3],
        duration=row[4],
        size=row[5],
        clock_trusted=bool(row[6]),
        gap=GapReason(row[7]),
        codec=row[8],
        width=row[9],
        height=row[10],
        frames=row[11],
        sha256=sha256.hex() if sha256 else "",
        place=None if number is None else Place(number=number, previous=previous.hex()),
        boot_id=row[15],
        monotonic=row[16],
        breaks=row[17],
    )
