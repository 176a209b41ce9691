"""The page of the fleet: all gateways as their heartbeats tell, at a gateway whose key may read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import NotFoundError
from gateway.domain.fleet_seen import FleetSeen, GatewaySeen
from gateway.domain.server_lines import FleetStatus
from gateway.domain.writes import JsonObject
from gateway.runtime.clock import iso_utc
from gateway.web.families import Family, operation
from gateway.web.http.envelope import success
from gateway.web.operation import OPEN, VIEW_DEVICES
from gateway.web.status.page import page

_NO_FLEET = "this gateway belongs to no fleet: its site file has no [fleet]"


class FleetQuery(BaseModel):
    """The mark of the last answer; without it, everything is answered."""

    model_config = ConfigDict(frozen=True)

    after: Annotated[str, Field(max_length=40)] = ""


@dataclass(frozen=True, kw_only=True)
class StatusFleet(Family):
    """The handlers of `/fleet/` and of the gateways that it shows. Without `[fleet]` there is nothing."""

    status: Callable[[], FleetStatus | None]
    seen: Callable[[str], FleetSeen | None]

    @operation("GET", "/fleet/", OPEN, head=True)
    async def _page(self, request: web.Request) -> web.StreamResponse:
        if self.status() is None:
            raise NotFoundError(_NO_FLEET)
        return await page(request)

    @operation("GET", "/status/fleet", VIEW_DEVICES, "gateways")
    async def _gateways(self, asked: FleetQuery) -> web.StreamResponse:
        """Answer with the gateways that have changed since the client's mark."""
        found = self.seen(asked.after)
        if found is None:
            raise NotFoundError(_NO_FLEET)
        return success(
            mark=found.mark,
            anew=found.anew,
            gateways=[_gateway(one) for one in found.seen],
            gone=list(found.gone),
            complete=found.complete,
            fault=found.fault,
            away_seconds=found.away_seconds,
        )


def _gateway(one: GatewaySeen) -> JsonObject:
    return {
        "name": one.name,
        "at": iso_utc(one.at),
        "site": one.site,
        "version": one.version,
        "ready": one.ready,
        "headline": one.headline,
        "problem_count": one.problem_count,
        "problems": [{"severity": severity, "text": text} for severity, text in one.problems],
        "last_event": one.last_event,
        "last_event_at": None if one.last_event_at is None else iso_utc(one.last_event_at),
        "waiting": one.waiting,
    }
