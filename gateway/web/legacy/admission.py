"""Admission to the legacy family: a program's key, 401 without one, 403 for what it may not do."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web
from aiohttp.typedefs import Handler as RawHandler

from gateway.web.auth.admission import Route
from gateway.web.auth.api_keys import ApiKeys, bearer
from gateway.web.auth.callers import SIGNED_IN, Caller, Carrier
from gateway.web.http.errors import RequestRefused


@dataclass(frozen=True, kw_only=True)
class LegacyAdmission:
    """Lets programs in by their operation's rule. A session's token is no key, nor a key a session."""

    keys: ApiKeys

    def guarded(self, route: Route) -> RawHandler:
        """Return the route's handler behind its rule. To the handler the caller is `key:<its name>`."""
        rule = route.operation.rule

        async def handler(request: web.Request) -> web.StreamResponse:
            key = await self.keys.of(request)
            if key is None:
                raise RequestRefused(
                    401,
                    "a valid API key is needed, as 'Authorization: Bearer <API_KEY>'",
                    headers={"WWW-Authenticate": "Bearer"},
                )
            request[SIGNED_IN] = True
            if group := rule.missing(key.permissions):
                raise RequestRefused(403, f"permission denied: this needs {' or '.join(group)}")
            caller = Caller(
                username=f"key:{key.name}", permissions=key.permissions, token=bearer(request), carrier=Carrier.KEY
            )
            return await route.handler(request, caller)

        return handler
