"""The collector: records of all gateways, from the stream into PostgreSQL, each exactly once.

The place in the stream is written in the transaction that writes the rows, so a crash at any moment loses and repeats
nothing. A stream that is made anew is read from its beginning; the key of each table, the record's own time and its
message id, drops what is already there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway.fleet.collected import RefusedRow, Row, row_of
from gateway.fleet.connection import FleetServer, connected
from gateway.fleet.database import DatabaseAway, Tables, opened
from gateway.fleet.line import FleetAway, FleetLine
from gateway.fleet.names import STREAM, STREAM_SUBJECTS
from gateway.runtime.supervision import Backoff, heed_cancellation

MOST_AT_ONCE = 500


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
