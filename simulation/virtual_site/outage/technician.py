"""A technician, who handles the outbox rows that central refused, and those of unknown outcome."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable

from gateway.domain.errors import GatewayError
from gateway.domain.writes import CARD_CREATE
from gateway.store import OutboxRow
from simulation.far_ends.central.answers import JsonObject
from simulation.far_ends.central.tables import Tables
from simulation.virtual_site.outage.people import Promised
from simulation.virtual_site.outage.wired_sync import WiredSync

_NAME = "technician"
_LETS_GO = 0.1
_MOST = 500


class Technician:
    """A person who handles the parked rows of the outbox one by one. `counts` are the actions, by name."""

    def __init__(self, *, dice: random.Random, tables: Tables, promised: Promised) -> None:
        self._dice = dice
        self._tables = tables
        self._promised = promised
        self._number = 0
        self._cameras: list[JsonObject] = []
        self.counts: Counter[str] = Counter()

    def take_a_camera_away(self) -> None:
        """Delete a camera at central, as if by mistake, so that central refuses its camera events."""
        camera_id = min(self._tables.cameras)
        self._cameras.append(self._tables.cameras.remove(camera_id))
        self.counts["camera missing at central"] += 1

    async def clear(self, wired: WiredSync, alive: Callable[[], bool]) -> None:
        """Handle all rows that are parked now, after central has got its deleted cameras back."""
        while self._cameras:
            self._tables.cameras.put(self._cameras.pop())
        for row in await wired.store.refused.page(after=0, limit=_MOST, refused=True):
            if not alive():
                return
            try:
                await (self._say(wired, row) if row.begun else self._mend(wired, row))
            except GatewayError:
                self.counts["too late for a technician"] += 1

    async def _say(self, wired: WiredSync, row: OutboxRow) -> None:
        """Settle a row of unknown outcome, by looking whether central has the record."""
        table = {"camera_event": self._tables.camera_events, "entry": self._tables.entries}.get(
            row.kind, self._tables.cards
        )
        sent = json.loads(row.body)
        names = ("number", "note") if row.kind == CARD_CREATE.kind else ("source_id",)
        there = [n for n, record in table.items() if all(record.get(name) == sent.get(name) for name in names)]
        await wired.parked.settle(row.id, there[0] if there else None, by=_NAME)
        self.counts["unknown, found at central" if there else "unknown, not at central"] += 1

    async def _mend(self, wired: WiredSync, row: OutboxRow) -> None:
        """Drop a row that central refused, give its card another number, or have it sent again."""
        if self._dice.random() < _LETS_GO:
            await wired.parked.drop(row.id, by=_NAME)
            self._promised.let_go.add((row.kind, row.record_id))
            self.counts["refused, let go of"] += 1
        elif row.kind == CARD_CREATE.kind and row.action == CARD_CREATE.action:
            self._number += 1
            number = f"S8{self._number:05d}"
            self._promised.unsure.add(number)
            await wired.parked.edit(row.id, {"number": number, "note": number}, by=_NAME)
            self._promised.notes[number] = number
            self._promised.unsure.discard(number)
            self.counts["refused, edited"] += 1
        else:
            await wired.parked.retry(row.id, by=_NAME)
            self.counts["refused, sent again"] += 1
