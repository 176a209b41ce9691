"""Proof packages of events, for accounts that may see events and footage."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import BaseModel, ConfigDict, Field

from gateway.domain.errors import NotFoundError
from gateway.proof_package import MOST_BETWEEN
from gateway.web.answers import LeavesAnswer
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.errors import RequestRefused
from gateway.web.http.files import as_file, in_time
from gateway.web.operation import VIEW_EVENTS, VIEW_FOOTAGE


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
            raise NotFoundError(f"this site has no camera {camera_id}")
        if not 0 <= asked.before - asked.after - 1 <= MOST_BETWEEN:
            raise RequestRefused(400, f"'after' and 'before': at most {MOST_BETWEEN} numbers are told between the two")
        leaves = await self.context.recording.leaves(camera_id, after=asked.after, before=asked.before)
        if leaves is None:
            raise NotFoundError(f"what stood between numbers {asked.after} and {asked.before} is not known any more")
        return LeavesAnswer(leaves=leaves)
