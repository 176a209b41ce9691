"""The page of the fleet: all gateways as their heartbeats tell, at a gateway whose key may read them."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import NotFoundError
from gateway.domain.server_lines import GatewaySeen
from gateway.web.answers import Answer
from gateway.web.families import Family, operation
from gateway.web.operation import OPEN, VIEW_DEVICES
from gateway.web.status.page import page

_NO_FLEET = "this gateway belongs to no fleet: its site file has no [fleet]"


class FleetQuery(BaseModel):
    """The mark of the last answer; without it, everything is answered."""

    model_config = ConfigDict(frozen=True)

    after: Annotated[str, Field(max_length=40)] = ""


class FleetAnswer(Answer):
    """The gateways that have changed since the client's mark: see `FleetSeen`."""

    mark: str
    anew: bool
    gateways: tuple[GatewaySeen, ...]
    gone: tuple[str, ...]
    complete: bool
    fault: str
    away_seconds: float


class StatusFleet(Family):
    """The handlers of `/fleet/` and of the gateways that it shows. Without `[fleet]` there is nothing."""

    @operation("GET", "/fleet/", OPEN, head=True)
    async def _page(self, request: web.Request) -> web.StreamResponse:
        if self.context.site_state().fleet is None:
            raise NotFoundError(_NO_FLEET)
        return await page(request)

    @operation("GET", "/status/fleet", VIEW_DEVICES, "gateways")
    async def _gateways(self, asked: FleetQuery) -> FleetAnswer:
        found = self.context.fleet_seen(asked.after)
        if found is None:
            raise NotFoundError(_NO_FLEET)
        return FleetAnswer(
            mark=found.mark,
            anew=found.anew,
            gateways=found.seen,
            gone=found.gone,
            complete=found.complete,
            fault=found.fault,
            away_seconds=found.away_seconds,
        )
