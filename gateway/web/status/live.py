"""The page's stream of changes, as server-sent events. A client that reads too slowly is cut off; it reconnects."""

from __future__ import annotations

import asyncio
import json

import structlog
from aiohttp import web

from gateway.domain.errors import StoreError
from gateway.runtime.clock import iso_utc
from gateway.web.auth.callers import Caller
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import SIGNED_IN
from gateway.web.status.updates import Look, Shown, Viewer, Watch

log = structlog.get_logger(__name__)

_MOST_STREAMS = 64
WRITE_SECONDS = 5.0
CHECK_SECONDS = 10.0
_SPEAK_SECONDS = 1.9  # just below 2 s, so that each look, which comes every 2 s at least, sends something
_HEADERS = {"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_SIGNED_OUT = b"event: signed-out\ndata: {}\n\n"


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
            raise RequestRefused(503, "too many pages are open; close one", headers={"Retry-After": "10"})
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
            look.shown_to(Viewer.of(caller)).all(),
        )
        return web.Response(body=shown, content_type="application/json")

    async def _until_end(self, request: web.Request, response: web.StreamResponse, look: Look, caller: Caller) -> None:
        try:
            await self._follow(request, response, look, caller)
        except (TimeoutError, ConnectionError):
            _drop(request)
        except StoreError as error:
            log.info("live_stream_ended", reason=str(error))
        except Exception:  # too late for an error envelope, so log it and cut the stream; the page reconnects
            log.exception("live_stream_failed")
            _drop(request)

    async def _follow(self, request: web.Request, response: web.StreamResponse, look: Look, caller: Caller) -> None:
        """Send changes until the client leaves, the session ends, or the gateway stops."""
        sent: Shown | None = None
        viewer = Viewer.of(caller)
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
                viewer, checked = Viewer.of(caller), now
                if not caller.signed_in:
                    await _write(response, _SIGNED_OUT)
                    return
            look = await self._watch.after(look)

    def _moment(self, look: Look) -> bytes:
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
