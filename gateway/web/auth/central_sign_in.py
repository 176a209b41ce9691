"""Sign-in with an account of central: at central while it answers, by the remembered account while it is offline.

When central refuses the remembered password, the account is forgotten and its sessions end at once. A refusal of any
other password does not do so: otherwise anybody who reaches the gateway could make it forget all accounts, and then cut
the line.

An account with a second factor can sign in only while central answers, because only central can check its codes.
Its password is remembered only so that a right password gets the true reason, and does not count as a wrong one.
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
from gateway.texts import text
from gateway.web.auth.accounts import Roster
from gateway.web.http.errors import RequestRefused

log = structlog.get_logger(__name__)

_DAY = 86_400_000_000
_CLOCK_SLACK = 300_000_000
_MOST_ASKING = 8
_AGAIN_SECONDS = "30"
_NOT_ACCEPTED = frozenset({401, 404})
"""Central's statuses for a wrong name or password: 404 by the interface's specification, 401 by HTTP (RFC 9110)."""
_NOT_JUDGED = text("refused.password_not_judged")
_ONLY_CENTRAL = text("refused.central_judges_factor")


class CentralAccounts(Protocol):
    """Sign-in at central. A refused person does not change the state of the gateway's own link to central."""

    async def sign_in(self, username: str, password: str) -> CentralAdmission:
        """Open a session at central. Raises CentralRefused, or CentralUnavailable when central does not answer."""
        ...

    async def is_believed(self, refusal: CentralRefused) -> bool:
        """Return whether a refusal comes from central itself, not from a proxy in front of it. Never raises."""
        ...

    def admitted(self, answer: JsonObject) -> CentralAdmission | None:
        """Parse an answer of central that signs somebody in; None for an answer without a session."""
        ...

    async def prove(self, token: str, code: str) -> None:
        """Prove a session's second factor. Raises CentralRefused for a wrong code, or CentralUnavailable."""
        ...

    async def sign_out(self, token: str) -> None:
        """End a session within 2 s. Never raises: if central does not answer, the session expires there by itself."""
        ...


class CentralSignIn:
    """Check of names and passwords of central's accounts, with at most eight requests to central at once."""

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
        """Return the account's admission; None when name or password are wrong.

        Its token is "" when central is offline and the account is remembered. Raises RequestRefused: 503 for too many
        sign-ins at once, and while central is offline for a right password of an account with a second factor; 502
        when central refuses for another reason than a wrong name or password.
        """
        if self._asking >= _MOST_ASKING:
            raise RequestRefused(503, text("refused.too_many_sign_ins"), headers={"Retry-After": "2"})
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
        """Parse central's answer to a sign-in by an identity provider; None for an answer without a session."""
        return self._central.admitted(answer)

    async def prove(self, token: str, code: str) -> bool:
        """Return whether central accepts the code. Raises RequestRefused (503) when central does not answer."""
        try:
            await self._central.prove(token, code)
        except CentralRefused:
            return False
        except CentralUnavailable as error:
            raise RequestRefused(503, text("refused.central_judges_code")) from error
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
            log.warning("account_not_remembered", error=str(error))  # the sign-in itself goes on

    async def _refused(self, username: str, password: str, refusal: CentralRefused) -> CentralAdmission | None:
        """Handle a refusal; forget the account if central itself refuses the remembered password.

        A status other than 401 and 404 says nothing about the password: RequestRefused (502). If a proxy, not central,
        refused the remembered password, the remembered account counts as while central is offline.
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
        """Let in an account that signed in within the last `remember_days`; None for a wrong password.

        An account that is not remembered gets the same answer, in the same time: another one would tell strangers
        which names are known here. Raises RequestRefused (503) for a right password with a second factor.
        """
        known = await self._recall(username)
        age = self._clock.wall().micros - known.verified_at if known else 0
        usable = known if known is not None and -_CLOCK_SLACK <= age < self._life else None
        right = await self._roster.matches(usable.password_hash if usable else None, password)
        if known is None or not right:
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
