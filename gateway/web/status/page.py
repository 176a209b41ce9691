"""The page's document, and the account that is signed in."""

from __future__ import annotations

from aiohttp import web

from gateway.web.answers import Answer
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.operation import OPEN
from gateway.web.status.page_files import DOCUMENT, page_files
from gateway.web.status.snapshot import UserState, user_state

PAGE_PATH = "/status/"
VIEW_ADDRESSES = (
    "/status/events",
    "/status/events/{id}",
    "/status/lanes/{id}",
    "/status/commissioning/{id}",
    "/status/cards",
    "/status/lines",
    "/status/health",
    "/status/settings",
    "/status/wall",
)
"""Addresses of the page's views. Each answers with the same document; `views.js` then shows the view."""


async def page(request: web.Request) -> web.StreamResponse:
    """Answer with the page's document."""
    return page_files()[DOCUMENT].answer(request)


class SessionAnswer(Answer):
    """The signed-in account, or null."""

    user: UserState | None
    mfa_pending: bool


class StatusPage(Family):
    """The handlers of `/status/` and `/status/session`. The document is public: the site's data comes by the stream."""

    @operation("GET", PAGE_PATH, OPEN, head=True)
    async def _page(self, request: web.Request) -> web.StreamResponse:
        return await page(request)

    @operation("GET", "/status/session", OPEN, "user")
    async def _session(self, caller: Caller) -> SessionAnswer:
        """Answer with the account. The page asks this before it opens the stream."""
        whole = caller.signed_in and not caller.mfa_pending
        return SessionAnswer(user=user_state(caller) if whole else None, mfa_pending=caller.mfa_pending)
