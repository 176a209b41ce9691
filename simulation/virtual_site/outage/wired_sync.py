"""The parts of a life that speak with central, wired as in the daemon, over a plug in place of a socket."""

from __future__ import annotations

from pathlib import Path

from gateway.central.pull.pull import DownSync
from gateway.central.push.evidence import EvidenceSender
from gateway.central.push.outbox import OutboxSender
from gateway.central.push.parked_rows import ParkedRows
from gateway.central.push.upstream import upstream
from gateway.central.push.writes import CentralWrites
from gateway.central.runner import Sync, SyncPace
from gateway.central.site_cards import SiteCards
from gateway.lanes import Lanes
from gateway.recording.evidence_files import EvidenceFiles
from gateway.recording.incoming import EvidenceLimits
from gateway.runtime.clock import Clock
from gateway.store import Store
from simulation.virtual_site.central import WiredClient
from simulation.virtual_site.wire import Plug

_PULL_SECONDS = 60.0
_LIMITS = EvidenceLimits(bytes_each=8 * 1024 * 1024, per_event=50, floor=0)


class WiredSync:
    """Down-sync, outbox, evidence and people's writes of one life. Fulfils `CentralSync`."""

    def __init__(self, *, store: Store, lanes: Lanes, folder: Path, clock: Clock, plug: Plug) -> None:
        self._plug = plug
        self.busy = False  # central is away until the end of the outage, and after that time never jumps
        self._media = folder / "media"
        self.store = store
        self.client = WiredClient(plug=plug, clock=clock)
        cards = SiteCards(store=store, clock=clock)
        central = upstream(self.client, cards)
        sender = OutboxSender(central, card_renamed=lanes.areas.card_renamed)
        self.writes = CentralWrites(cards, sender=sender)
        self.parked = ParkedRows(cards)
        self.evidence_files = EvidenceFiles(
            store=store, media=self._media, clock=clock, fault=lambda: "", limits=_LIMITS
        )
        self.down = DownSync(central)
        self.sync = Sync(
            central,
            down=self.down,
            sender=sender,
            pace=SyncPace(pull_seconds=_PULL_SECONDS),
            evidence=EvidenceSender(central, files=self.evidence_files.lost),
        )

    async def recall(self) -> None:
        """Recover files and cards that the last life left unfinished. Raises StoreError, OSError."""
        self._media.mkdir(exist_ok=True)
        await self.evidence_files.open()
        await self.writes.recall()

    async def run(self) -> None:
        """Synchronise with central."""
        await self.sync.run()

    def cut(self) -> None:
        """Cut the power: nothing is sent or received from this instant on."""
        self._plug.pull()
