"""Signing in with an account of central: through central while it answers, from what is remembered while it is offline.

A password that central refuses ends what is remembered of it at once, and its sessions. Only the remembered password
does: were any wrong one enough, whoever reaches the gateway could have all accounts forgotten, and then cut the line.

An account with a second factor is let in by central alone. Only central can judge its codes, and to let it in by its
password alone is what the second factor is there to prevent. Its password is remembered only to tell its owner what
stands in the way: a right password is not answered as a wrong one, nor counted as one.
"""

from __future__ import annotations

from typing import Protocol

import structlog

from gateway.domain.accounts import CentralAdmission
from gateway.domain.errors import CentralRefused, CentralUnavailable, StoreError
from gateway.domain.writes import JsonObject
from gateway.runtime.clock import Clock
from gateway.store import RememberedAccount
from gateway.store.accounts.remembered_accounts import RememberedAccounts
from gateway.web.auth.accounts import Roster
from gateway.web.http.errors import RequestRefused

log = structlog.get_logger(__name__)

_DAY = 86_400_000_000
_CLOCK_SLACK = 300_000_000
_MOST_ASKING = 8
_AGAIN_SECONDS = "30"
_NOT_REMEMBERED = (
    "central cannot be reached, and this site does not remember an account of this name; try again later,"
    " or sign in with an account of the site"
)
_NOT_ACCEPTED = frozenset({401, 404})
"""How central says that name or password are wrong: 404 in the interface, 401 by the rules of HTTP."""
_NOT_JUDGED = (
    "central refused the sign-in without saying that the password is wrong; ask whoever runs central,"
    " or sign in with an account of the site"
)
_ONLY_CENTRAL = "central cannot be reached, and only it can judge this account's second factor; try again later"


class CentralAccounts(Protocol):
    """Central's accounts. A refusal of a person does not change the state of the gateway's own link to central."""

    async def sign_in(self, username: str, password: str) -> CentralAdmission:
        """Open a session at central. Raises CentralRefused, and CentralUnavailable when central does not say."""
        ...

    async def is_believed(self, refusal: CentralRefused) -> bool:
        """Return whether a refusal is central's own, not that of a proxy before it. Never raises."""
        ...

    def admitted(self, answer: JsonObject) -> CentralAdmission | None:
        """Read an answer of central's that signs somebody in; None for one without a session."""
        ...

    async def prove(self, token: str, code: str) -> None:
        """Prove a session's second factor. Raises CentralRefused for a wrong code, CentralUnavailable."""
        ...

    async def sign_out(self, token: str) -> None:
        """End a session, within 2 s. Never raises: one that cannot be ended now ends by central's own time."""
        ...


class CentralSignIn:
    """Judges names and passwords of accounts of central."""

    def __init__(
        self,
        *,
        central: CentralAccounts,
        remembered: RememberedAccounts,
        roster: Roster,
        clock: Clock,
        remember_days: float,
    ) -> None:
        self._central = central
        self._remembered = remembered
        self._roster = roster
        self._clock = clock
        self._life = int(remember_days * _DAY)
        self._asking = 0

    async def admit(self, username: str, password: str) -> CentralAdmission | None:
        """Return the account's admission, without a token when it is from memory; None when name or password are wrong.

        Raises RequestRefused: 503 when too many are asked for at once, and while central is offline for an account that
        only central can judge (it is not remembered, or has a second factor); 502 when central refuses without judging.
        """
        if self._asking >= _MOST_ASKING:
            raise RequestRefused(503, "too many sign-ins at once; try again", headers={"Retry-After": "2"})
        self._asking += 1
        try:
            admission = await self._central.sign_in(username, password)
        except CentralRefused as error:
            return await self._refused(username, password, error)
        except CentralUnavailable as error:
            log.info("sign_in_without_central", error=str(error))
            return await self._from_memory(username, password)
        finally:
            self._asking -= 1
        await self._remember(username, password, admission)
        return admission

    def admitted(self, answer: JsonObject) -> CentralAdmission | None:
        """Read central's answer to a sign-in by others than central itself; None for one without a session."""
        return self._central.admitted(answer)

    async def prove(self, token: str, code: str) -> bool:
        """Return whether central accepts the code. Raises RequestRefused (503) while central does not say."""
        try:
            await self._central.prove(token, code)
        except CentralRefused:
            return False
        except CentralUnavailable as error:
            raise RequestRefused(503, "central does not answer, and only it can judge the code") from error
        return True

    async def _remember(self, username: str, password: str, admission: CentralAdmission) -> None:
        now = self._clock.wall().micros
        try:
            await self._remembered.forget_older(now - self._life)
            if not self._life:
                await self._remembered.forget(username, sessions=False)
                return
            known = await self._remembered.get(username)
            same = known is not None and await self._roster.matches(known.password_hash, password)
            password_hash = known.password_hash if known and same else await self._roster.hashed(password)
            mfa = admission.mfa_enabled
            may = frozenset[str]() if mfa else admission.permissions
            role = "" if mfa else admission.role_name
            await self._remembered.put(RememberedAccount(username, password_hash, role, may, now, mfa))
        except (StoreError, RequestRefused) as error:
            log.warning("account_not_remembered", error=str(error))  # it is let in all the same

    async def _refused(self, username: str, password: str, refusal: CentralRefused) -> CentralAdmission | None:
        """Forget a remembered password that central does not accept.

        Any other refusal says nothing of the password: RequestRefused (502). One that is not central's own word leaves
        the account to what is remembered.
        """
        if refusal.status not in _NOT_ACCEPTED:
            log.info("sign_in_not_judged", error=str(refusal))
            raise RequestRefused(502, _NOT_JUDGED)
        known = await self._recall(username)
        if await self._roster.matches(known.password_hash if known else None, password):
            if not await self._central.is_believed(refusal):
                return await self._from_memory(username, password)
            await self._remembered.forget(username, sessions=True)
        return None

    async def _from_memory(self, username: str, password: str) -> CentralAdmission | None:
        """Let an account in that signed in lately; None for a wrong password. Raises RequestRefused (503).

        Of an account that is not remembered nobody here can say whether its password is right.
        """
        known = await self._recall(username)
        age = self._clock.wall().micros - known.verified_at if known else 0
        if known is None or not -_CLOCK_SLACK <= age < self._life:
            raise RequestRefused(503, _NOT_REMEMBERED, headers={"Retry-After": _AGAIN_SECONDS})
        if not await self._roster.matches(known.password_hash, password):
            return None
        if known.mfa:
            raise RequestRefused(503, _ONLY_CENTRAL, headers={"Retry-After": _AGAIN_SECONDS})
        return CentralAdmission(
            token="",
            mfa_enabled=False,
            role_name=known.role,
            permissions=known.permissions,
            user={"username": username, "mfa_enabled": False},
            role={"name": known.role, "permissions": [*sorted(known.permissions)]},
            servers=[],
        )

    async def _recall(self, username: str) -> RememberedAccount | None:
        try:
            return await self._remembered.get(username)
        except StoreError as error:
            log.warning("remembered_not_read", error=str(error))
            return None
