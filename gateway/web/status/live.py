"""The page's stream of changes, as server-sent events. A client that reads too slowly is cut off; it reconnects.

Snapshots are taken once for all open pages when something has changed, at most four a second. Differences save sending
the whole snapshot to every open page each time a single value changes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, get_args, get_type_hints
from weakref import WeakKeyDictionary

import structlog
from aiohttp import web
from pydantic import TypeAdapter

from gateway.domain.errors import StoreError
from gateway.runtime.clock import WallTimes, iso_utc
from gateway.store import Books
from gateway.texts import text, texts_in
from gateway.web.auth.callers import Caller
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import SIGNED_IN
from gateway.web.problems import problem_texts
from gateway.web.status.snapshot import DemoState, EventState, GatewayState, Snapshot, UserState, user_state

log = structlog.get_logger(__name__)

_MOST_STREAMS = 64
WRITE_SECONDS = 5.0
CHECK_SECONDS = 10.0
_SPEAK_SECONDS = 1.9  # just below 2 s, so that each look, which comes every 2 s at least, sends something
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_SIGNED_OUT = b"event: signed-out\ndata: {}\n\n"

SHORTEST_SECONDS = 0.25
LONGEST_SECONDS = 2.0
_MOMENT_SECONDS = 0.02
_EVENTS = 60

_HINTS = get_type_hints(Snapshot, include_extras=True)
_KEYS: Mapping[str, Callable[[Any], str]] = {
    "problems": lambda problem: "/".join(problem.key),
    "lanes": lambda lane: lane.lane_id,
    "areas": lambda area: area.area_id,
    "devices": lambda device: str(device.device_id),
    "cameras": lambda camera: str(camera.camera_id),
    "events": lambda event: str(event.id),
}
"""The lists of which changed rows are sent singly, and the key of a row. The page has the same table."""
_ROWS = {name: TypeAdapter(get_args(_HINTS[name])[0]) for name in _KEYS}
_WHOLE = {name: TypeAdapter(hint) for name, hint in _HINTS.items() if name not in _KEYS}


@dataclass(frozen=True, slots=True)
class PageViewer:
    """A caller as every look needs it: what they may see, and the account as JSON."""

    permissions: UserState
    json: bytes

    @classmethod
    def of(cls, caller: Caller) -> PageViewer:
        """Return the caller as a viewer."""
        user = user_state(caller)
        return cls(replace(user, username="", role="", central=False), b'"user":' + _USER.dump_json(user))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SnapshotJson:
    """The JSON of a snapshot's fields: fields in one piece (`whole`), and lists by row (`rows`, by key, in order).

    A difference from another snapshot is computed once and cached for all pages that ask for it.
    """

    whole: Mapping[str, bytes]
    rows: Mapping[str, Mapping[str, bytes]]
    _since: WeakKeyDictionary[SnapshotJson, bytes] = field(default_factory=WeakKeyDictionary, repr=False)

    @classmethod
    def of(cls, snapshot: Snapshot) -> SnapshotJson:
        """Serialise a snapshot."""
        return cls(
            {name: _with_said(name, adapter, getattr(snapshot, name)) for name, adapter in _WHOLE.items()},
            {
                name: {_KEYS[name](row): _with_said(name, adapter, row) for row in getattr(snapshot, name)}
                for name, adapter in _ROWS.items()
            },
        )

    def all(self) -> bytes:
        """Return the whole snapshot, as a JSON object without its braces."""
        lists = {name: b"[%b]" % b",".join(rows.values()) for name, rows in self.rows.items()}
        return _members({**self.whole, **lists})

    def since(self, before: SnapshotJson) -> bytes:
        """Return the fields that differ from `before`, as a JSON object without its braces; b"" if none does.

        A changed list has `put`, its new or changed rows, and, if rows came, went or moved, `keys`, the keys of all
        rows in order.
        """
        if (known := self._since.get(before)) is not None:
            return known
        changed = {name: value for name, value in self.whole.items() if before.whole[name] != value}
        for name, rows in self.rows.items():
            if (difference := _difference(before.rows[name], rows)) is not None:
                changed[name] = difference
        text = self._since[before] = _members(changed)
        return text


def _with_said(name: str, adapter: TypeAdapter[Any], value: Any) -> bytes:
    """Serialise a value, with its texts as `said`, for the page to make its language of them."""
    row, said = adapter.dump_json(value), problem_texts(value) if name == "problems" else texts_in(value)
    return b'%b,"said":%b}' % (row[:-1], _TEXTS.dump_json(said)) if said and row.endswith(b"}") else row


def _difference(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes | None:
    put = [row for key, row in after.items() if before.get(key) != row]
    keys = None if list(before) == list(after) else _STRINGS.dump_json(list(after))
    if not put and keys is None:
        return None
    return b'{"put":[%b]%b}' % (b",".join(put), b"" if keys is None else b',"keys":' + keys)


def _members(values: Mapping[str, bytes]) -> bytes:
    return b",".join(b'"%b":%b' % (name.encode(), value) for name, value in values.items())


_STRINGS = TypeAdapter(list[str])
_TEXTS = TypeAdapter(dict[str, Any])


@dataclass(frozen=True, slots=True)
class PageSnapshot:
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

    def shown_to(self, viewer: PageViewer) -> ShownSnapshot:
        """Return the parts that the viewer may see, as JSON, which viewers with the same permissions share."""
        site = self._shown.get(viewer.permissions)
        if site is None:
            made = SnapshotJson.of(self.snapshot.visible_to(viewer.permissions))
            others = {name: value for name, value in made.whole.items() if name != "user"}
            site = self._shown[viewer.permissions] = SnapshotJson(others, made.rows)
        return ShownSnapshot(site, viewer.json)


@dataclass(frozen=True, slots=True)
class ShownSnapshot:
    """A caller's snapshot as JSON: the site, shared with other callers, and the caller's own account."""

    site: SnapshotJson
    user: bytes

    def all(self) -> bytes:
        """Return the whole snapshot, as a JSON object without its braces."""
        return b"%b,%b" % (self.site.all(), self.user)

    def since(self, before: ShownSnapshot) -> bytes:
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
        self._last: PageSnapshot | None = None
        self._last_at = float("-inf")

    async def look(self) -> PageSnapshot:
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
            self._last = PageSnapshot(version=version, snapshot=await self._take(), ahead=self._wall_times.ahead())
            self._last_at = self._context.clock.monotonic()
            return self._last

    async def after(self, look: PageSnapshot) -> PageSnapshot:
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


class Live(Family):
    """The handlers of `/status/now`, a snapshot, and `/status/live`, a snapshot followed by changes.

    Changes are sent at most four times a second, and a heartbeat at least every 2 s. Every 10 s the session is checked
    again, so that a stream ends with its session. An open page counts as use of the session.
    """

    def __init__(self, context: InterfaceContext) -> None:
        super().__init__(context)
        self._watch = Watch(context)
        self._open = 0
        self._closing = False

    async def close(self) -> None:
        """End every stream, so that the server need not wait for them."""
        self._closing = True
        self._watch.wake()

    @operation("GET", "/status/live", SIGNED_IN, "snapshot")
    async def _live(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        if self._open >= _MOST_STREAMS:
            raise RequestRefused(503, text("refused.too_many_pages"), headers={"Retry-After": "10"})
        self._open += 1
        try:
            look = await self._watch.look()  # before the answer begins, while an error can still be sent
            response = web.StreamResponse(headers=_HEADERS)
            await response.prepare(request)
            await self._until_end(request, response, look, caller)
        finally:
            self._open -= 1
        return response

    @operation("GET", "/status/now", SIGNED_IN, "snapshot")
    async def _now(self, caller: Caller) -> web.StreamResponse:
        look = await self._watch.look()
        shown = b'{"success":true,"snapshot":{"now":%b,%b}}' % (
            self._moment(look),
            look.shown_to(PageViewer.of(caller)).all(),
        )
        return web.Response(body=shown, content_type="application/json")

    async def _until_end(
        self, request: web.Request, response: web.StreamResponse, look: PageSnapshot, caller: Caller
    ) -> None:
        try:
            await self._follow(request, response, look, caller)
        except (TimeoutError, ConnectionError):
            _drop(request)
        except StoreError as error:
            log.info("live_stream_ended", reason=str(error))
        except Exception:  # too late for an error envelope, so log it and cut the stream; the page reconnects
            log.exception("live_stream_failed")
            _drop(request)

    async def _follow(
        self, request: web.Request, response: web.StreamResponse, look: PageSnapshot, caller: Caller
    ) -> None:
        """Send changes until the client leaves, the session ends, or the gateway stops."""
        sent: ShownSnapshot | None = None
        viewer = PageViewer.of(caller)
        checked = wrote = self.context.clock.monotonic()
        await _write(response, b"retry: 1000\n\n")
        while not self._closing and not _gone(request):
            shown = look.shown_to(viewer)
            text = shown.all() if sent is None else shown.since(sent)
            now = self.context.clock.monotonic()
            if text:
                name = b"snapshot" if sent is None else b"change"
                await _write(response, b'event: %b\ndata: {"now":%b,%b}\n\n' % (name, self._moment(look), text))
                sent, wrote = shown, now
            elif now - wrote >= _SPEAK_SECONDS:
                # By this heartbeat the page tells a quiet site from a lost connection, and shows how old its data is.
                await _write(response, b'event: here\ndata: {"now":%b}\n\n' % self._moment(look))
                wrote = now
            if now - checked >= CHECK_SECONDS:
                caller = await self.context.auth.sessions.refreshed(caller)
                viewer, checked = PageViewer.of(caller), now
                if not caller.signed_in:
                    await _write(response, _SIGNED_OUT)
                    return
            look = await self._watch.after(look)

    def _moment(self, look: PageSnapshot) -> bytes:
        """Return the present time as the clock was set at the look, so that ages are right when it is set."""
        return json.dumps(iso_utc(int(self.context.clock.monotonic() * 1_000_000) + look.ahead)).encode()


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_SECONDS):
        await response.write(data)


def _gone(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing()


def _drop(request: web.Request) -> None:
    """Cut the connection without sending the rest of the buffer, because the client does not read it."""
    if request.transport is not None:
        request.transport.abort()
