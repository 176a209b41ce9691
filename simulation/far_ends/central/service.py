"""The simulated central over HTTP: sign-in, sessions, envelopes, faults, and the operations."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import formatdate
from pathlib import Path

from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.runtime.clock import Clock, Stamp
from gateway.web.operation import Operation as Relayed
from gateway.web.relayed import OPERATIONS as RELAYED
from simulation.far_ends.central.accounts import CentralAccount, Sessions
from simulation.far_ends.central.answers import AUTHENTICATION_REQUIRED, Call, JsonObject, Refusal, failure
from simulation.far_ends.central.camera_operations import EVIDENCE, EVIDENCE_PERMISSION, take_evidence
from simulation.far_ends.central.control import Control
from simulation.far_ends.central.faults import Faults
from simulation.far_ends.central.misbehaviour import CutOff, Misbehaviour
from simulation.far_ends.central.office import UPLOAD, Office, refusal_of
from simulation.far_ends.central.operations import Operation, operations
from simulation.far_ends.central.record_counts import RecordCounts, record_counts
from simulation.far_ends.central.sign_in import SignInRoutes
from simulation.far_ends.central.tables import Tables, save

_MOST_ANSWERS = 200_000

_MOST_REQUESTS = 100_000
_SAVE_SECONDS = 1.0
_BODY_LIMIT = 1024 * 1024


OnWrite = Callable[[Call], None]
"""A function that is called with each write that was carried out."""


class IdempotencyKeys:
    """The answers to earlier writes, by idempotency key. Without `honoured` nothing is remembered."""

    def __init__(self, *, honoured: bool) -> None:
        self.honoured = honoured
        self._answers: OrderedDict[tuple[str, str], tuple[bytes, JsonObject]] = OrderedDict()

    def answered(self, operation: str, key: str, body: bytes) -> JsonObject | None:
        """Return the earlier answer to a repeated write; None for a new one.

        Raises Refusal (409) when the key came before with another body.
        """
        known = self._answers.get((operation, key))
        if known is None:
            return None
        if known[0] != hashlib.sha256(body).digest():
            raise Refusal(409, "Idempotency-Key: was used for another body")
        return known[1]

    def remember(self, operation: str, key: str, body: bytes, answer: JsonObject) -> None:
        """Keep the answer to a write that was carried out."""
        if self.honoured and key:
            self._answers[operation, key] = (hashlib.sha256(body).digest(), answer)
            while len(self._answers) > _MOST_ANSWERS:
                self._answers.popitem(last=False)


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request that reached central, as answered; status 0 when the answer was cut off."""

    method: str
    path: str
    status: int
    key: str
    body: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """Ways in which services of central differ.

    Attributes:
        honours_keys: whether a create that is repeated with its `Idempotency-Key` gets the same answer and is not
            carried out again. The real interface does not promise that.
        unchanged_status: with 304, or 412 for POST by the letter of RFC 9110, lists have an ETag, and one whose ETag
            the request names in `If-None-Match` is answered with that status and without a body.
        compresses: whether answers are sent as gzip to those who take that.
    """

    honours_keys: bool = False
    unchanged_status: int = 0
    compresses: bool = False


_PLAIN = Dialect()


