"""The parts of a simulated life that synchronise with central."""

from __future__ import annotations

from typing import Protocol

from gateway.central import wiring
from gateway.central.client.client import CentralClient
from gateway.central.push.outbox import SendRound
from gateway.runtime.clock import Clock
from gateway.store import Store


class CentralSync(Protocol):
    """The part of one life of the gateway that speaks with central."""

    @property
    def busy(self) -> bool:
        """True while something is being sent, so that time must not jump."""
        ...

    async def recall(self) -> None:
        """Recover after a start, before lanes run. Raises StoreError."""
        ...

    async def run(self) -> None:
        """Synchronise for as long as the life lasts."""
        ...

    def cut(self) -> None:
        """Cut the power: nothing goes out or comes in from this instant on."""
        ...


class OutboxAlone:
    """The outbox without the lists of central. Fulfils `CentralSync`."""

    def __init__(self, *, client: CentralClient, store: Store, clock: Clock) -> None:
        self._sender = wiring.outbox_sender(
            store,
            upstream=wiring.upstream(client, store=store, clock=clock),
            cards=wiring.site_cards(store, clock=clock),
        )
        self.busy = False

    async def recall(self) -> None:
        """Do nothing: there is nothing to recall."""

    async def run(self) -> None:
        """Send the outbox until cancelled."""
        await self._sender.run(self._sent_round)

    def cut(self) -> None:
        """Send nothing more."""
        self.busy = False

    async def _sent_round(self, done: SendRound) -> None:
        self.busy = done.wait == 0
