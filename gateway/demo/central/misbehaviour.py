"""Faults put around real answers."""

from __future__ import annotations

import asyncio

from aiohttp import web
from aiohttp.typedefs import Handler

from gateway.demo.central.answers import JsonObject, failure
from gateway.demo.central.faults import ErrorKind, Faults

_CONTROL = "/demo/"
_PIECES = 10


class Misbehaviour:
    """Applies faults to requests; counted faults run out. The control routes are always well."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults
        self._errors_left = faults.error_times
        self._losses_left = faults.lost_answers

    def bend_list(self, path: str, resource: str, answer: JsonObject) -> JsonObject:
        """A list's answer with its count and length put wrong as asked."""
        records, count = answer.get(resource), answer.get("count")
        if not self.faults.touch(path) or not isinstance(records, list) or not isinstance(count, int):
            return answer
        return {
            **answer,
            resource: records[: self.faults.truncate_to],
            "count": count + self.faults.count_off_by,
        }

    async def around(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request through the faults that touch it."""
        if request.path.startswith(_CONTROL) or not self.faults.touch(request.path):
            return await handler(request)
        if self.faults.down:
            raise _cut_off(request)
        if self.faults.latency_seconds:
            await asyncio.sleep(self.faults.latency_seconds)
        if self.faults.error is not ErrorKind.NONE and self._error_due():
            return _error(self.faults.error)
        response = await handler(request)
        if self._losses_left:
            self._losses_left -= 1
            raise _cut_off(request)
        if self.faults.slow_body_seconds:
            return await self._trickle(request, response)
        return response

    def _error_due(self) -> bool:
        if self._errors_left is None:
            return True
        self._errors_left -= 1
        return self._errors_left >= 0

    async def _trickle(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        body = response.body if isinstance(response, web.Response) and isinstance(response.body, bytes) else b""
        slow = web.StreamResponse(status=response.status, headers={"Content-Type": "application/json"})
        slow.content_length = len(body)
        await slow.prepare(request)
        step = max(1, -(-len(body) // _PIECES))
        for start in range(0, len(body), step):
            await asyncio.sleep(self.faults.slow_body_seconds / _PIECES)
            await slow.write(body[start : start + step])
        await slow.write_eof()
        return slow


def _cut_off(request: web.Request) -> ConnectionResetError:
    """Drop the connection under a request."""
    if request.transport is not None:
        request.transport.abort()
    return ConnectionResetError("cut off on request")


def _error(kind: ErrorKind) -> web.Response:
    if kind is ErrorKind.JSON:
        return web.json_response(failure("data", "database is unavailable"), status=500)
    if kind is ErrorKind.PORTAL:
        return web.Response(text="<html><body>Please sign in to the network</body></html>", content_type="text/html")
    return web.Response(text="Internal Server Error", status=500)
