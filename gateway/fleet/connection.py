"""The connection to the fleet: one owned task that connects, runs the parts that use the line, and connects again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Protocol

import structlog
from nats import errors as nats_errors
from nats.aio.client import Client, RawCredentials
from nats.aio.msg import Msg

from gateway.domain.errors import StoreError
from gateway.domain.server_lines import ConnectionState, FleetStatus
from gateway.fleet.line import FleetAway, FleetLine, FleetRefused, SubjectMoved
from gateway.fleet.names import FleetName
from gateway.runtime.clock import Clock, WallTimes
from gateway.runtime.connection_faults import connection_words
from gateway.runtime.supervision import Backoff, heeding_cancellation
from gateway.site import is_jwt_file, is_seed

log = structlog.get_logger(__name__)

_CONNECT_SECONDS = 10
_CLOSE_SECONDS = 2.0
_PING_SECONDS = 20
_UNANSWERED_PINGS = 2
_DISK_SECONDS = 5.0
_LEAST_LIFE = 30.0
_TLS = "tls"
_STUMBLED = "what answers there is no NATS server, or the credentials are damaged"
LOST = "the connection is lost"
_FAULT = "a fault of the gateway in {part} ({error}): the log tells more; report it with a support bundle"
_REFUSALS = (
    "authorization violation",
    "authentication",
    "user authentication",
    "account",
    "permissions",
    "credentials",
)


class FleetPart(Protocol):
    """A user of the line, such as the sender of events."""

    @property
    def name(self) -> str:
        """Its name in the log."""
        ...

    async def run(self, line: FleetLine, works: Callable[[], None]) -> None:
        """Use the line until cancelled. Call `works` once the server has accepted what the part needs.

        Raises FleetAway, FleetRefused, SubjectMoved, StoreError.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetServer:
    """Address of a server, and the credentials for it.

    `credentials`: an NKey seed, the text of a JWT credentials file, or "". `name`: what the server calls
    the client. `inbox`: how the subjects begin on which it gets answers; its rights may be limited to them.
    """

    url: str
    credentials: str = field(repr=False)
    ca_file: str | None
    name: str
    inbox: str = "_INBOX"

    @property
    def is_jwt(self) -> bool:
        """True if the credentials are the text of a JWT credentials file."""
        return is_jwt_file(self.credentials)


class FleetConnection:
    """The line to the fleet, and its state. Keep `run` alive as a task."""

    def __init__(
        self,
        *,
        servers: Sequence[FleetServer],
        name: FleetName,
        parts: Sequence[FleetPart],
        clock: Clock,
        changed: Callable[[], None],
        backoff: Backoff | None = None,
    ) -> None:
        """Build it without contact. `changed` is called when the state changes."""
        self._servers = cycle(servers)
        self._parts = parts
        self._clock = clock
        self._changed = changed
        self._backoff = backoff or Backoff(first=1.0, longest=60.0, spread=4.0)
        self._refusals: dict[str, str] = {}
        self._wall_times = WallTimes(clock)
        self._since = clock.monotonic()
        self._status = FleetStatus(state=None, since=self._wall_times.of(self._since), name=str(name))

    def status(self) -> FleetStatus:
        """Return the state of the line. Never waits."""
        return replace(self._status, since=self._wall_times.of(self._since))

    async def run(self) -> None:
        """Connect, serve, and connect again, until cancelled. The waits between tries have jitter."""
        failures = 0
        while True:
            server, began = next(self._servers), self._clock.monotonic()
            try:
                await self._serve(server)
            except FleetRefused as error:
                self._tell(ConnectionState.REFUSED, str(error))
            except FleetAway as error:
                self._tell(ConnectionState.AWAY, str(error))
            failures = 1 if self._clock.monotonic() - began > _LEAST_LIFE else failures + 1
            await asyncio.sleep(self._backoff.wait(failures))

    async def _serve(self, server: FleetServer) -> None:
        """Connect to a server and run the parts. Raises FleetAway, FleetRefused when the connection ends."""
        self._status = replace(self._status, server=server.url.partition("://")[2])
        async with connected(server) as (line, lost):
            self._refusals.clear()
            self._tell(ConnectionState.CONNECTED, "")
            async with asyncio.TaskGroup() as group:
                tasks = [
                    group.create_task(self._kept(part, line, lost), name=f"fleet-{part.name}") for part in self._parts
                ]
                await lost.wait()
                for task in tasks:
                    task.cancel()
            raise lost.reason

    async def _kept(self, part: FleetPart, line: FleetLine, lost: ConnectionEnd) -> None:
        """Run a part, and again after a refusal, until the line is lost."""
        failures = 0

        def works() -> None:
            nonlocal failures
            failures = 0
            if self._refusals.pop(part.name, None) is not None:
                self._tell_refusals()

        while True:
            failures += 1
            try:
                await part.run(line, works)
            except FleetAway as error:
                lost.set(error)
                return
            except FleetRefused as error:
                self._refusals[part.name] = str(error)
                self._tell_refusals()
            except SubjectMoved as error:
                log.info("fleet_subject_moved", part=part.name, error=str(error))
            except StoreError as error:
                log.debug("fleet_waits_for_disk", part=part.name, error=str(error))  # the store reports its own failure
                await asyncio.sleep(_DISK_SECONDS)
            except Exception as error:  # whatever others sent: it must not end the other parts, and people must know
                log.exception("fleet_part_failed", part=part.name)
                self._refusals[part.name] = _FAULT.format(part=part.name, error=type(error).__name__)
                self._tell_refusals()
            await asyncio.sleep(self._backoff.wait(failures))

    def _tell_refusals(self) -> None:
        if self._refusals:
            self._tell(ConnectionState.REFUSED, "; ".join(dict.fromkeys(self._refusals.values())))
        else:
            self._tell(ConnectionState.CONNECTED, "")

    def _tell(self, state: ConnectionState, reason: str) -> None:
        before = self._status
        if (before.state, before.reason) == (state, reason):
            return
        if before.state is not state:
            self._since = self._clock.monotonic()
        self._status = replace(before, state=state, reason=reason)
        log.info("fleet_line", state=state.value, server=self._status.server, reason=reason)
        self._changed()


