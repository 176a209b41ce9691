"""Live cameras over WebRTC by WHEP (draft-ietf-wish-whep). This is the HTTP side; the camera's worker does WebRTC.

| Request | Answer |
|---|---|
| POST of an offer, `application/sdp` | 201 with the answer, Location, ETag and a Link for each ICE server |
| POST of another type / of an invalid offer / of an offer without H.264 | 415 / 400 / 406 |
| POST for a camera that sends nothing now | 409 with Retry-After |
| POST for a camera whose video WebRTC cannot carry | 406 |
| POST when the limit of viewers is reached | 503 with Retry-After |
| POST after offers of the account that no worker answered | 429 with Retry-After |
| PATCH of candidates, `application/trickle-ice-sdpfrag` | 204 |
| PATCH without If-Match / with another session's tag / for an ICE restart | 428 / 412 / 422 |
| DELETE | 200 |
| POST without a session or token / without the permission | 401 / 403 |

PATCH and DELETE need no session: the URL of a view cannot be guessed. A view ends within 5 s after the session, key or
permission that opened it.
"""

from __future__ import annotations

import math
from types import MappingProxyType

from aiohttp import web

from drivers.throttle import Throttle
from gateway.domain.errors import NotFoundError, OfferUnanswered
from gateway.domain.viewing import NotShown, ViewRefusal
from gateway.texts import text
from gateway.web.auth.api_keys import bearer
from gateway.web.auth.callers import NOBODY, Caller
from gateway.web.auth.view_tokens import TOKEN, TokenView
from gateway.web.context import InterfaceContext
from gateway.web.families import Family, operation
from gateway.web.http.addresses import address_of
from gateway.web.http.bodies import read_text
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import OPEN, VIEW_CAMERAS, ViewKind

SDP = "application/sdp"
_FREE_UNANSWERED = 1
FRAGMENT = "application/trickle-ice-sdpfrag"
PREFIX = "/v1/camera/whep/"
CORS = MappingProxyType(
    {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "ETag, Link, Location, Retry-After",
    }
)
"""Headers of every answer: a page of another origin may watch with a token, never with the session cookie."""
_PREFLIGHT = MappingProxyType(
    {
        "Access-Control-Allow-Methods": "OPTIONS, POST, PATCH, DELETE",
        "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match, SessionID",
        "Access-Control-Max-Age": "600",
    }
)
_STATUS = MappingProxyType(
    {
        ViewRefusal.BAD_OFFER: 400,
        ViewRefusal.UNKNOWN: 404,
        ViewRefusal.NOT_ACCEPTABLE: 406,
        ViewRefusal.NO_SOURCE: 409,
        ViewRefusal.STALE_TAG: 412,
        ViewRefusal.RESTART: 422,
        ViewRefusal.NO_TAG: 428,
        ViewRefusal.FULL: 503,
    }
)
_RETRY_AFTER = MappingProxyType({ViewRefusal.NO_SOURCE: "5", ViewRefusal.FULL: "10"})


