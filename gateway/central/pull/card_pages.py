"""Pages of a long card list, parsed in a child process so that the event loop stays free. See `card_process`."""

from __future__ import annotations

import asyncio
import json
import marshal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from datetime import UTC, tzinfo
from typing import Any, Generic, TypeVar
from zoneinfo import ZoneInfo

import structlog

from drivers.child_process import ChildProcess, start_child
from gateway.central.pull.card_process import LENGTH_BYTES
from gateway.central.pull.field_map import CardFieldMap
from gateway.central.pull.paged_walk import ReadPage
from gateway.store.cards.rows import ReadyCard

log = structlog.get_logger(__name__)

_T = TypeVar("_T")

WORTH_A_PROCESS = 2000  # fewer cards are parsed here before a process has started
PAGE_SECONDS = 30.0


class CardPages(Generic[_T]):
    """Parser of card pages in a child process, open until `close`. Pages are read in the order in which they were sent.

    `make` converts each card; its second argument is whether a part of the record could not be read.
    """

    def __init__(self, *, fields: CardFieldMap, zone: tzinfo, make: Callable[[ReadyCard, bool], _T]) -> None:
        self._fields = fields
        self._zone = zone
        self._make = make
        self._process: ChildProcess | None = None

    @property
    def is_up(self) -> bool:
        """True while the process runs."""
        return self._process is not None

    async def expect(self, records: int) -> None:
        """Start the process if so many records are worth it. A failure to start is logged, not raised."""
        zone = _zone_name(self._zone)
        if records < WORTH_A_PROCESS or zone is None:
            return
        try:
            # Its messages are dropped: they could hold a PIN of a record, and this process meets the same faults.
            self._process = await start_child(
                (sys.executable, "-m", "gateway.central.pull.card_process"), stdin=PIPE, stdout=PIPE, stderr=DEVNULL
            )
        except OSError as error:
            log.warning("cards_made_here", error=str(error))
            return
        header = {"fields": self._fields.model_dump(), "zone": zone}
        self._pipes(self._process)[0].write(json.dumps(header).encode() + b"\n")

    def send(self, raw: bytes) -> None:
        """Send a page to the process, which parses it while earlier ones are stored."""
        if self._process is not None:
            self._pipes(self._process)[0].write(len(raw).to_bytes(LENGTH_BYTES) + raw)

    async def read(self) -> ReadPage[_T] | None:
        """Return the next page that was sent; None when it is no usual page, or the process failed and was ended."""
        process = self._process
        if process is None:
            return None
        try:
            async with asyncio.timeout(PAGE_SECONDS):
                return await self._read(process)
        except (OSError, EOFError, TimeoutError) as error:
            log.warning("cards_made_here", error=str(error) or type(error).__name__, status=process.returncode)
            await self.close()
            return None

    async def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.close()
            await process.wait()

    async def _read(self, process: ChildProcess) -> ReadPage[_T] | None:
        _, answers = self._pipes(process)
        listed = await _blob(answers)
        if listed is None:
            return None
        ids, count = listed
        made: dict[int, _T] = {}
        wanted = len({found for found in ids if found is not None})
        while len(made) < wanted:
            for *card, unread in await _blob(answers):
                made[card[0][0]] = self._make(ReadyCard(*card), unread)
            await asyncio.sleep(0)  # lanes come first
        return ReadPage(ids, count, made)

    @staticmethod
    def _pipes(process: ChildProcess) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
        if process.stdin is None or process.stdout is None:
            raise AssertionError("both are pipes")
        return process.stdin, process.stdout


async def _blob(answers: asyncio.StreamReader) -> Any:
    length = int.from_bytes(await answers.readexactly(LENGTH_BYTES))
    return marshal.loads(await answers.readexactly(length))  # noqa: S302 (what our own process wrote)


def _zone_name(zone: tzinfo) -> str | None:
    """Return the name by which another process finds the zone; None when it has none."""
    if zone is UTC:
        return "UTC"
    return zone.key if isinstance(zone, ZoneInfo) else None
