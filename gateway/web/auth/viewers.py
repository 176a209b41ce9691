"""Access for players without a session: an address with a token opens what its owner may see at that moment."""

from __future__ import annotations

from dataclasses import dataclass, replace

from aiohttp import web

from gateway.web.auth.api_keys import ApiKeys
from gateway.web.auth.callers import NOBODY, Caller, Carrier
from gateway.web.auth.link_makers import LinkMakers
from gateway.web.auth.sessions import Sessions
from gateway.web.auth.view_tokens import TOKEN, Issued, View, ViewTokens
from gateway.web.http.addresses import public_origin
from gateway.web.operation import Rule


@dataclass(frozen=True, kw_only=True)
class Viewers:
    """Addresses with tokens, and the callers behind them."""

    makers: LinkMakers
    tokens: ViewTokens
    sessions: Sessions
    keys: ApiKeys

    def address(self, request: web.Request, path: str, view: View, caller: Caller) -> str:
        """Return the absolute address of `path` with a token for the caller."""
        return f"{public_origin(request)}{path}?{TOKEN}={self.tokens.issue(view, caller).text}"

    def token(self, view: View, caller: Caller) -> Issued:
        """Return a token for the caller, without an address."""
        return self.tokens.issue(view, caller)

    async def caller(self, token: str, view: View, rule: Rule) -> Caller:
        """Return the caller for whom the token was issued, with present permissions and the carrier ADDRESS.

        NOBODY when the token is not valid for this view, or the caller's session, key or permission is gone.
        """
        now = await self.asker(token, view, rule)
        return replace(now, carrier=Carrier.ADDRESS) if now.signed_in else NOBODY

    async def asker(self, token: str, view: View, rule: Rule) -> Caller:
        """Return the same as `caller`, but with the carrier by which the token was asked for."""
        asker = self.tokens.issued_to(token, view)
        return NOBODY if asker is None else await self.now(asker, rule)

    async def now(self, asker: Caller, rule: Rule) -> Caller:
        """Return this caller with present permissions; NOBODY when the session, key or permission is gone."""
        now = await (self._by_key(asker) if asker.carrier is Carrier.KEY else self.sessions.refreshed(asker))
        return now if now.may(rule) else NOBODY

    async def _by_key(self, asker: Caller) -> Caller:
        key = await self.keys.known(asker.token)
        return NOBODY if key is None else replace(asker, permissions=key.permissions)
