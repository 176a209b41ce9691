"""The gateway's own session at central: one sign-in at a time, however many wait for it."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import struct
from collections.abc import Awaitable, Callable
from copy import copy
from dataclasses import dataclass

import structlog

from gateway.central.client.answers import CentralBusy, CentralFailed, JsonObject, NeedsSignIn, SignInRefused, Verdict
from gateway.domain.errors import CentralRefused, CentralUnavailable, StoreError
from gateway.runtime.clock import Clock, Stamp
from gateway.runtime.supervision import Backoff
from gateway.store.cards.rows import Notes

log = structlog.get_logger(__name__)

Exchange = Callable[[str, JsonObject, str | None], Awaitable[Verdict]]
"""Posts a body to a path with a session's token or none, and returns the verdict on the answer."""

LOGIN, MFA, LOGOUT = "/v1/auth/login", "/v1/auth/mfa", "/v1/auth/logout"
STEP_SECONDS = 30
_CLOCK_DOUBT_SECONDS = 1  # central's clock is known to half a second
ON_THE_WAY_SECONDS = 2
_LOGOUT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class GatewayAccount:
    """The gateway's own account at central.

    Attributes:
        username, password: its name and its password.
        totp_secret: base32, of an account that has a second factor.
        used_codes: stores the newest of its codes that was sent; with None it is kept in memory only.
    """

    username: str
    password: str
    totp_secret: str = ""
    used_codes: UsedCodes | None = None


class GatewaySession:
    """Session of the gateway's account, opened on demand; it proves the second factor where the account has one.

    After a refusal, sign-ins pause for half a minute to a minute, longer each time, so that a wrong password does not
    lock the account. A code is never sent twice, not even after a restart: the session waits for the next one.
    """

    def __init__(
        self,
        *,
        account: GatewayAccount,
        exchange: Exchange,
        clock: Clock,
        central_time: Callable[[], float],
        refused_backoff: Backoff | None = None,
    ) -> None:
        """Begin without a session.

        `central_time` returns central's time in seconds since 1970, as far as known.
        """
        self._account = account
        self._exchange = exchange
        self._clock = clock
        self._central_time = central_time
        self._backoff = refused_backoff or Backoff(first=60.0, longest=900.0)
        self._signing_in = asyncio.Lock()
        self._sign_ins = 0
        self._refusals = 0
        self._error: CentralRefused | CentralUnavailable | None = None
        self._left_alone_until = float("-inf")
        self._last_step = -1
        self.token: str | None = None
        self.signed_in_at: Stamp | None = None

    async def enter(self, *, stale: str | None = None, ends_stale: bool = False) -> str:
        """Return a token other than `stale`. Callers that wait for a running sign-in share its outcome.

        `ends_stale`: central may still have the stale session, so end it there. Raises SignInRefused or
        CentralUnavailable.
        """
        asked = self._sign_ins
        async with self._signing_in:
            if self.token is not None and self.token != stale:
                return self.token
            backing_off = self._clock.monotonic() < self._left_alone_until
            if self._error is not None and (self._sign_ins > asked or backing_off):
                raise copy(self._error) from self._error
            before, self._error, self.token = self._error, None, None
            try:
                self.token = await (self._sign_in() if ends_stale else self._only_sign_in())
            except (CentralRefused, CentralUnavailable) as error:
                if isinstance(error, CentralRefused):
                    self._refusals += 1
                    self._left_alone_until = self._clock.monotonic() + self._backoff.wait(self._refusals)
                    if not isinstance(before, CentralRefused):
                        log.warning("central_sign_in_refused", error=str(error))
                self._error = error
                if ends_stale:
                    self.token = stale  # it still works for everything else
                raise
            finally:
                self._sign_ins += 1
            self._refusals = 0
            self.signed_in_at = self._clock.wall()
            if stale is not None and ends_stale:
                await self._end(stale)
            return self.token

    async def _only_sign_in(self) -> str:
        """Sign in where no session works: without one no request can succeed, however central has failed."""
        try:
            return await self._sign_in()
        except CentralBusy:
            raise
        except CentralFailed as error:
            raise CentralUnavailable(error.why, operation=error.operation) from error

    async def _sign_in(self) -> str:
        credentials: JsonObject = {"username": self._account.username, "password": self._account.password}
        verdict = await self._exchange(LOGIN, credentials, None)
        if isinstance(verdict, NeedsSignIn | CentralRefused):
            raise SignInRefused(f"central refuses to sign in '{self._account.username}'{_reason(verdict)}")
        if isinstance(verdict, CentralUnavailable):
            raise verdict
        token, user = verdict.get("session"), verdict.get("user")
        if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable():
            raise CentralFailed("answered without a session", operation=f"POST {LOGIN}")
        if isinstance(user, dict) and user.get("mfa_enabled") is True:
            try:
                await self._prove(token)
            except (CentralRefused, CentralUnavailable):
                await self._end(token)
                raise
        return token

    async def _prove(self, token: str) -> None:
        """Prove the second factor, with a code that was not sent before."""
        if not self._account.totp_secret:
            raise SignInRefused(
                f"central asks '{self._account.username}' for a second factor: name its secret as 'totp' in [central],"
                " or use an account without one"
            )
        step = await self._unused_step()
        verdict = await self._exchange(MFA, {"token": code_of(self._account.totp_secret, step)}, token)
        if isinstance(verdict, CentralRefused):
            raise SignInRefused(
                f"central refuses the second factor of '{self._account.username}'{_reason(verdict)};"
                " are its secret and this machine's clock right?"
            )
        if isinstance(verdict, NeedsSignIn):
            raise CentralFailed("central forgot the session at once", operation=f"POST {MFA}")
        if isinstance(verdict, CentralUnavailable):
            raise verdict

    async def _unused_step(self) -> int:
        """Wait for a half minute whose code was not sent before, record it as used, and return its number."""
        newest = self._last_step
        if self._account.used_codes is not None:
            newest = max(newest, await self._account.used_codes.newest())
        now = self._central_time()
        current = int(now + ON_THE_WAY_SECONDS) // STEP_SECONDS
        # A note far ahead was made while central's clock was ahead.
        step = newest + 1 if current <= newest <= current + 1 else current
        await asyncio.sleep(max(step * STEP_SECONDS + _CLOCK_DOUBT_SECONDS - now, 0))
        self._last_step = step
        if self._account.used_codes is not None:
            await self._account.used_codes.use(step)
        return step

    async def _end(self, token: str) -> None:
        """End a session that is no longer used; one that cannot be ended now expires at central."""
        try:
            async with asyncio.timeout(_LOGOUT_SECONDS):
                await self._exchange(LOGOUT, {}, token)
        except (CentralRefused, CentralUnavailable, TimeoutError) as error:
            log.info("session_left_at_central", error=str(error) or "no answer in time")


