"""A technician who deals with refused records and settles unknown outcomes."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable

from gateway.demo.central.answers import JsonObject
from gateway.demo.central.tables import Tables
from gateway.domain.errors import GatewayError
from gateway.domain.writes import CARD_CREATE
from gateway.simulation.outage.house import WiredSync
from gateway.simulation.outage.people import Promised
from gateway.store import OutboxRow

_NAME = "technician"
_LETS_GO = 0.1
_MOST = 500


class Technician:
    """Goes through what waits for a person, row by row. `counts` says what was done."""

    def __init__(self, *, dice: random.Random, tables: Tables, promised: Promised) -> None:
        self._dice = dice
        self._tables = tables
        self._promised = promised
        self._number = 0
        self._cameras: list[JsonObject] = []
        self.counts: Counter[str] = Counter()

    def take_a_camera_away(self) -> None:
        """Somebody deletes a camera at central by mistake: it refuses every camera event of that one."""
        camera_id = min(self._tables.cameras)
        self._cameras.append(self._tables.cameras.remove(camera_id))
        self.counts["camera missing at central"] += 1

    async def clear(self, house: WiredSync, alive: Callable[[], bool]) -> None:
        """Deal with all that waits now. Central has its cameras again."""
        while self._cameras:
            self._tables.cameras.put(self._cameras.pop())
        for row in await house.store.refused.page(after=0, limit=_MOST, refused=True):
            if not alive():
                return
            try:
                await (self._say(house, row) if row.begun else self._mend(house, row))
            except GatewayError:
                self.counts["too late for a technician"] += 1

    async def _say(self, house: WiredSync, row: OutboxRow) -> None:
        """Nobody knows whether central has it: look there."""
        table = {"camera_event": self._tables.camera_events, "entry": self._tables.entries}.get(
            row.kind, self._tables.cards
        )
        sent = json.loads(row.body)
        names = ("number", "note") if row.kind == CARD_CREATE.kind else ("source_id",)
        there = [n for n, record in table.items() if all(record.get(name) == sent.get(name) for name in names)]
        await house.desk.settle(row.id, there[0] if there else None, by=_NAME)
        self.counts["unknown, found at central" if there else "unknown, not at central"] += 1

    async def _mend(self, house: WiredSync, row: OutboxRow) -> None:
        """Mend a refused record: drop it, give it another number, or send it again."""
        if self._dice.random() < _LETS_GO:
            await house.desk.drop(row.id, by=_NAME)
            self._promised.let_go.add((row.kind, row.record_id))
            self.counts["refused, let go of"] += 1
        elif row.kind == CARD_CREATE.kind and row.action == CARD_CREATE.action:
            self._number += 1
            number = f"S8{self._number:05d}"
            self._promised.unsure.add(number)
            await house.desk.edit(row.id, {"number": number, "note": number}, by=_NAME)
            self._promised.notes[number] = number
            self._promised.unsure.discard(number)
            self.counts["refused, edited"] += 1
        else:
            await house.desk.retry(row.id, by=_NAME)
            self.counts["refused, sent again"] += 1