class Whep(Family):
    """The handlers of `/v1/camera/whep`."""

    def __init__(self, context: InterfaceContext) -> None:
        super().__init__(context)
        self._unanswered = Throttle(free=_FREE_UNANSWERED)
        self._links = [f'<{server}>; rel="ice-server"' for server in context.site.live.ice_servers]

    # These operations are open here: to open a view, `_asker` wants a session with the permission, or a camera's token.
    # The address of an open view is its own secret.
    @operation(
        "POST",
        "/v1/camera/whep/{id}",
        OPEN,
        purpose="Watch a camera live by WebRTC (WHEP)",
        body_type="application/sdp",
        answer_type="application/sdp",
        status=201,
        refuses=(401, 406, 429),
    )
    async def _open(self, camera_id: int, request: web.Request, caller: Caller) -> web.StreamResponse:
        asker = await self._asker(request, caller, camera_id)
        offer = await _text(request, SDP)
        wait = self._unanswered.wait(asker.username, now=self.context.clock.monotonic())
        if wait > 0:
            again = str(math.ceil(wait))
            raise RequestRefused(429, text("refused.offers_unanswered", seconds=again), headers={"Retry-After": again})
        try:
            opened = await self.context.recording.viewing.open(camera_id, offer, address=address_of(request))
        except OfferUnanswered:
            # The offer may be why: a camera worker that falls silent is started again, and records nothing meanwhile.
            self._unanswered.failed(asker.username, now=self.context.clock.monotonic())
            raise
        except NotShown as error:
            raise _refused(error) from error
        self.context.views.add(camera_id, opened.view, asker)
        response = web.Response(status=201, body=opened.answer.encode(), headers={"Content-Type": SDP})
        response.headers["Location"] = f"{PREFIX}{camera_id}/{opened.view}"
        response.headers["ETag"] = f'"{opened.tag}"'
        response.headers["Cache-Control"] = "no-store"
        for link in self._links:
            response.headers.add("Link", link)
        return response

    @operation("OPTIONS", "/v1/camera/whep/{id}", OPEN)
    @operation("OPTIONS", "/v1/camera/whep/{id}/{view}", OPEN)
    async def _options(self, request: web.Request) -> web.StreamResponse:
        accepts = {} if "view" in request.match_info else {"Accept-Post": SDP}
        return web.Response(status=204, headers={**_PREFLIGHT, **accepts})

    @operation(
        "PATCH",
        "/v1/camera/whep/{id}/{view}",
        OPEN,
        purpose="Further candidates of a viewer",
        body_type="application/trickle-ice-sdpfrag",
        status=204,
        refuses=(412, 422, 428),
    )
    async def _trickle(self, camera_id: int, view: str, request: web.Request) -> web.StreamResponse:
        fragment = await _text(request, FRAGMENT)
        named = [tag.strip().removeprefix("W/").strip('"') for tag in request.headers.get("If-Match", "").split(",")]
        tags = tuple(tag for tag in named if tag)
        try:
            await self.context.recording.viewing.trickle(camera_id, view, tags=tags, fragment=fragment)
        except NotShown as error:
            raise _refused(error) from error
        return web.Response(status=204)

    @operation("DELETE", "/v1/camera/whep/{id}/{view}", OPEN, purpose="End watching")
    async def _end(self, camera_id: int, view: str) -> web.StreamResponse:
        try:
            await self.context.recording.viewing.end(camera_id, view)
        except NotShown as error:
            raise _refused(error) from error
        self.context.views.remove(view)
        return web.Response(status=200)

    async def _asker(self, request: web.Request, caller: Caller, camera_id: int) -> Caller:
        """Return the caller whose permission opens the view: by session, or by a token of this camera.

        Raises RequestRefused: 401 without either, 403 for a session without the permission.
        """
        if caller.may(VIEW_CAMERAS):
            return caller
        view = TokenView(ViewKind.WATCH, camera_id)
        for token in (request.query.get(TOKEN), bearer(request)):
            asker = await self.context.auth.viewers.asker(token, view, VIEW_CAMERAS) if token else NOBODY
            if asker.signed_in:
                return asker
        if caller.signed_in:
            raise RequestRefused(403, "permission denied: this needs can_view_cameras")
        raise RequestRefused(
            401,
            "sign in, or ask for the camera's record: its stream address is good for 5 minutes",
            headers={"WWW-Authenticate": "Bearer"},
        )


async def _text(request: web.Request, media_type: str) -> str:
    if request.content_type != media_type:
        raise RequestRefused(415, f"the body must be of type {media_type}", headers={"Accept-Post": SDP})
    text = await read_text(request)
    if not text.strip():
        raise RequestRefused(400, f"the body must be {media_type}, and is empty")
    return text


def _refused(error: NotShown) -> RequestRefused | NotFoundError:
    status = _STATUS[error.refusal]
    if status == 404:
        return NotFoundError(error.words)
    retry = _RETRY_AFTER.get(error.refusal)
    return RequestRefused(status, error.words, headers={"Retry-After": retry} if retry else None)
