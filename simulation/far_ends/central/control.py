"""Routes that make the simulated central misbehave and read its records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from aiohttp import web

from simulation.far_ends.central.answers import Refusal, failure, parse_body
from simulation.far_ends.central.faults import Faults
from simulation.far_ends.central.record_counts import RecordCounts


class Controlled(Protocol):
    """The part of central that the control routes use."""

    faults: Faults

    @property
    def happened(self) -> Mapping[str, int]:
        """The number of requests that each random fault affected."""
        ...

    @property
    def asked(self) -> Mapping[str, int]:
        """The number of successful answers of each operation."""
        ...

    def record_counts(self) -> RecordCounts:
        """Return the records that central holds."""
        ...

    def expire_sessions(self) -> None:
        """End every session."""
        ...


class Control:
    """The routes `/demo/faults`, `/demo/expire-sessions` and `/demo/record-counts`."""

    def __init__(self, central: Controlled) -> None:
        self._central = central

    def add_to(self, app: web.Application) -> None:
        """Add the routes to the application."""
        app.router.add_get("/demo/faults", self._show_faults, allow_head=False)
        app.router.add_post("/demo/faults", self._set_faults)
        app.router.add_post("/demo/expire-sessions", self._expire_sessions)
        app.router.add_get("/demo/record-counts", self._show_record_counts, allow_head=False)

    async def _show_faults(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(self._central.faults.model_dump(mode="json"))

    async def _set_faults(self, request: web.Request) -> web.StreamResponse:
        try:
            self._central.faults = parse_body(await request.read(), Faults)
        except Refusal as refusal:
            return web.json_response(failure("faults", refusal.message), status=refusal.status)
        return await self._show_faults(request)

    async def _expire_sessions(self, _: web.Request) -> web.StreamResponse:
        self._central.expire_sessions()
        return web.json_response({"success": True, "error": None})

    async def _show_record_counts(self, _: web.Request) -> web.StreamResponse:
        central = self._central
        more = {"happened": dict(central.happened), "asked": dict(central.asked)}
        return web.json_response({**central.record_counts().as_json(), **more})
