"""Saved incidents of lanes: listing, saving on request, and download."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from aiohttp import web

from gateway.lanes.incidents import Incidents
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.http.bodies import Body, Text, read_body
from gateway.web.http.envelope import success
from gateway.web.operation import Operation, needs

_TYPE = "application/gzip"
_MAY = needs("can_view_events") & needs("can_control_devices")

INCIDENT_LIST = Operation("GET", "/status/incident/list", _MAY, "incidents")
INCIDENT_SAVE = Operation("POST", "/status/incident/save", _MAY, "incident")
INCIDENT_FILE = Operation("GET", "/status/incident/file/{file}", _MAY, "incident", answer_type=_TYPE)


class IncidentOf(Body):
    """The lane whose last two minutes are to be saved."""

    lane_id: Text


@dataclass(frozen=True, kw_only=True)
class StatusIncidents:
    """The handlers of `/status/incident/…`: files for `edge-gateway replay`."""

    incidents: Incidents

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (
            Route(INCIDENT_LIST, self._list),
            Route(INCIDENT_SAVE, self._save),
            Route(INCIDENT_FILE, self._file),
        )

    async def _list(self, _: web.Request, __: Caller) -> web.StreamResponse:
        return success(incidents=[asdict(one) for one in await self.incidents.saved()])

    async def _save(self, request: web.Request, _: Caller) -> web.StreamResponse:
        wanted = await read_body(request, IncidentOf)
        return success(incident=asdict(await self.incidents.save(wanted.lane_id)))

    async def _file(self, request: web.Request, _: Caller) -> web.StreamResponse:
        path = self.incidents.path_of(request.match_info["file"])
        headers = {"Content-Type": _TYPE, "Content-Disposition": f'attachment; filename="{path.name}"'}
        return web.FileResponse(path, headers=headers)
