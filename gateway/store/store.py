"""The store as its users see it: two database files and one object per aggregate."""

from __future__ import annotations

import asyncio
from pathlib import Path

from gateway.store.camera_events import CameraEvents
from gateway.store.cards import Cards
from gateway.store.changes import Changes
from gateway.store.commands import Commands
from gateway.store.database import Database
from gateway.store.events import Events
from gateway.store.journal import Journal
from gateway.store.migrations import migrations
from gateway.store.outbox import Outbox
from gateway.store.passages import Passages
from gateway.store.records import Records
from gateway.store.segments import Segments
from gateway.store.sessions import Sessions


class Store:
    """Everything on disk that is not media. `open`, keep `run` alive as a task, `close` at the end.

    Cards are in a file of their own, so that one damaged file does not take the other along.
    """

    def __init__(self, *, folder: Path, site_name: str, sends: bool) -> None:
        """`sends`: there is a central, so that what must go up is put into the outbox."""
        self._site = Database(path=folder / "site.db", steps=migrations("site"))
        self._cards = Database(path=folder / "cards.db", steps=migrations("cards"))
        self.changes = Changes()
        self.journal = Journal(database=self._site, changes=self.changes, site_name=site_name, sends=sends)
        self.events = Events(database=self._site)
        self.devices = Records(database=self._site, table="device")
        self.cameras = Records(database=self._site, table="camera")
        self.segments = Segments(database=self._site)
        self.camera_events = CameraEvents(database=self._site, changes=self.changes)
        self.passages = Passages(database=self._site)
        self.outbox = Outbox(database=self._site)
        self.commands = Commands(database=self._site)
        self.sessions = Sessions(database=self._site)
        self.cards = Cards(database=self._cards)

    async def open(self) -> None:
        """Open both files. Raises StoreError with one sentence."""
        await self._site.open()
        await self._cards.open()

    async def run(self) -> None:
        """Commit what is written, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._site.run(), name="commit-site")
            group.create_task(self._cards.run(), name="commit-cards")

    async def close(self) -> None:
        """Commit the rest and close cleanly."""
        await self._site.close()
        await self._cards.close()

    @property
    def was_unclean(self) -> bool:
        """Whether the last end was a crash or a power cut."""
        return self._site.was_unclean

    @property
    def salvaged(self) -> tuple[str, ...]:
        """One sentence per file that was damaged and started afresh."""
        return tuple(text for text in (self._site.salvaged, self._cards.salvaged) if text)

    @property
    def failing(self) -> str:
        """Why commits fail just now, "" while they do not."""
        return self._site.failing or self._cards.failing

    @property
    def commits(self) -> int:
        """Commits so far: the writer's progress."""
        return self._site.commits + self._cards.commits

    @property
    def waiting(self) -> int:
        """Writes that are not in a commit yet."""
        return self._site.waiting + self._cards.waiting
