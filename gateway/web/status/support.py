"""Download of the support bundle, and the end of the log."""

from __future__ import annotations

from aiohttp import web

from gateway.web.answers import Answer
from gateway.web.families import Family, operation
from gateway.web.operation import EDIT_SETTINGS, VIEW_DEVICES, VIEW_EVENTS

_TYPE = "application/gzip"
_MAY = EDIT_SETTINGS & VIEW_EVENTS & VIEW_DEVICES

_LINES = 200


class LogAnswer(Answer):
    """The last lines of the log."""

    lines: tuple[str, ...]


class StatusSupport(Family):
    """The handlers of `/status/bundle`, a file for support staff, and `/status/log`, its last 200 lines.

    Both are without secrets.
    """

    @operation("GET", "/status/log", _MAY, "lines")
    async def _log(self) -> LogAnswer:
        return LogAnswer(lines=tuple(await self.context.support.log_tail(_LINES)))

    @operation("GET", "/status/bundle", _MAY, "bundle", answer_type=_TYPE)
    async def _bundle(self) -> web.StreamResponse:
        made = await self.context.support.make()
        headers = {"Content-Disposition": f'attachment; filename="{made.name}"', "Cache-Control": "no-store"}
        return web.Response(body=made.content, content_type=_TYPE, headers=headers)
