"""The highest id that central has given to each kind of records, known before a record is sent.

If the answer is lost, the new record's id is above that id, so central's list need not be searched further down.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from gateway.central.client.client import CentralClient
from gateway.central.client.lists import PageOrder, read_page
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.domain.writes import Lookup, WriteOperation
from gateway.runtime.clock import Clock

_FRESH_SECONDS = 300.0
_TRIES = 3


class NewestIds:
    """Newest ids of central's lists; central is asked unless it gave this site an id of the kind recently."""

    def __init__(self, *, client: CentralClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._highest: dict[str, int] = {}
        self._fresh_until: dict[str, float] = {}
        self._failures: Counter[str] = Counter()

    def on_answer(self, kind: str) -> None:
        """Note that central has answered a create of a kind, so that the store has the id that it gave."""
        self._fresh_until[kind] = self._clock.monotonic() + _FRESH_SECONDS

    @property
    def highest(self) -> Mapping[str, int]:
        """The highest ids in central's lists when they were last asked for, by kind."""
        return self._highest

    async def refresh(self, operations: Iterable[WriteOperation]) -> None:
        """Ask central for the newest record of each long list of which nothing was heard for some minutes.

        Raises CentralUnavailable: the answer to a record that is sent now may be lost too, and the record would have to
        be searched for far down the list.
        """
        for operation in operations:
            kind, lookup = operation.kind, operation.lookup
            if lookup is None or not lookup.is_long:
                continue
            if self._clock.monotonic() >= self._fresh_until.get(kind, -math.inf):
                await self._ask(kind, lookup)

    def now(self) -> int | None:
        """Return central's time in micros, None while its clock is unknown."""
        offset = self._client.state.clock_offset
        return None if offset is None else self._clock.wall().micros + int(offset.seconds * 1_000_000)

    async def _ask(self, kind: str, lookup: Lookup) -> None:
        try:
            newest = await self._newest(lookup)
        except CentralUnavailable:
            self._failures[kind] += 1
            if self._failures[kind] < _TRIES:
                raise
            newest = None  # only this list fails, and no record should wait for that
        except CentralRefused:
            newest = None  # the account may not see the list
        self._failures[kind] = 0
        if newest is not None:
            self._highest[kind] = newest
        self.on_answer(kind)

    async def _newest(self, lookup: Lookup) -> int | None:
        page = await read_page(self._client, lookup, 1, 2)
        if page.order is PageOrder.OLDEST_FIRST and page.count is not None:
            page = await read_page(self._client, lookup, max(page.count, 1), 1)
        return max(page.records, default=None)