class Central:
    """The simulated central service.

    Tables stay in memory over stop and start. With `data` they are also kept in a JSON file, written at most once a
    second while records change and when the service stops.

    Attributes:
        tables: the records; tests and seeds write here.
        requests: the received requests, the newest last, without the bodies of sign-ins.
        asked: the number of answers with 200, by operation.
        answered: the number of all requests.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        accounts: Sequence[CentralAccount],
        faults: Faults | None = None,
        data: Path | None = None,
        page_cap: int = 500,
        session_seconds: float = 3600.0,
        dialect: Dialect = _PLAIN,
        on_write: OnWrite | None = None,
    ) -> None:
        """Prepare the service; `start` serves."""
        self._clock = clock
        self._data = data
        self.sessions = Sessions(clock=clock, accounts=tuple(accounts), lifetime=session_seconds)
        self.sign_in = SignInRoutes(sessions=self.sessions, url=lambda: self.url)
        self.unchanged_status = dialect.unchanged_status
        self._compresses = dialect.compresses
        self._on_write = on_write
        self.keys = IdempotencyKeys(honoured=dialect.honours_keys)
        self._misbehaviour = Misbehaviour(faults or Faults(), end_session=self.sign_in.end_session)
        self._runner: web.AppRunner | None = None
        self._host, self._port = "", 0
        self._tls = False
        self._saved_at = float("-inf")
        self._saving = asyncio.Lock()
        self.tables = Tables(page_cap=page_cap)
        self._office = Office(tables=self.tables)
        self.asked: Counter[str] = Counter()
        self.answered = 0
        self.requests: deque[ReceivedRequest] = deque(maxlen=_MOST_REQUESTS)

    @property
    def faults(self) -> Faults:
        """The present faults."""
        return self._misbehaviour.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._misbehaviour = Misbehaviour(faults, end_session=self.sign_in.end_session)

    @property
    def happened(self) -> Mapping[str, int]:
        """The number of requests that each random fault affected since the faults were set."""
        return self._misbehaviour.happened

    def record_counts(self) -> RecordCounts:
        """Count the camera events, entries and evidence held, by the fields that identify them."""
        return record_counts(self.tables)

    @property
    def camera_events(self) -> list[JsonObject]:
        """All accepted camera events, in order; one that was sent twice is listed twice."""
        return list(self.tables.camera_events.values())

    @property
    def entries(self) -> list[JsonObject]:
        """All accepted entries, in order."""
        return list(self.tables.entries.values())

    @property
    def cards(self) -> Mapping[int, JsonObject]:
        """The access cards by id."""
        return self.tables.cards

    @property
    def open_sessions(self) -> int:
        """The number of open sessions."""
        return len(self.sessions)

    @property
    def port(self) -> int:
        """The port in use, or the last one that was."""
        return self._port

    @property
    def url(self) -> str:
        """The base address."""
        return f"{'https' if self._tls else 'http'}://{self._host}:{self._port}"

    def put_account(self, account: CentralAccount) -> None:
        """Add or change an account and end its sessions."""
        self.sessions.put_account(account)

    def expire_sessions(self) -> None:
        """Forget every session."""
        self.sessions.expire_all()

    async def start(self, *, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None) -> None:
        """Serve on a port; 0 takes a free one the first time and the same one again later."""
        if self._data is not None and not self._port:
            await asyncio.to_thread(self.tables.load, self._data)
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port or self._port, ssl_context=tls).start()
        except BaseException:  # the port is taken, or the call was cancelled: clean up what was set up so far
            await runner.cleanup()
            raise
        self._runner = runner
        self._host, self._port, self._tls = host, int(runner.addresses[0][1]), tls is not None

    async def stop(self) -> None:
        """Close the port and every connection; connections are refused from then on."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
            await self._save()

    async def serve_unwired(self) -> Callable[[], asyncio.Protocol]:
        """Serve without a port, until `stop`. Return a function that makes the protocol for a connection."""
        runner = web.AppRunner(self._application(), access_log=None, shutdown_timeout=0.1, handle_signals=False)
        await runner.setup()
        self._runner, self._host = runner, "unwired"
        server = runner.server
        if server is None:
            raise RuntimeError("a runner that was set up has a server")
        return server

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._observe], client_max_size=_BODY_LIMIT)
        app.on_response_prepare.append(self._date)
        app.router.add_get("/", self._alive)
        app.router.add_get("/health/live", self._alive)
        app.router.add_get("/health/ready", self._alive)
        self.sign_in.add_to(app)
        Control(self).add_to(app)
        own = {(operation.method, operation.path) for operation in operations()}
        for operation in operations():
            app.router.add_route(operation.method, operation.path, self._protected(operation))
        app.router.add_post(EVIDENCE, self._evidence)
        for item in self._office.operations():
            if (item.method, item.path) not in own:
                app.router.add_route(item.method, item.path, self._of_the_office(item))
        return app

    async def _evidence(self, request: web.Request) -> web.StreamResponse:
        session = self.sign_in.session_of(request)
        if session is None or not session.complete:
            return web.json_response(failure("evidence", AUTHENTICATION_REQUIRED), status=500)
        if self.faults.deny in EVIDENCE_PERMISSION or not session.account.may(EVIDENCE_PERMISSION):
            message = f"permission denied: {' or '.join(EVIDENCE_PERMISSION)}"
            return web.json_response(failure("evidence", message), status=500)
        key = request.headers.get("Idempotency-Key", "")
        try:
            answer = self.keys.answered(EVIDENCE, key, b"")
            if answer is None:
                answer = await take_evidence(self.tables, request, at=self._now(), key=key)
                self.keys.remember(EVIDENCE, key, b"", answer)
        except Refusal as refusal:
            return web.json_response(failure("evidence", refusal.message), status=refusal.status)
        await self._save_soon()
        return web.json_response(answer)

    def _of_the_office(self, operation: Relayed) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            session = self.sign_in.session_of(request)
            permissions = session.account.permissions if session is not None and session.complete else None
            refused = refusal_of(operation, None if permissions is None else permissions - {self.faults.deny})
            return refused or await self._office.answer(operation, request, self._now())

        return handle

    def _protected(self, operation: Operation) -> Handler:
        async def handle(request: web.Request) -> web.StreamResponse:
            session = self.sign_in.session_of(request)
            if session is None or not session.complete:
                return web.json_response(failure(operation.resource, AUTHENTICATION_REQUIRED), status=500)
            if self.faults.deny in operation.permissions or not session.account.may(operation.permissions):
                message = f"permission denied: {' or '.join(operation.permissions)}"
                return web.json_response(failure(operation.resource, message), status=500)
            call = Call(
                raw=await request.read(),
                session=session,
                at=self._now(),
                key=request.headers.get("Idempotency-Key", ""),
            )
            try:
                _refuse_oddities(request, call.raw)
                answer = self._carried_out(operation, request, call)
            except Refusal as refusal:
                return web.json_response(failure(operation.resource, refusal.message), status=refusal.status)
            if operation.method != "POST":
                await self._save_soon()
            bent = self._misbehaviour.bend_list(request, operation.resource, answer)
            return self._packed(self._tagged(request, web.json_response(bent)))

        return handle

    def _tagged(self, request: web.Request, response: web.Response) -> web.Response:
        if not self.unchanged_status or not request.path.endswith("/list"):
            return response
        tag = f'"{hashlib.sha256(response.body or b"").hexdigest()[:16]}"'  # type: ignore[arg-type]
        if request.headers.get("If-None-Match") == tag:
            response = web.Response(status=self.unchanged_status)
        response.headers["ETag"] = tag
        return response

    def _packed(self, response: web.Response) -> web.Response:
        if self._compresses and response.body:
            response.enable_compression()
        return response

    def _carried_out(self, operation: Operation, request: web.Request, call: Call) -> JsonObject:
        """Carry out an operation and return its answer; a write repeated under its key gets the earlier answer."""
        name = f"{operation.method} {operation.path}"
        if (before := self.keys.answered(name, call.key, call.raw)) is not None:
            return before
        self.tables.shift = self._misbehaviour.shift_of(request)
        try:
            answer = operation.handle(self.tables, call)
        finally:
            self.tables.shift = 0
        if operation.method != "POST":
            self.keys.remember(name, call.key, call.raw, answer)
            if self._on_write is not None:
                self._on_write(call)
        return answer

    @web.middleware
    async def _observe(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        status, body = 0, ""
        try:
            unread = request.path.startswith("/v1/auth/") or request.path in (UPLOAD, EVIDENCE)
            if not unread and request.can_read_body:
                body = (await request.read()).decode("utf-8", "replace")
            response = await self._misbehaviour.around(request, handler)
            status = 0 if isinstance(response, CutOff) else response.status
        except ConnectionError:
            return CutOff()  # whoever asked is gone
        except web.HTTPException as error:
            status = error.status
            return web.json_response(failure(_resource(request), error.reason), status=error.status)
        finally:
            key = request.headers.get("Idempotency-Key", "")
            self.asked[f"{request.method} {request.path}"] += status == 200
            self.answered += 1
            self.requests.append(ReceivedRequest(request.method, request.path, status, key, body))
        return response

    def _now(self) -> Stamp:
        """Return the time on central's clock."""
        stamp = self._clock.wall()
        return replace(stamp, micros=stamp.micros + int(self.faults.clock_skew_seconds * 1_000_000))

    async def _date(self, _: web.Request, response: web.StreamResponse) -> None:
        response.headers["Date"] = formatdate(self._now().micros / 1_000_000, usegmt=True)

    async def _alive(self, _: web.Request) -> web.StreamResponse:
        return web.json_response({"success": True, "name": "site operations", "version": "2.0.0", "error": None})

    async def _save_soon(self) -> None:
        if self._clock.monotonic() - self._saved_at >= _SAVE_SECONDS:
            await self._save()

    async def _save(self) -> None:
        if self._data is None:
            return
        async with self._saving:
            self._saved_at = self._clock.monotonic()
            await asyncio.to_thread(save, self._data, self.tables.snapshot())


def _resource(request: web.Request) -> str:
    """Return the name that the requested operation gives its resource."""
    there = request.match_info.route.resource
    path = "" if there is None else there.canonical
    own = (item.resource for item in operations() if (item.method, item.path) == (request.method, path))
    relayed = (item.resource for item in RELAYED if (item.method, item.path) == (request.method, path))
    return next(own, None) or next(relayed, None) or "data"


def _refuse_oddities(request: web.Request, body: bytes) -> None:
    """Raise Refusal (400) for requests that no client of this interface should send."""
    if request.query_string:
        raise Refusal(400, "an operation takes its fields in the body, not in the address")
    if body and request.content_type != "application/json":
        raise Refusal(400, f"the body must be application/json, not {request.content_type}")