class ConnectionEnd:
    """The end of a connection, with its reason."""

    def __init__(self) -> None:
        self.reason: FleetAway | FleetRefused = FleetAway(LOST)
        self._lost = asyncio.Event()

    def set(self, reason: FleetAway | FleetRefused) -> None:
        """End the connection; the first reason counts."""
        if not self._lost.is_set():
            self.reason = reason
            self._lost.set()

    async def wait(self) -> None:
        """Wait for the end."""
        await self._lost.wait()


class _Client(Client):
    """The library's client, which refuses a server without TLS before it tells it who it is.

    The library itself leaves it to the server's first, unencrypted line whether there is TLS. It also ends a connection
    over a subject or a header that is no text; a stream would then end every connection that reads that message.
    """

    def _connect_command(self) -> bytes:
        server, info = self._current_server, self._server_info
        if server is not None and server.uri.scheme == _TLS and not info.get("tls_required"):
            raise nats_errors.Error("the server offers no TLS")
        return super()._connect_command()

    async def _process_headers(self, headers: bytes) -> dict[str, str] | None:
        try:
            return await super()._process_headers(headers)
        except (UnicodeError, LookupError):
            return None

    def _build_message(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: dict[str, str] | None
    ) -> Msg:
        readable = subject.decode(errors="replace").encode()
        message: Msg = super()._build_message(sid, readable, reply, data, headers)
        return message


@asynccontextmanager
async def connected(server: FleetServer) -> AsyncIterator[tuple[FleetLine, ConnectionEnd]]:
    """Yield a line to a server, and what tells its end. Raises FleetAway, FleetRefused."""
    client, lost, faults = _Client(), ConnectionEnd(), list[Exception]()
    host = server.url.partition("://")[2].rpartition(":")[0]
    line = FleetLine(client)

    async def failed(error: Exception) -> None:
        faults.append(error)
        if "permissions violation" in str(error).lower():
            line.denied(str(error).removeprefix("nats: "))

    async def closed() -> None:
        error = client.last_error
        lost.set(_translated(error, host) if error is not None else FleetAway(LOST))
        line.lost(lost.reason)

    if server.credentials and not (server.is_jwt or is_seed(server.credentials)):  # the library might read on for ever
        raise FleetRefused("the credentials are neither an NKey seed, SU…, nor the text of a JWT credentials file")
    trust = await asyncio.to_thread(_trust, server) if server.url.startswith(f"{_TLS}://") else None
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            with heeding_cancellation():
                await client.connect(
                    servers=[server.url],
                    name=server.name,
                    inbox_prefix=server.inbox,
                    error_cb=failed,
                    closed_cb=closed,
                    allow_reconnect=False,
                    connect_timeout=_CONNECT_SECONDS,
                    max_reconnect_attempts=1,
                    reconnect_time_wait=0,
                    ping_interval=_PING_SECONDS,
                    max_outstanding_pings=_UNANSWERED_PINGS,
                    tls=trust,
                    user_credentials=RawCredentials(server.credentials) if server.is_jwt else None,
                    nkeys_seed_str=server.credentials.strip() if server.credentials and not server.is_jwt else None,
                )
    except TimeoutError as error:
        await _closed(client)
        raise FleetAway(f"no answer within {_CONNECT_SECONDS} s") from error
    except (nats_errors.Error, OSError) as error:
        await _closed(client)
        raise _translated(faults[-1] if faults else error, host) from error
    except asyncio.CancelledError:
        await _closed(client)
        raise
    except Exception as error:  # the library lets through whatever a greeting or a key makes it stumble over
        log.info("fleet_not_connected", server=host, error=type(error).__name__)  # its words may hold the key
        await _closed(client)
        raise FleetRefused(_STUMBLED) from error
    try:
        yield line, lost
    finally:
        await _closed(client)


async def _closed(client: Client) -> None:
    """Close a client. A connection that does not even take its last bytes is left to the kernel."""
    with suppress(TimeoutError, OSError, nats_errors.Error, AssertionError):  # the last for one that never began
        async with asyncio.timeout(_CLOSE_SECONDS):
            await client.close()


def _trust(server: FleetServer) -> ssl.SSLContext:
    """Read the authorities that the server's certificate is checked against. Raises FleetRefused."""
    try:
        context = ssl.create_default_context(cafile=server.ca_file)
    except OSError as error:
        why = "is not a certificate in PEM form" if isinstance(error, ssl.SSLError) else error.strerror
        raise FleetRefused(f"{server.ca_file} {why}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _translated(error: Exception, host: str) -> FleetAway | FleetRefused:
    """Name an error of the library by the reaction that it needs."""
    text = str(error).removeprefix("nats: ").strip("'\r\n ") or LOST
    if isinstance(error, ssl.SSLCertVerificationError):
        return FleetRefused(f"the server's certificate is not accepted: {error.verify_message}")
    if isinstance(error, OSError):
        return FleetAway(connection_words(error, host))
    if isinstance(error, nats_errors.AuthorizationError) or any(word in text.lower() for word in _REFUSALS):
        return FleetRefused(f"the server refuses the credentials ({text.lower()})")
    if isinstance(error, nats_errors.Error) and "TLS" in text:
        return FleetRefused(text)
    return FleetAway(text.lower())
