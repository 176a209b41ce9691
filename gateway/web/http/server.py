"""The HTTP server: routes behind their permission rules, headers of every answer, and an orderly shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler as RawHandler

from drivers.listening.http import HttpListener, HttpPlaces, PlainHandler
from drivers.listening.places import KEEP_ALIVE_SECONDS, Bounds
from drivers.system_messages import system_words
from gateway.domain.errors import ConfigError
from gateway.runtime.unix_sockets import INTERFACE_SOCKET, listen
from gateway.site.api_section import TlsSection
from gateway.site.certificates import serving_context
from gateway.web.auth.admission import Admission, errors_as_envelopes
from gateway.web.auth.view_tokens import TOKEN
from gateway.web.catalogue import OPERATIONS
from gateway.web.families import Route
from gateway.web.http.bodies import LARGEST_BODY
from gateway.web.http.errors import failure
from gateway.web.operation import Operation
from gateway.web.operations.whep import CORS, PREFIX
from gateway.web.status.live import Live
from gateway.web.status.page_files import VIEW_ADDRESSES, page, page_files

LOOK_SECONDS = 5.0
"""The period of looks for a replaced certificate."""
_Stamp = tuple[tuple[int, int, int], ...]
SHUTDOWN_SECONDS = 5.0
SERVE_AGAIN_SECONDS = 3.0
PLACES = web.AppKey("places", HttpPlaces)
"""The application's places for connections."""
BOUNDS = Bounds(most=256, per_address=128, for_known=48, for_configured=16)
"""The places of the interface; configured are this machine and trusted proxies."""
_AGAIN_SECONDS = "5"
_KEEP_ALIVE = f"timeout={KEEP_ALIVE_SECONDS}"
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
_FOOTAGE = tuple(item.path.partition("{")[0] for item in OPERATIONS if item.view is not None)
_TOKEN_CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "Range, If-Range, If-None-Match, If-Modified-Since, Cache-Control",
    "Access-Control-Expose-Headers": "Accept-Ranges, Content-Length, Content-Range, ETag, Retry-After",
    "Access-Control-Max-Age": "600",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""Headers of every answer to a footage address with a token: a page of any origin may play it without a session."""
log = structlog.get_logger(__name__)

_GROUP_TOO = 0o660


class ServedCertificate:
    """The TLS context of new connections, loaded again when its files change."""

    def __init__(self, tls: TlsSection, context: ssl.SSLContext, stamp: _Stamp) -> None:
        self._tls = tls
        self._stamp = stamp
        self.context = context

    @classmethod
    async def read(cls, tls: TlsSection) -> ServedCertificate:
        """Read certificate and key. Raises ConfigError with one sentence."""
        stamp = await asyncio.to_thread(_stamp_of, tls)
        return cls(tls, await asyncio.to_thread(serving_context, tls), stamp)

    async def run(self) -> None:
        """Look for replaced files until cancelled. While certificate and key do not match, the earlier ones stay."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            stamp = await asyncio.to_thread(_stamp_of, self._tls)
            if stamp == self._stamp:
                continue
            try:
                self.context = await asyncio.to_thread(serving_context, self._tls)
            except ConfigError as error:
                log.warning("certificate_not_replaced", error=str(error))
            else:
                log.info("certificate_replaced", certificate=self._tls.certificate)
            self._stamp = stamp


def _stamp_of(tls: TlsSection) -> _Stamp:
    """Return inode, modification time and size of each file, without missing files, to notice replacements."""
    found = []
    for name in (tls.certificate, tls.key):
        try:
            state = Path(name).stat()
        except OSError:
            continue
        found.append((state.st_ino, state.st_mtime_ns, state.st_size))
    return tuple(found)


def assembled(routes: Sequence[Route], admission: Admission, live: Live, places: HttpPlaces) -> web.Application:
    """Build the application: routes behind their rules, the page's files, error envelopes, and the end of streams."""
    app = web.Application(
        middlewares=[places.asking, errors_as_envelopes, _wrong_addresses], client_max_size=LARGEST_BODY
    )
    app[PLACES] = places
    for route in routes:
        operation, handler = route.operation, admission.guarded(route)
        expected = partial(_expected, operation)
        if operation.method == "GET":
            app.router.add_get(operation.path, handler, allow_head=operation.head, expect_handler=expected)
            if operation.view is not None:
                app.router.add_route("OPTIONS", operation.path, _allow)
        else:
            app.router.add_route(operation.method, operation.path, handler, expect_handler=expected)
    page_files()  # read before anything is served
    app.router.add_get("/status", _to_page)
    for address in VIEW_ADDRESSES:
        app.router.add_get(address, page)
    app.router.add_get("/status/static/{name}", _page_file)
    app.on_response_prepare.append(_secure)

    async def close_streams(_: web.Application) -> None:
        await live.close()

    app.on_shutdown.append(close_streams)
    return app


