"""The page's snapshots: taken once for all open pages when something has changed, at most four a second."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from pydantic import TypeAdapter

from gateway.domain.errors import StoreError
from gateway.runtime.clock import WallTimes
from gateway.store import Books
from gateway.web.auth.callers import Caller
from gateway.web.context import InterfaceContext
from gateway.web.status.snapshot import (
    DemoState,
    EventState,
    GatewayState,
    Snapshot,
    UserState,
    user_state,
)
from gateway.web.status.snapshot_json import SnapshotJson

SHORTEST_SECONDS = 0.25
LONGEST_SECONDS = 2.0
_MOMENT_SECONDS = 0.02
_EVENTS = 60


@dataclass(frozen=True, slots=True)
class Viewer:
    """A caller as every look needs it: what they may see, and the account as JSON."""

    permissions: UserState
    json: bytes

    @classmethod
    def of(cls, caller: Caller) -> Viewer:
        """Return the caller as a viewer."""
        user = user_state(caller)
        return cls(replace(user, username="", role="", central=False), b'"user":' + _USER.dump_json(user))


@dataclass(frozen=True, slots=True)
class Look:
    """A snapshot.

    Attributes:
        version: the version of the store's changes that it includes.
        snapshot: the snapshot itself.
        ahead: by how many micros wall time was ahead of monotonic time: the times in the snapshot count by this.
    """

    version: int
    snapshot: Snapshot
    ahead: int
    _shown: dict[UserState, SnapshotJson] = field(default_factory=dict, compare=False, repr=False)

    def shown_to(self, viewer: Viewer) -> Shown:
        """Return the parts that the viewer may see, as JSON, which viewers with the same permissions share."""
        site = self._shown.get(viewer.permissions)
        if site is None:
            made = SnapshotJson.of(self.snapshot.visible_to(viewer.permissions))
            others = {name: value for name, value in made.whole.items() if name != "user"}
            site = self._shown[viewer.permissions] = SnapshotJson(others, made.rows)
        return Shown(site, viewer.json)


@dataclass(frozen=True, slots=True)
class Shown:
    """A caller's snapshot as JSON: the site, shared with other callers, and the caller's own account."""

    site: SnapshotJson
    user: bytes

    def all(self) -> bytes:
        """Return the whole snapshot, as a JSON object without its braces."""
        return b"%b,%b" % (self.site.all(), self.user)

    def since(self, before: Shown) -> bytes:
        """Return the fields that differ from `before`, as a JSON object without its braces; b"" if none does."""
        site = self.site.since(before.site)
        if self.user == before.user:
            return site
        return b"%b,%b" % (site, self.user) if site else self.user


_USER = TypeAdapter(UserState)


class Watch:
    """Snapshots of the site, shared by all open pages."""

    def __init__(self, context: InterfaceContext) -> None:
        self._context = context
        self._demo = DemoState(context.demo_cards) if context.demo_cards else None
        self._wall_times = WallTimes(context.clock)
        self._lock = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._last: Look | None = None
        self._last_at = float("-inf")

    async def look(self) -> Look:
        """Return a snapshot that includes the last change, and is at most 2 s old for values that change silently.

        A new snapshot is taken at most every 0.25 s; a call that comes sooner waits.
        """
        async with self._lock:
            age = self._context.clock.monotonic() - self._last_at
            if self._last and self._last.version == self._context.store.changes.version and age < LONGEST_SECONDS:
                return self._last
            if age < SHORTEST_SECONDS:
                await asyncio.sleep(SHORTEST_SECONDS - age)
            version = self._context.store.changes.version
            self._last = Look(version=version, snapshot=await self._take(), ahead=self._wall_times.ahead())
            self._last_at = self._context.clock.monotonic()
            return self._last

    async def after(self, look: Look) -> Look:
        """Wait for a change after `look`, at most 2 s, and return the next snapshot.

        One page waits for all of them: the others wait for their turn, and find its snapshot. It is taken a moment
        after the change, so that a gate's command goes out first.
        """
        async with self._turn:
            if self._last is not None and self._last is not look:
                return self._last
            await self._context.store.changes.beyond(look.version, within=LONGEST_SECONDS)
            await asyncio.sleep(_MOMENT_SECONDS)
            return await self.look()

    def wake(self) -> None:
        """Wake all who wait in `after`."""
        self._context.store.changes.bump()

    async def _take(self) -> Snapshot:
        events, books, failing = await self._read()
        verdict, state = self._context.verdict(), self._context.site_state()
        central_status = self._context.central_status
        return Snapshot(
            gateway=GatewayState(
                site=self._context.site.site.name,
                timezone=self._context.site.site.timezone,
                version=self._context.release,
                started_at=self._wall_times.of(self._context.started_at),
                ready=not verdict.not_ready,
                headline=verdict.headline,
                store_failing=failing,
                clock_trusted=self._context.clock.wall().trusted,
            ),
            problems=verdict.problems,
            lanes=self._context.lanes.lanes(),
            areas=self._context.areas.areas(),
            devices=self._context.lanes.devices(),
            cameras=self._context.recording.cameras(),
            storage=self._context.recording.storage(),
            events=events,
            central=central_status() if central_status else None,
            fleet=state.fleet,
            broker=state.broker,
            books=books,
            demo=self._demo,
        )

    async def _read(self) -> tuple[tuple[EventState, ...], Books | None, str]:
        """Read the store; return events, outbox counts, and why the store fails ("" if it does not).

        If the store cannot be read, the last known values are returned, so that the lanes are still shown.
        """
        try:
            events = await self._context.event_states.of(await self._context.store.events.latest(limit=_EVENTS))
            books = await self._context.store.outbox.books() if self._context.central_status else None
        except StoreError as error:
            last = self._last.snapshot if self._last else None
            return (last.events, last.books, str(error)) if last else ((), None, str(error))
        return events, books, self._context.store.failing or self._context.store.damaged
