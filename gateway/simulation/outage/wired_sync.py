"""The parts of a life that speak with central, wired as in the daemon, over a plug in place of a socket."""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp

from gateway.central.client.client import CentralClient
from gateway.central.pull.pull import DownSync
from gateway.central.push.evidence import EvidenceSender
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.parked_rows import ParkedRows
from gateway.central.push.writes import CentralWrites
from gateway.central.runner import Sync
from gateway.lanes import Lanes
from gateway.recording.evidence_files import EvidenceFiles
from gateway.recording.incoming import EvidenceLimits
from gateway.runtime.clock import Clock
from gateway.simulation.outage.wire import Plug, WireConnector
from gateway.store import Store

PASSWORD = "simulated"  # noqa: S105 (of a central that is not there)
USERNAME = "gateway"
_PULL_SECONDS = 60.0
_LIMITS = EvidenceLimits(bytes_each=8 * 1024 * 1024, per_event=50, floor=0)


class WiredClient(CentralClient):
    """The client, over a plug."""

    def __init__(self, *, plug: Plug, clock: Clock) -> None:
        super().__init__(url="http://central.invalid", username=USERNAME, password=PASSWORD, clock=clock)
        self._plug = plug

    def _connector(self, tls: ssl.SSLContext | None) -> aiohttp.BaseConnector:
        del tls
        return WireConnector(self._plug)


class WiredSync:
    """Down-sync, outbox, evidence and people's writes of one life. Fulfils `InStep`."""

    def __init__(self, *, store: Store, lanes: Lanes, folder: Path, clock: Clock, plug: Plug) -> None:
        self._plug = plug
        self.busy = False  # an outage keeps central away until its end, and jumps over no moment after that
        self._media = folder / "media"
        self.store = store
        self.client = WiredClient(plug=plug, clock=clock)
        self.writes = CentralWrites(client=self.client, store=store, clock=clock)
        self.desk = ParkedRows(store=store, clock=clock)
        self.evidence_files = EvidenceFiles(
            store=store, media=self._media, clock=clock, fault=lambda: "", limits=_LIMITS
        )
        self.down = DownSync(client=self.client, store=store, clock=clock)
        self.sync = Sync(
            client=self.client,
            down=self.down,
            sender=OutboxSender(client=self.client, store=store, clock=clock, card_renamed=lanes.areas.card_renamed),
            store=store,
            clock=clock,
            pull_seconds=_PULL_SECONDS,
            evidence=EvidenceSender(
                client=self.client,
                evidence=store.evidence,
                outbox=store.outbox,
                unknown_outcomes=store.unknown_outcomes,
                pending_writes=store.pending_writes,
                journal=store.journal,
                changes=store.changes,
                clock=clock,
                files=self.evidence_files.lost,
            ),
        )

    async def recall(self) -> None:
        """Recover files and cards after the end of the life before. Raises StoreError, OSError."""
        self._media.mkdir(exist_ok=True)
        await self.evidence_files.open()
        await self.writes.recall()

    async def run(self) -> None:
        """Synchronise with central."""
        await self.sync.run()

    def cut(self) -> None:
        """See `InStep`."""
        self._plug.pull()