async def serve(
    app: web.Application,
    *,
    host: str,
    port: int,
    started: Callable[[int], None],
    failed: Callable[[str], None],
    run_folder: Path,
    tls: TlsSection | None = None,
) -> None:
    """Serve until cancelled, then give running requests at most 5 s to end.

    If the port or the certificate cannot be used, that is tried again every 3 s; the local socket is served meanwhile.
    Connections are limited (`drivers.listening.places`), so that clients cannot use up the file descriptors that
    lanes and the store need.

    Args:
        app: from `Interface.build`.
        host: address to listen on.
        port: port to listen on; 0 takes a free one.
        started: called with the port in use.
        failed: called with a sentence that says why the port is not served.
        run_folder: the folder of the local socket.
        tls: the certificate's files, for HTTPS.
    """
    runner = web.AppRunner(
        app, access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN_SECONDS, lingering_time=SHUTDOWN_SECONDS
    )
    await runner.setup()
    answering = _answering(runner)
    try:
        async with served_locally(answering, run_folder):
            while True:
                try:
                    certificate = None if tls is None else await ServedCertificate.read(tls)
                    listener = HttpListener(places=app[PLACES], answering=answering, certificate=certificate)
                    await listener.run(host=host, port=port, started=started)
                except ConfigError as error:
                    failed(str(error))
                except OSError as error:
                    failed(f"cannot serve on {host} port {port}: {system_words(error)}")
                await asyncio.sleep(SERVE_AGAIN_SECONDS)
    finally:
        await runner.cleanup()


def _answering(runner: web.AppRunner) -> Callable[[], PlainHandler]:
    """Return a factory of connection handlers."""
    if runner.server is None:
        raise AssertionError("the runner was set up")
    return partial(
        PlainHandler,
        runner.server,
        loop=asyncio.get_running_loop(),
        headers=_SECURITY,
        access_log=None,
        lingering_time=SHUTDOWN_SECONDS,
        auto_decompress=False,  # a small body may inflate to gigabytes and block the loop
    )


async def _allow(_: web.Request) -> web.StreamResponse:
    """Answer a CORS preflight: a page of another origin wants to play footage by an address with a token."""
    return web.Response(status=204, headers={"Allow": "GET, HEAD, OPTIONS"})


async def _page_file(request: web.Request) -> web.StreamResponse:
    """Answer with a file of the page."""
    file = page_files().get(request.match_info["name"])
    if file is None:
        raise web.HTTPNotFound
    return file.answer(request)


async def _expected(operation: Operation, request: web.Request) -> web.StreamResponse | None:
    """Answer `Expect: 100-continue` with 100, unless the body will be refused for its length."""
    bounded = operation.body is not None or operation.signs_in
    if bounded and (request.content_length or 0) > LARGEST_BODY:
        return None
    if request.headers["Expect"].lower() != "100-continue":
        return failure(
            status=417, error="the gateway knows no expectation but 100-continue", resource=operation.resource
        )
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    request.writer.output_size = 0  # the interim answer does not count: none of the answer was sent
    return None


@web.middleware
async def _wrong_addresses(request: web.Request, handler: RawHandler) -> web.StreamResponse:
    """Redirect a browser that opens an unknown address under `/status/` to that address without slash, or the start.

    Programs, which do not ask for HTML, get 404 in the envelope.
    """
    try:
        return await handler(request)
    except web.HTTPNotFound as error:
        is_visit = request.method == "GET" and "text/html" in request.headers.get("Accept", "")
        if not is_visit or not request.path.startswith("/status/") or request.path.startswith("/status/static/"):
            raise
        typed = request.rel_url.raw_path
        raise web.HTTPSeeOther(typed.rstrip("/") if typed.endswith("/") else "/status/?unknown") from error


async def _to_page(_: web.Request) -> web.StreamResponse:
    raise web.HTTPMovedPermanently("/status/")


async def _secure(request: web.Request, response: web.StreamResponse) -> None:
    headers, path = response.headers, request.path
    own_policy = headers.get("Content-Security-Policy")
    headers.update(_SECURITY)
    if own_policy is not None:
        headers["Content-Security-Policy"] = own_policy
    if request.keep_alive and response.keep_alive is not False:
        headers["Keep-Alive"] = _KEEP_ALIVE
    if response.status == 503:
        headers.setdefault("Retry-After", _AGAIN_SECONDS)
    if path.startswith(PREFIX):
        headers.update(CORS)
    if path.startswith(_FOOTAGE) and TOKEN in request.query:
        headers.update(_TOKEN_CORS)
    if path.startswith("/status/static/"):
        headers["Cache-Control"] = "no-cache"


@asynccontextmanager
async def served_locally(handler: Callable[[], asyncio.Protocol], run_folder: Path) -> AsyncIterator[None]:
    """Serve on the local Unix socket for as long as the context lasts.

    It has the whole interface for root, and for members of the group that the gateway runs as. If the socket cannot be
    made, that is logged and nothing else happens.
    """
    path = run_folder / INTERFACE_SOCKET
    try:
        end = listen(path, mode=_GROUP_TOO)
    except OSError as error:
        log.warning("local_socket_not_served", error=error.strerror or str(error))
        yield
        return
    server = await asyncio.get_running_loop().create_unix_server(handler, sock=end)
    try:
        yield
    finally:
        server.close()
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
