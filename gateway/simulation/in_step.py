"""What keeps a simulated life in step with central."""

from __future__ import annotations

import asyncio
from typing import Protocol

from gateway.clock import Clock
from gateway.store import Store
from gateway.sync.central import CentralClient
from gateway.sync.outbox import OutboxSender

_SENDS_EVERY = 5.0  # the daemon sends at once; here it is one look at the outbox for several rows


class InStep(Protocol):
    """The part of one life that speaks with central."""

    async def recall(self) -> None:
        """After a start, before lanes run. Raises StoreError."""
        ...

    async def run(self) -> None:
        """For as long as the life lasts."""
        ...

    def cut(self) -> None:
        """The power is gone, in this instant: nothing goes out any more, and nothing comes in."""
        ...


class OnlyUp:
    """The outbox alone. Fulfils `InStep`."""

    def __init__(self, *, client: CentralClient, store: Store, clock: Clock) -> None:
        self._store = store
        self._sender = OutboxSender(client=client, store=store, clock=clock)

    async def recall(self) -> None:
        """There is nothing to recall."""

    async def run(self) -> None:
        """Send what waits, now and then."""
        await self._sender.start_afresh()
        while True:
            version = self._store.changes.version
            turn = await self._sender.send_due()
            await asyncio.sleep(_SENDS_EVERY)
            if not turn.new_rows_count:
                await asyncio.sleep(turn.wait)
            elif turn.wait > 0:
                await self._store.changes.beyond(version, within=turn.wait)

    def cut(self) -> None:
        """Its far end takes no notice of who speaks."""
