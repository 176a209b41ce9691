"""Files to download at the page: proof packages of events, saved incidents of lanes, the support bundle and the log."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import NotFoundError
from gateway.proof_package import MOST_BETWEEN
from gateway.texts import text
from gateway.web.answers import Answer, IncidentAnswer, IncidentFile, IncidentsAnswer, LeavesAnswer
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Text
from gateway.web.http.errors import RequestRefused
from gateway.web.http.files import as_file, in_time
from gateway.web.operation import CONTROL_DEVICES, EDIT_SETTINGS, VIEW_DEVICES, VIEW_EVENTS, VIEW_FOOTAGE

_TYPE = "application/gzip"
_MAY_SAVE = VIEW_EVENTS & CONTROL_DEVICES
_MAY_COLLECT = EDIT_SETTINGS & VIEW_EVENTS & VIEW_DEVICES
_LINES = 200


class ChainQuery(BaseModel):
    """The numbers of two segments; the leaves between them are answered."""

    model_config = ConfigDict(frozen=True)

    after: Annotated[int, Field(ge=0, lt=10**15)]
    before: Annotated[int, Field(ge=0, lt=10**15)]


class StatusProofs(Family):
    """The handlers of `/status/proof/{event}`, a ZIP file, and `/status/chain/{camera}`."""

    @operation("GET", "/status/proof/{id}", VIEW_EVENTS & VIEW_FOOTAGE, "proof")
    async def _get(self, event_id: int, caller: Caller) -> web.StreamResponse:
        async with in_time():
            path = await self.context.proofs.of_event(event_id, by=caller.username)
        answer = as_file(path, "application/zip")
        answer.headers["Content-Disposition"] = f'attachment; filename="{path.name}"'
        return answer

    @operation("GET", "/status/chain/{id}", VIEW_FOOTAGE, "leaves")
    async def _chain(self, camera_id: int, asked: ChainQuery) -> LeavesAnswer:
        if camera_id not in {camera.camera_id for camera in self.context.recording.cameras()}:
            raise NotFoundError(text("refused.camera_unknown", camera=str(camera_id)))
        if not 0 <= asked.before - asked.after - 1 <= MOST_BETWEEN:
            raise RequestRefused(400, f"'after' and 'before': at most {MOST_BETWEEN} numbers are told between the two")
        leaves = await self.context.recording.leaves(camera_id, after=asked.after, before=asked.before)
        if leaves is None:
            raise NotFoundError(f"what stood between numbers {asked.after} and {asked.before} is not known any more")
        return LeavesAnswer(leaves=leaves)


class IncidentOf(Body):
    """The lane whose last two minutes are to be saved."""

    lane_id: Text


class StatusIncidents(Family):
    """The handlers of `/status/incident/…`: files for `edge-gateway replay`."""

    @operation("GET", "/status/incident/list", _MAY_SAVE, "incidents")
    async def _list(self) -> IncidentsAnswer:
        return IncidentsAnswer(incidents=tuple(map(IncidentFile.model_validate, await self.context.incidents.saved())))

    @operation("POST", "/status/incident/save", _MAY_SAVE, "incident")
    async def _save(self, wanted: IncidentOf) -> IncidentAnswer:
        return IncidentAnswer(incident=IncidentFile.model_validate(await self.context.incidents.save(wanted.lane_id)))

    @operation("GET", "/status/incident/file/{file}", _MAY_SAVE, "incident", answer_type=_TYPE)
    async def _file(self, file: str) -> web.StreamResponse:
        path = self.context.incidents.path_of(file)
        headers = {"Content-Type": _TYPE, "Content-Disposition": f'attachment; filename="{path.name}"'}
        return web.FileResponse(path, headers=headers)


class LogAnswer(Answer):
    """The last lines of the log."""

    lines: tuple[str, ...]


class StatusSupport(Family):
    """The handlers of `/status/bundle`, a file for support staff, and `/status/log`, its last 200 lines.

    Both are without secrets.
    """

    @operation("GET", "/status/log", _MAY_COLLECT, "lines")
    async def _log(self) -> LogAnswer:
        return LogAnswer(lines=tuple(await self.context.support.log_tail(_LINES)))

    @operation("GET", "/status/bundle", _MAY_COLLECT, "bundle", answer_type=_TYPE)
    async def _bundle(self) -> web.StreamResponse:
        made = await self.context.support.make()
        headers = {"Content-Disposition": f'attachment; filename="{made.name}"', "Cache-Control": "no-store"}
        return web.Response(body=made.content, content_type=_TYPE, headers=headers)
