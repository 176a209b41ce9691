"""The injection of faults into central's answers."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from http import HTTPStatus
from types import MappingProxyType

from aiohttp import web
from aiohttp.typedefs import Handler

from simulation.far_ends.central.answers import AUTHENTICATION_REQUIRED, JsonObject, failure
from simulation.far_ends.central.fate import After, Before, Bend, Fate, fate_of
from simulation.far_ends.central.faults import ErrorKind, Faults

_CONTROL = "/demo/"
_SIGN_IN = "/v1/auth/"
_PIECES = 10
_FATE = web.RequestKey("fate", Fate)
_WELL = Fate()


class CutOff(web.Response):
    """An answer whose connection breaks before its end."""


class Misbehaviour:
    """The injector of faults into requests. Faults with a count stop after it. The control routes always work.

    `happened` counts the random faults by name.
    """

    def __init__(self, faults: Faults, *, end_session: Callable[[web.Request], None]) -> None:
        """Make the injector. `end_session` ends the session of a request."""
        self.faults = faults
        self.happened: Counter[str] = Counter()
        self._end_session = end_session
        self._dice = random.Random(faults.seed)  # noqa: S311 (chance of a simulation)
        self._errors_left = faults.error_times
        self._losses_left = faults.lost_answers

    def shift_of(self, request: web.Request) -> int:
        """Return by how many records a later page of a list is misplaced."""
        return _fate(request).shift

    def bend_list(self, request: web.Request, resource: str, answer: JsonObject) -> JsonObject:
        """Return a list's answer with the wrong count and length that the faults demand."""
        records, count = answer.get(resource), answer.get("count")
        if not self.faults.touch(request.path) or not isinstance(records, list) or not isinstance(count, int):
            return answer
        fate = _fate(request)
        if fate.bend is not Bend.NOTHING:
            self.happened[f"page {fate.bend.value}"] += 1
        bent: JsonObject = {
            **answer,
            resource: records[: self.faults.truncate_to],
            "count": count + self.faults.count_off_by,
        }
        return fate.bent(resource, bent)

    async def around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request, with the faults that affect it."""
        faults = self.faults
        if request.path.startswith(_CONTROL) or not faults.touch(request.path):
            return await handler(request)
        if faults.down:
            return _cut_off(request)
        fate = request[_FATE] = fate_of(faults.chances, self._dice)
        latency = faults.latency_seconds + fate.lateness * faults.latency_spread_seconds
        if faults.record_seconds:
            latency += faults.record_seconds * await _wanted_records(request)
        if latency:
            await asyncio.sleep(latency)
        if faults.error is not ErrorKind.NONE and self._error_due():
            return _error(faults.error)
        instead = await self._before(request, fate.before)
        return instead or await self._after(request, fate.after, await handler(request))

    async def _before(self, request: web.Request, before: Before) -> web.StreamResponse | None:
        """Return the answer to a request that a fault prevents; None when it may be carried out."""
        if before is Before.NOTHING:
            return None
        if before in {Before.UNAUTHENTICATED, Before.EXPIRED} and request.path.startswith(_SIGN_IN):
            return None  # signing in needs no session
        self.happened[f"request {before.value}"] += 1
        if before is Before.LOST:
            return _cut_off(request)
        if before is Before.HALF_OPEN:
            return await self._left_open(request)
        if before is Before.EXPIRED:
            self._end_session(request)
        return _INSTEAD[before]()

    async def _after(self, request: web.Request, after: After, response: web.StreamResponse) -> web.StreamResponse:
        faults = self.faults
        if self._losses_left:
            self._losses_left -= 1
            return _cut_off(request)
        if faults.unnamed and request.method == "PUT" and response.status == HTTPStatus.OK:
            response = web.json_response({"success": True})
        if after is not After.NOTHING:
            self.happened[f"answer {after.value}"] += 1
        match after:
            case After.LOST:
                return _cut_off(request)
            case After.SILENT:
                return await self._left_open(request)
            case After.TORN:
                await self._tear(request, response)
                return _cut_off(request)
            case _:
                pass
        slow = after is After.SLOW or not faults.chances.slow_bodies
        if slow and faults.slow_body_seconds:
            return await self._trickle(request, response)
        return response

    def _error_due(self) -> bool:
        if self._errors_left is None:
            return True
        self._errors_left -= 1
        return self._errors_left >= 0

    async def _left_open(self, request: web.Request) -> CutOff:
        """Leave the connection open without an answer, for a limited time."""
        await asyncio.sleep(self.faults.half_open_seconds)
        return _cut_off(request)

    async def _tear(self, request: web.Request, response: web.StreamResponse) -> None:
        body, torn = await _begun(request, response)
        await torn.write(body[: len(body) // 2])

    async def _trickle(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        body, slow = await _begun(request, response)
        step = max(1, -(-len(body) // _PIECES))
        for start in range(0, len(body), step):
            await asyncio.sleep(self.faults.slow_body_seconds / _PIECES)
            await slow.write(body[start : start + step])
        await slow.write_eof()
        return slow


async def _wanted_records(request: web.Request) -> int:
    """Return the number of records that the requested page should have; 0 for a request that asks for no page."""
    try:
        asked = json.loads(await request.read())
    except ValueError:
        return 0
    limit = asked.get("page_limit") if isinstance(asked, dict) else None
    return limit if isinstance(limit, int) else 0


def _fate(request: web.Request) -> Fate:
    fate: Fate = request.get(_FATE, _WELL)
    return fate


async def _begun(request: web.Request, response: web.StreamResponse) -> tuple[bytes, web.StreamResponse]:
    """Return an answer's body, and the answer with its head sent."""
    body = response.body if isinstance(response, web.Response) and isinstance(response.body, bytes) else b""
    begun = web.StreamResponse(status=response.status, headers={"Content-Type": "application/json"})
    begun.content_length = len(body)
    await begun.prepare(request)
    return body, begun


def _cut_off(request: web.Request) -> CutOff:
    """Drop the connection of a request."""
    if request.transport is not None:
        request.transport.abort()
    return CutOff()


def _unauthenticated() -> web.Response:
    return web.json_response(failure("data", AUTHENTICATION_REQUIRED), status=500)


def _refused() -> web.Response:
    return web.json_response(failure("data", "refused by chance"), status=400)


def _error(kind: ErrorKind) -> web.Response:
    if kind is ErrorKind.JSON:
        return web.json_response(failure("data", "database is unavailable"), status=500)
    if kind is ErrorKind.PORTAL:
        return web.Response(text="<html><body>Please sign in to the network</body></html>", content_type="text/html")
    if kind is ErrorKind.UNROUTED:
        return web.json_response({"success": False, "error": "no route matched"}, status=404)
    return web.Response(text="Internal Server Error", status=500)


_INSTEAD: Mapping[Before, Callable[[], web.Response]] = MappingProxyType(
    {
        Before.EXPIRED: _unauthenticated,
        Before.UNAUTHENTICATED: _unauthenticated,
        Before.FAILED: partial(_error, ErrorKind.JSON),
        Before.CRASHED: partial(_error, ErrorKind.TEXT),
        Before.REFUSED: _refused,
    }
)
