"""Control of the simulated field over HTTP on loopback: send a vehicle with a card to a lane."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web
from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.runtime.supervision import Supervisor
from simulation.far_ends.vehicles import DrivingLane, Presents

_MOST_WAITING = 5


class Presented(BaseModel):
    """`POST /present`: a vehicle with this card comes to this lane."""

    model_config = ConfigDict(frozen=True)

    lane_id: str
    card: str


class Control:
    """The control server. `async with` it; `url` is known inside."""

    def __init__(self, *, lanes: Mapping[str, DrivingLane[Presents]], supervisor: Supervisor) -> None:
        self._lanes = lanes
        self._supervisor = supervisor
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Control:  # noqa: PYI034 (no subclass exists)
        app = web.Application(client_max_size=4096)
        app.router.add_post("/present", self._present)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _present(self, request: web.Request) -> web.Response:
        try:
            wish = Presented.model_validate_json(await request.read())
        except ValidationError:
            return web.json_response({"error": "lane_id and card are wanted"}, status=400)
        lane = self._lanes.get(wish.lane_id)
        if lane is None:
            return web.json_response({"error": f"no lane {wish.lane_id}"}, status=404)
        if lane.waiting >= _MOST_WAITING:
            return web.json_response({"error": "the queue before this gate is full"}, status=409)

        async def drive() -> None:
            await lane.drive(wish.card)

        self._supervisor.once(f"vehicle-{wish.lane_id}", drive())
        return web.json_response({"success": True})
