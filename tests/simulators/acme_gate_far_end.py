"""A simulated ACME gate: a `Barrier` behind JSON over HTTP."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager

from aiohttp import web

from simulation.far_ends.barrier import Barrier, Wish
from simulation.far_ends.http_device import on_loopback

INPUTS = ("arming_loop", "closing_loop", "photocell")


class AcmeFarEnd:
    """One gate. `obeyed` has the commands that came with the token."""

    def __init__(self, *, barrier: Barrier, token: str) -> None:
        self._barrier = barrier
        self._token = token
        self.obeyed: list[Wish] = []

    def serve(self) -> AbstractAsyncContextManager[int]:
        """Serve on a free port of this machine, and yield it."""
        app = web.Application()
        app.router.add_post("/command", self._command)
        app.router.add_get("/state", self._state)
        return on_loopback(app)

    async def _command(self, request: web.Request) -> web.Response:
        self._admit(request)
        wish = Wish((await request.json())["command"])
        self.obeyed.append(wish)
        self._barrier.command(wish, now=time.monotonic())
        return web.json_response({"done": True})

    async def _state(self, request: web.Request) -> web.Response:
        self._admit(request)
        state = self._barrier.state(now=time.monotonic())
        return web.json_response({"arm": state.position, "inputs": {name: state.points[name] for name in INPUTS}})

    def _admit(self, request: web.Request) -> None:
        if request.headers.get("Authorization") != f"Bearer {self._token}":
            raise web.HTTPUnauthorized
