"""Central as the outbox sees it: sometimes offline, sometimes failing, and sometimes its answer is lost on the way.

It ignores idempotency keys, so a record that is sent twice is stored twice.
"""

from __future__ import annotations

import asyncio
import random

from gateway.central.client.answers import CentralFailed, JsonObject
from gateway.central.client.client import CentralClient, Known
from gateway.central.client.connections import Method
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.source_ids import site_id_in
from gateway.runtime.clock import Clock
from simulation.virtual_site import observations as seen
from simulation.virtual_site.witness import Witness

_NO_ANSWER = 1.0


class CentralFarEnd:
    """The records of central. They outlive every gateway."""

    def __init__(self, *, dice: random.Random) -> None:
        self.dice = dice
        self.away_until = float("-inf")
        self.troubled = True
        self._changes: dict[str, int] = {}
        self._sources: set[int] = set()
        self._count = 0
        self._records: dict[str, dict[int, JsonObject]] = {"entries": {}, "events": {}}

    def take(self, key: str, resource: str, body: JsonObject) -> tuple[int, int, bool]:
        """Store a record, or a change of one, which has no source of its own.

        Return central's id, the site's id (for a change, a negative number), and whether central had it already.
        """
        self._count += 1
        source = body.get("source_id")
        if not isinstance(source, int):
            number = self._changes.setdefault(key, self._count)
            return number, -number, number != self._count
        again = source in self._sources
        self._sources.add(source)
        self._records[resource][self._count] = {**body, "id": self._count}
        return self._count, site_id_in(source), again

    def page(self, resource: str, number: int, limit: int) -> JsonObject:
        """Return a page of a list, the newest records first."""
        records = self._records[resource]
        there = sorted(records, reverse=True)[(number - 1) * limit : number * limit]
        return {resource: [records[found] for found in there], "count": len(records)}

    def record(self, resource: str, number: object) -> JsonObject:
        """Return one record. Raises CentralRefused when it does not exist."""
        found = self._records[resource].get(number) if isinstance(number, int) else None
        if found is None:
            raise CentralRefused("not found", status=404)
        return found


class SimulatedCentral(CentralClient):
    """The client that `OutboxSender` calls. It calls the far end directly instead of sending HTTP."""

    def __init__(self, *, far_end: CentralFarEnd, witness: Witness, clock: Clock) -> None:
        super().__init__(url="http://central.invalid", username="gateway", password="", clock=clock)
        self._far_end = far_end
        self._witness = witness
        self._time = clock.monotonic

    async def call(
        self,
        method: Method,
        path: str,
        body: JsonObject | None = None,
        *,
        key: str = "",
        known: Known | None = None,  # noqa: ARG002 (the client's form)
        urgent: bool = False,  # noqa: ARG002
    ) -> JsonObject:
        """See `CentralClient.call`."""
        dice = self._far_end.dice
        if self._far_end.away_until > self._time():
            await asyncio.sleep(_NO_ANSWER)
            raise CentralUnavailable("central does not answer")
        await asyncio.sleep(dice.uniform(0.02, 0.2))
        chance = dice.random() if self._far_end.troubled else 1.0
        if chance < 0.02:
            raise CentralFailed(f"{method} {path}: something went wrong")
        if chance < 0.022:
            raise CentralRefused(f"{method} {path}: refused")
        resource, one = ("entries", "entry") if path.startswith("/v1/entry") else ("events", "event")
        asked = body or {}
        if method == "POST" and "id" in asked:
            return {one: self._far_end.record(resource, asked["id"])}
        if method == "POST":  # a search for a record of unknown outcome
            page, limit = asked.get("page"), asked.get("page_limit")
            return self._far_end.page(resource, int(str(page)), int(str(limit)))
        number, site_id, again = self._far_end.take(key, resource, asked)
        self._witness.see(seen.CentralTook(self._time(), key, site_id, again))
        if chance < 0.035:
            await asyncio.sleep(_NO_ANSWER)
            raise CentralUnavailable("the answer was lost")
        return {one: {"id": number}}
