"""The client of the central service: one session shared by all, one sign-in at a time, every wait bounded."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp
import structlog

from gateway.central.client.answers import (
    AnswerTooLarge,
    CentralDenied,
    CentralFailed,
    CentralSlow,
    JsonObject,
    NeedsSignIn,
    Verdict,
    judge,
    secrets_sent,
)
from gateway.central.client.connections import (
    Connections,
    Method,
    SentFile,
    Trust,
    Upload,
    connector,
    fetch,
    line_words,
)
from gateway.central.client.pace import Pace, Rests, asked_rest
from gateway.central.client.session import LOGOUT, GatewayAccount, GatewaySession
from gateway.central.client.state import CentralState, Permissions, Reach, offset_from, slow_from
from gateway.central.client.unchanged import Fetch, UnchangedLists, is_list
from gateway.domain.errors import CentralRefused, CentralUnavailable
from gateway.runtime.clock import Clock
from gateway.runtime.timings import UsualTime

log = structlog.get_logger(__name__)

Known = Callable[[bytes], JsonObject | None]
"""Return the answer for a body that came before, None for any other."""

_CALLS_AT_ONCE = 4
_PEOPLE_AT_ONCE = 4
LOGOUT_SECONDS = 2.0
_SLOWEST_UPLOAD = 16 * 1024  # bytes in a second
_CONNECT_SECONDS = 4.0
_HOLD_OFF_SECONDS = 10.0


class CentralClient:
    """Client of central's operations, for the gateway's own account and for people.

    Loss and recovery are logged once each, see `Reach`.

    A connection must be open within `connect_seconds`, however long an answer may take: this tells a dead line from a
    slow central. For some seconds after a time-out, calls for people fail at once.
    The gateway's own requests keep to `requests_per_second`; lists and urgent ones go first, those for people too.
    """

    def __init__(
        self,
        *,
        url: str,
        account: GatewayAccount,
        clock: Clock,
        ca_file: str | None = None,
        timeout_seconds: float = 15.0,
        connect_seconds: float = _CONNECT_SECONDS,
        requests_per_second: float | None = None,
    ) -> None:
        self._url = url.rstrip("/")
        self._clock = clock
        self._timeout = timeout_seconds
        self._connect = min(connect_seconds, timeout_seconds)
        self._slots = asyncio.Semaphore(_CALLS_AT_ONCE)
        self._people = asyncio.Semaphore(_PEOPLE_AT_ONCE)
        self.trust = Trust(ca_file)
        self._connections = Connections(
            url=self._url, trust=self.trust, connect_seconds=self._connect, connector=self._connector
        )
        self._silent_until = float("-inf")
        self._rests = Rests(monotonic=clock.monotonic)
        self._pace = Pace(requests_per_second, monotonic=clock.monotonic)
        self._unchanged = UnchangedLists(fetch=self._connections.fetch, monotonic=clock.monotonic)
        self._reach = Reach(clock=clock)
        self.look_wanted = asyncio.Event()
        self._session = GatewaySession(
            account=account,
            exchange=self._post,
            clock=clock,
            central_time=self._central_time,
        )
        self._permissions = Permissions(monotonic=clock.monotonic)
        self._times = UsualTime(limit_seconds=slow_from(timeout_seconds))
        self._state = CentralState()

    @property
    def state(self) -> CentralState:
        """Present state of the line to central."""
        return self._state

    @property
    def received(self) -> int:
        """Number of bytes that answers' bodies had on the line so far, compressed or not."""
        return self._connections.received

    def away(self) -> bool:
        """Return whether central is known not to answer. Never waits. If so, set `look_wanted`, to check it soon."""
        if self._state.reachable is not False:
            return False
        self.look_wanted.set()
        return True

    async def call(
        self,
        method: Method,
        path: str,
        body: JsonObject | None = None,
        *,
        key: str = "",
        known: Known | None = None,
        urgent: bool = False,
    ) -> JsonObject:
        """Call an operation with the gateway's own session, and return its answer, which says success.

        Args:
            method: the operation's method.
            path: its path, from `/v1` on.
            body: its JSON body; none is sent with GET.
            key: sent as `Idempotency-Key`; the same in all attempts to send one record.
            known: returns the answer for a body that came before, which is then not parsed again.
            urgent: a right may have been taken away: it waits for no pace, as lists do.

        Raises:
            CentralUnavailable: no answer within the time-out, or one that is not central's; CentralFailed when central
                itself answered that it failed.
            CentralRefused: central understood and refused; CentralDenied when it refuses the account.
        """

        async def attempt(token: str) -> Verdict:
            fetch = self._unchanged.fetch
            return await self._exchange(method, path, body, key=key, token=token, known=known, fetch=fetch)

        await self._pace.turn(urgent=urgent or is_list(path))
        async with self._slots:
            return self._accepted(await self._through(f"{method} {path}", attempt))

    async def call_for(self, method: Method, path: str, body: JsonObject, *, token: str | None) -> JsonObject:
        """Call an operation for a person, with that person's session at central or none.

        A refusal does not count for the gateway's own account.
        Raises CentralRefused or CentralUnavailable; the latter at once for some seconds after a time-out.
        """
        if self._clock.monotonic() < self._silent_until and self.away():
            raise CentralUnavailable("central was silent a moment ago", operation=f"{method} {path}")
        async with self._people:
            verdict = await self._exchange(method, path, body, key="", token=token)
        if isinstance(verdict, NeedsSignIn):
            verdict = CentralDenied(
                f"{method} {path}: authentication required", status=verdict.status, operation=f"{method} {path}"
            )
        if isinstance(verdict, CentralUnavailable):
            raise self._noted(verdict)
        self._note(reachable=True, error=self._state.last_error if self._state.reachable else "")
        if isinstance(verdict, CentralRefused):
            raise verdict
        return verdict

    async def upload(self, path: str, upload: Upload, *, key: str) -> JsonObject:
        """Send a file and give central's answer. Raises as `call`, and OSError when the file cannot be read.

        A failure does not count as a loss of central: one file proves nothing about central as a whole.
        """

        async def attempt(token: str) -> Verdict:
            return await self._upload(path, upload, key=key, token=token)

        await self._pace.turn()
        async with self._slots:
            verdict = await self._through(f"POST {path}", attempt)
        if isinstance(verdict, CentralRefused | CentralUnavailable):
            raise verdict
        return verdict

    async def _upload(self, path: str, upload: Upload, *, key: str, token: str) -> Verdict:
        operation = f"POST {path}"
        headers = {"SessionID": token, "Idempotency-Key": key}
        seconds = self._timeout + upload.size / _SLOWEST_UPLOAD
        with_file = ExitStack()
        try:
            file = await asyncio.to_thread(lambda: with_file.enter_context(upload.open()))
            try:
                status, raw = await self._send(operation, path, upload, file, headers=headers, seconds=seconds)
            except CentralUnavailable as error:
                raise file.fault or error from None  # central keeps nothing of a file that was cut off
        finally:  # also when this is cancelled while the file is being opened
            await asyncio.to_thread(with_file.close)
        verdict = judge(operation, status, raw, hide=secrets_sent(None, token))
        return self._rests.noted(operation, verdict, status=status)

    async def _send(
        self,
        operation: str,
        path: str,
        upload: Upload,
        file: SentFile,
        *,
        headers: dict[str, str],
        seconds: float,
    ) -> tuple[int, bytes]:
        try:
            async with asyncio.timeout(seconds):
                return await self._connections.fetch("POST", path, upload.form(file), headers)
        except aiohttp.ConnectionTimeoutError as error:
            raise CentralUnavailable(self._no_connection, operation=operation, sent=False) from error
        except aiohttp.ClientConnectorError as error:
            raise CentralUnavailable(self._describe(error), operation=operation, sent=False) from error
        except TimeoutError as error:
            raise CentralUnavailable(f"no answer within {seconds:.0f} s", operation=operation) from error
        except (aiohttp.ClientError, OSError) as error:
            raise CentralUnavailable(self._describe(error), operation=operation) from error

    @property
    def _no_connection(self) -> str:
        return f"no connection within {self._connect:g} s"

    def _describe(self, error: BaseException) -> str:
        return line_words(error, urlsplit(self._url).hostname or self._url)

    async def look(self) -> None:
        """Check that central runs, without a session. Raises CentralUnavailable or CentralRefused if not."""
        verdict = await self._exchange("GET", "/", None, key="", token=None)
        if isinstance(verdict, NeedsSignIn):
            verdict = CentralDenied("GET /: authentication required")
        self._accepted(verdict)

    def missed(self, error: str) -> None:
        """Note that a relayed request did not reach central, and why."""
        self._note(reachable=False, error=error)

    async def close(self) -> None:
        """Sign out, within 2 s, and close the connections. Calls fail from now on."""
        http, token = self._connections.end(), self._session.token
        self._session.token = None
        if http is None:
            return
        try:
            if token is not None:
                async with asyncio.timeout(LOGOUT_SECONDS):
                    await fetch(http, "POST", f"{self._url}{LOGOUT}", {}, {"SessionID": token})
        except (aiohttp.ClientError, OSError, CentralUnavailable) as error:
            known = isinstance(error, CentralUnavailable)
            log.info("central_sign_out_failed", error=str(error) if known else self._describe(error))
        finally:
            await http.close()

    async def _through(
        self, operation: str, attempt: Callable[[str], Awaitable[Verdict]]
    ) -> JsonObject | CentralRefused | CentralUnavailable:
        """Try with the gateway's session, and once more with a fresh one if it has ended or lacks a permission.

        If a fresh session lacks the permission too, the operation is shown as not permitted. Its later calls use the
        session as it is; a fresh sign-in is tried again only after a while. Raises CentralBusy while the operation
        rests, and CentralUnavailable while all do.
        """
        self._rests.check(operation)
        token = self._session.token or await self._enter()
        verdict = await attempt(token)
        if isinstance(verdict, NeedsSignIn):
            token = await self._enter(stale=token)
            verdict = await attempt(token)
            if isinstance(verdict, NeedsSignIn):
                return CentralDenied(
                    f"{operation}: authentication required, also right after a sign-in", operation=operation
                )
        if isinstance(verdict, CentralDenied) and self._permissions.may_sign_in_for(operation):
            try:
                token = await self._enter(stale=token, ends_stale=True)
            except (CentralRefused, CentralUnavailable) as error:
                log.info("permissions_not_renewed", error=str(error))
            else:
                verdict = await attempt(token)
        if isinstance(verdict, NeedsSignIn):
            return CentralFailed("central forgot the session at once", operation=operation)
        self._permissions.note(operation, verdict)
        if self._permissions.denied != self._state.not_permitted:
            self._state = replace(self._state, not_permitted=self._permissions.denied)
        return verdict

    async def _enter(self, *, stale: str | None = None, ends_stale: bool = False) -> str:
        try:
            token = await self._session.enter(stale=stale, ends_stale=ends_stale)
        except (CentralRefused, CentralUnavailable) as error:
            if isinstance(error, CentralUnavailable):
                error.sent = False  # the request that needs the session was not sent
            if not ends_stale:
                refused = str(error) if isinstance(error, CentralRefused) else ""
                self._state = replace(self._state, sign_in_refused=refused)
            raise self._noted(error) from error
        self._state = replace(self._state, signed_in_at=self._session.signed_in_at, sign_in_refused="")
        return token

    async def _post(self, path: str, body: JsonObject, token: str | None) -> Verdict:
        """Post a body for the session; return errors of the line instead of raising them."""
        try:
            return await self._exchange("POST", path, body, key="", token=token)
        except CentralUnavailable as error:
            return error

    def _central_time(self) -> float:
        """Return central's time in seconds since 1970, as far as its clock is known."""
        offset = self._state.clock_offset
        return self._clock.wall().micros / 1_000_000 + (offset.seconds if offset else 0)

    async def _exchange(
        self,
        method: Method,
        path: str,
        body: JsonObject | None,
        *,
        key: str,
        token: str | None,
        known: Known | None = None,
        fetch: Fetch | None = None,
    ) -> Verdict:
        """Send one request, by `fetch` if given, and judge its answer."""
        operation = f"{method} {path}"
        headers = {"SessionID": token} if token else {}
        if key:
            headers["Idempotency-Key"] = key
        began = self._clock.monotonic()
        rest: float | None = None

        def on_headers(answered: Mapping[str, str]) -> None:
            nonlocal rest
            rest = asked_rest(answered)
            took = self._clock.monotonic() - began
            self._times.took(took)
            if self._times.slow_seconds != self._state.slow_answers:
                self._state = replace(self._state, slow_answers=self._times.slow_seconds)
            offset = offset_from(answered, wall=self._clock.wall(), took=took)
            if offset is not None and offset.says_more_than(self._state.clock_offset):
                self._state = replace(self._state, clock_offset=offset)

        with self._line_faults(operation):
            async with asyncio.timeout(self._timeout):
                await self._connections.open()
                began = self._clock.monotonic()
                fetch = fetch or self._connections.fetch
                status, raw = await fetch(method, path, body, headers, on_headers=on_headers)
        if known is not None and status == HTTPStatus.OK and (answer := known(raw)) is not None:
            return answer
        verdict = judge(operation, status, raw, hide=secrets_sent(body, token))
        return self._rests.noted(operation, verdict, status=status, seconds=rest)

    @contextmanager
    def _line_faults(self, operation: str) -> Iterator[None]:
        """Inside this context, note each fault of the line, and raise it as CentralUnavailable or TooLarge."""
        try:
            yield
        except aiohttp.ConnectionTimeoutError as error:
            away = CentralUnavailable(self._no_connection, operation=operation, sent=False)
            raise self._on_time_out(away) from error
        except TimeoutError as error:
            raise self._on_time_out(
                CentralSlow(f"no answer within {self._timeout:g} s", operation=operation)
            ) from error
        except aiohttp.ClientConnectorError as error:
            raise self._noted(CentralUnavailable(self._describe(error), operation=operation, sent=False)) from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._noted(CentralUnavailable(self._describe(error), operation=operation)) from error
        except AnswerTooLarge as error:
            raise self._noted(AnswerTooLarge(str(error), operation=operation)) from error
        except CentralUnavailable as error:
            raise self._noted(CentralUnavailable(error.why, operation=operation)) from error

    def _connector(self, tls: ssl.SSLContext | None) -> aiohttp.BaseConnector:
        """Make the connector for new connections."""
        return connector(tls, at_once=_CALLS_AT_ONCE + _PEOPLE_AT_ONCE + 1)

    def _accepted(self, verdict: JsonObject | CentralRefused | CentralUnavailable) -> JsonObject:
        """Return the object of a verdict or raise its error, and note either in the state."""
        if isinstance(verdict, CentralRefused | CentralUnavailable):
            raise self._noted(verdict)
        self._note(reachable=True, error="")
        return verdict

    def _on_time_out(self, error: CentralUnavailable) -> CentralRefused | CentralUnavailable:
        """Note a time-out, so that the next caller does not wait as long."""
        self._silent_until = self._clock.monotonic() + _HOLD_OFF_SECONDS
        return self._noted(error)

    def _noted(self, error: CentralRefused | CentralUnavailable) -> CentralRefused | CentralUnavailable:
        if isinstance(error, CentralRefused | CentralFailed):
            self._note(reachable=True, error=str(error))
        else:
            self._note(reachable=False, error=error.why)
        return error

    def _note(self, *, reachable: bool, error: str) -> None:
        self._state = self._reach.noted(self._state, reachable=reachable, error=error)
