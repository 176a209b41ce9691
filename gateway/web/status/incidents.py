"""Saved incidents of lanes: listing, saving on request, and download."""

from __future__ import annotations

from aiohttp import web

from gateway.web.answers import IncidentAnswer, IncidentFile, IncidentsAnswer
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Text
from gateway.web.operation import CONTROL_DEVICES, VIEW_EVENTS

_TYPE = "application/gzip"
_MAY = VIEW_EVENTS & CONTROL_DEVICES


class IncidentOf(Body):
    """The lane whose last two minutes are to be saved."""

    lane_id: Text


class StatusIncidents(Family):
    """The handlers of `/status/incident/…`: files for `edge-gateway replay`."""

    @operation("GET", "/status/incident/list", _MAY, "incidents")
    async def _list(self) -> IncidentsAnswer:
        return IncidentsAnswer(incidents=tuple(map(IncidentFile.model_validate, await self.context.incidents.saved())))

    @operation("POST", "/status/incident/save", _MAY, "incident")
    async def _save(self, wanted: IncidentOf) -> IncidentAnswer:
        return IncidentAnswer(incident=IncidentFile.model_validate(await self.context.incidents.save(wanted.lane_id)))

    @operation("GET", "/status/incident/file/{file}", _MAY, "incident", answer_type=_TYPE)
    async def _file(self, file: str) -> web.StreamResponse:
        path = self.context.incidents.path_of(file)
        headers = {"Content-Type": _TYPE, "Content-Disposition": f'attachment; filename="{path.name}"'}
        return web.FileResponse(path, headers=headers)