def _reason(verdict: NeedsSignIn | CentralRefused) -> str:
    return f" ({verdict})" if isinstance(verdict, CentralRefused) else ""


def code_of(secret: str, step: int) -> str:
    """Compute an authenticator's code for a half minute since 1970 (RFC 6238, SHA-1, six digits).

    Raises SignInRefused for a secret that is no base32.
    """
    text = "".join(secret.split()).replace("-", "").rstrip("=").upper()
    try:
        key = base64.b32decode(text + "=" * (-len(text) % 8))
    except ValueError as error:
        raise SignInRefused("the secret of the second factor is not base32; copy it again from central") from error
    digest = hmac.digest(key, struct.pack(">Q", step), hashlib.sha1)
    (number,) = struct.unpack_from(">I", digest, digest[-1] & 0x0F)
    return f"{(number & 0x7FFF_FFFF) % 1_000_000:06d}"


_NAME = "second_factor_step"


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedCodes:
    """The half minute, counted since 1970, of the newest code that was sent to central."""

    notes: Notes

    async def newest(self) -> int:
        """Return the newest half minute whose code was sent; -1 for none, or while the disk cannot be read."""
        try:
            noted = await self.notes.remembered(_NAME)
        except StoreError as error:
            log.warning("used_codes_unknown", error=str(error))
            return -1
        return int(noted) if noted is not None and noted.isdecimal() else -1

    async def use(self, step: int) -> None:
        """Record a half minute before its code is sent. A disk error is only logged, so that the sign-in goes on."""
        try:
            await self.notes.remember(_NAME, str(step))
        except StoreError as error:
            log.warning("used_code_not_noted", error=str(error))
