"""Callers' sessions at central, kept in memory only: at most one for each session of the gateway."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

import structlog

from gateway.web.auth.callers import Caller
from gateway.web.auth.central_sign_in import CentralAccounts

log = structlog.get_logger(__name__)

MOST_KEPT = 1024
_LAST_SECONDS = 2.0


class CentralSessions:
    """Central's token for each session whose account signed in at central.

    No token outlives the process: after a restart, a session is good only for what the gateway itself answers.
    """

    def __init__(self, *, central: CentralAccounts | None) -> None:
        """`central`: None where accounts of central may not sign in."""
        self._central = central
        self._tokens: OrderedDict[str, str] = OrderedDict()

    def token_of(self, caller: Caller) -> str | None:
        """Return the token of the caller's own session at central.

        None for an account of the site, and for an account of central (`caller.central`) that has to sign in again: it
        signed in while central was offline, the gateway was restarted since, or central ended that session.
        """
        return self._tokens.get(caller.token) if caller.central and not caller.mfa_pending else None

    def pending(self, caller: Caller) -> str | None:
        """Return central's token of a session whose second factor is still to be proven there."""
        return self._tokens.get(caller.token) if caller.central and caller.mfa_pending else None

    def sessions(self) -> tuple[str, ...]:
        """Return the tokens of the gateway's sessions that have a session at central."""
        return tuple(self._tokens)

    def lost(self, caller: Caller) -> None:
        """Forget a session that central has ended. Its caller has to sign in again."""
        self._tokens.pop(caller.token, None)

    async def keep(self, session: str, token: str) -> None:
        """Remember central's token for a session of the gateway; end the oldest when there are too many."""
        self._tokens[session] = token
        if len(self._tokens) > MOST_KEPT:
            await self.end(next(iter(self._tokens)))

    async def end(self, session: str) -> None:
        """End the session at central that belongs to this session of the gateway, if any. Takes at most 2 s."""
        token = self._tokens.pop(session, None)
        if token is not None and self._central is not None:
            await self._central.sign_out(token)

    async def end_all(self) -> None:
        """End every session at central and forget their tokens, as the gateway stops. Takes at most 2 s."""
        try:
            async with asyncio.timeout(_LAST_SECONDS), asyncio.TaskGroup() as group:
                for session in self.sessions():
                    group.create_task(self.end(session))
        except TimeoutError:
            log.info("sessions_left_at_central")  # they end by central's own time
