"""Download of the support bundle, and the end of the log."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from gateway.support.bundle import SupportBundle
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.http.envelope import success
from gateway.web.operation import Operation, needs

_TYPE = "application/gzip"
_MAY = needs("can_edit_settings") & needs("can_view_events") & needs("can_view_devices")

_LINES = 200

LOG_TAIL = Operation("GET", "/status/log", _MAY, "lines")
SUPPORT_BUNDLE = Operation("GET", "/status/bundle", _MAY, "bundle", answer_type=_TYPE)


@dataclass(frozen=True, kw_only=True)
class StatusSupport:
    """The handlers of `/status/bundle`, a file for support staff, and `/status/log`, its last 200 lines.

    Both are without secrets.
    """

    bundle: SupportBundle

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (Route(SUPPORT_BUNDLE, self._bundle), Route(LOG_TAIL, self._log))

    async def _log(self, _: web.Request, __: Caller) -> web.StreamResponse:
        return success(lines=await self.bundle.log_tail(_LINES))

    async def _bundle(self, _: web.Request, __: Caller) -> web.StreamResponse:
        made = await self.bundle.make()
        headers = {"Content-Disposition": f'attachment; filename="{made.name}"', "Cache-Control": "no-store"}
        return web.Response(body=made.content, content_type=_TYPE, headers=headers)
