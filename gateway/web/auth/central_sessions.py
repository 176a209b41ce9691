"""The sessions at central of those who call: kept in memory alone, one for each session of the gateway."""

from __future__ import annotations

from collections import OrderedDict

from gateway.web.auth.callers import Caller

MOST_KEPT = 1024


class CentralSessions:
    """Central's token for each session whose account signed in there; the one kept longest goes first.

    None outlives the process: after a restart a session goes on for what the gateway itself answers.
    """

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, str] = OrderedDict()

    def token_of(self, caller: Caller) -> str | None:
        """The caller's own session at central.

        None for an account of the site, and for one of central (`caller.central`) that has to sign in again: it signed
        in while central was away, or the gateway was started anew since, or central ended that session.
        """
        return self._tokens.get(caller.token) if caller.central and not caller.mfa_pending else None

    def keep(self, session: str, token: str) -> str | None:
        """Remember central's token for a session of the gateway; gives one that had to go for it."""
        self._tokens[session] = token
        return self._tokens.popitem(last=False)[1] if len(self._tokens) > MOST_KEPT else None

    def take(self, session: str) -> str | None:
        """The token of a session, pending ones included; it is forgotten here, and the taker ends it at central."""
        return self._tokens.pop(session, None)

    def pending(self, caller: Caller) -> str | None:
        """Central's token of a session whose second factor is still to be proven there."""
        return self._tokens.get(caller.token) if caller.central and caller.mfa_pending else None

    def of(self) -> tuple[str, ...]:
        """The sessions of the gateway that one at central is kept for."""
        return tuple(self._tokens)

    def lost(self, caller: Caller) -> None:
        """Central has ended the caller's session: it asks for a sign-in again."""
        self._tokens.pop(caller.token, None)
