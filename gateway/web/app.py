"""The application: every operation of the catalogue bound to its handler, behind one door; and serving it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from zoneinfo import ZoneInfo

from aiohttp import web

from gateway.clock import Clock
from gateway.domain.errors import ConfigError
from gateway.lanes.board import AreaBoard, Board
from gateway.site.models import Site
from gateway.store import Store
from gateway.web.accounts import Accounts
from gateway.web.admission import Admission, Route, errors_as_envelopes
from gateway.web.bodies import LARGEST_BODY
from gateway.web.catalogue import OPERATIONS
from gateway.web.excel import Excel
from gateway.web.health import Health
from gateway.web.rooms import Central, CentralWrites, DemoCard, Readiness, Recording
from gateway.web.sessions import Sessions
from gateway.web.status.evidence import Evidence
from gateway.web.status.live import Live
from gateway.web.status.page import STATIC, StatusPage
from gateway.web.status.standing import Standing
from gateway.web.status.watch import Watch
from gateway.web.unread import PlainHandler
from gateway.web.usher import Usher
from gateway.web.v1.auth import Auth
from gateway.web.v1.camera_events import CameraEventsFamily
from gateway.web.v1.cameras import Cameras
from gateway.web.v1.devices import Devices
from gateway.web.v1.entries import EntriesFamily
from gateway.web.v1.events import EventsFamily
from gateway.web.v1.whep import CORS, PREFIX, Whep
from gateway.web.view_tokens import ViewTokens

_SHUTDOWN_SECONDS = 5.0
USHER = web.AppKey("usher", Usher)
"""Whoever lets connections in."""
_SECURITY = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self';"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Server": "edge-gateway",
}


def build_app(
    *,
    site: Site,
    store: Store,
    board: Board,
    areas: AreaBoard,
    recording: Recording,
    central: Central | None,
    writes: CentralWrites,
    clock: Clock,
    accounts: Accounts,
    data: Path,
    readiness: Readiness,
    extra_routes: Sequence[Route] = (),
    demo_cards: tuple[DemoCard, ...] = (),
) -> web.Application:
    """The whole interface and the page.

    Args:
        site: the site file.
        store: opened and running.
        board: lanes and devices.
        areas: who is where.
        recording: footage.
        central: None for a site that stands alone.
        writes: how what central also keeps is written.
        clock: both clocks.
        accounts: who may sign in.
        data: the data folder.
        readiness: what is not ready.
        extra_routes: more operations, entered by their own rules.
        demo_cards: what the page offers to present; the route for it is among `extra_routes`.
    """
    release = version("edge-gateway")
    sessions = Sessions(store=store, accounts=accounts, clock=clock, idle_minutes=site.api.session_idle_minutes)
    watch = Watch(
        site=site,
        store=store,
        board=board,
        areas=areas,
        recording=recording,
        central=central,
        clock=clock,
        readiness=readiness,
        version=release,
        demo_cards=demo_cards,
    )
    excel = Excel(zone=ZoneInfo(site.site.timezone))
    tokens = ViewTokens(monotonic=clock.monotonic)
    live = Live(watch=watch, sessions=sessions, clock=clock)
    routes = (
        *Health(readiness=readiness, version=release).routes(),
        *Auth(sessions=sessions).routes(),
        *Devices(site=site, store=store, board=board, writes=writes).routes(),
        *EntriesFamily(site=site, store=store, writes=writes, clock=clock, excel=excel).routes(),
        *EventsFamily(store=store, zone=ZoneInfo(site.site.timezone)).routes(),
        *Cameras(store=store, recording=recording, tokens=tokens).routes(),
        *Whep(viewing=recording.viewing, tokens=tokens, ice_servers=site.live.ice_servers).routes(),
        *CameraEventsFamily(store=store, recording=recording).routes(),
        *StatusPage().routes(),
        *Evidence(store=store, recording=recording, folder=data, site_name=site.site.name, clock=clock).routes(),
        *Standing(store=store, board=board, areas=areas).routes(),
        *live.routes(),
    )
    if Counter(route.operation for route in routes) != Counter(OPERATIONS):
        raise AssertionError("every operation of the catalogue has exactly one handler")
    return _assembled((*routes, *extra_routes), Admission(sessions=sessions), live, Usher(clock=clock))


def _assembled(routes: Sequence[Route], admission: Admission, live: Live, usher: Usher) -> web.Application:
    app = web.Application(middlewares=[usher.asking, errors_as_envelopes], client_max_size=LARGEST_BODY)
    app[USHER] = usher
    for route in routes:
        operation, handler = route.operation, admission.entered(route)
        if operation.method == "GET":
            app.router.add_get(operation.path, handler, allow_head=operation.head)
        else:
            app.router.add_route(operation.method, operation.path, handler)
    app.router.add_get("/status", _to_page)
    app.router.add_static("/status/static", STATIC)
    app.on_response_prepare.append(_secure)

    async def close_streams(_: web.Application) -> None:
        await live.close()

    app.on_shutdown.append(close_streams)
    return app


async def serve(app: web.Application, *, host: str, port: int, started: Callable[[int], None]) -> None:
    """Serve until cancelled, then let requests end for at most 5 s.

    At most 256 connections are held, so that clients cannot use up the files that lanes and the store need (`usher`).

    Args:
        app: from `build_app`.
        host: address to listen on.
        port: 0 takes a free one.
        started: called once with the port in use.

    Raises ConfigError when the address cannot be had.
    """
    runner = web.AppRunner(
        app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_SECONDS, lingering_time=_SHUTDOWN_SECONDS
    )
    await runner.setup()
    try:
        listening = await _listen(app, runner, host, port)
        try:
            started(listening.sockets[0].getsockname()[1])
            await app[USHER].run()
        finally:
            listening.close()
    finally:
        await runner.cleanup()


async def _listen(app: web.Application, runner: web.AppRunner, host: str, port: int) -> asyncio.Server:
    if runner.server is None:
        raise AssertionError("the runner was set up")
    loop = asyncio.get_running_loop()
    answering = partial(
        PlainHandler,
        runner.server,
        loop=loop,
        headers=_SECURITY,
        access_log=None,
        lingering_time=_SHUTDOWN_SECONDS,
    )
    try:
        return await loop.create_server(app[USHER].door(answering), host, port)
    except OSError as error:
        raise ConfigError(f"cannot serve on {host} port {port}: {error.strerror}") from error


async def _to_page(_: web.Request) -> web.StreamResponse:
    raise web.HTTPMovedPermanently("/status/")


async def _secure(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(_SECURITY)
    if request.path.startswith(PREFIX):
        response.headers.update(CORS)
    if request.path.startswith("/status/static/"):
        response.headers["Cache-Control"] = "no-cache"
