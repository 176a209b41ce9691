"""Proof packages of events, for accounts that may see events and footage."""

from __future__ import annotations

import re

from aiohttp import web

from gateway.domain.errors import NotFoundError
from gateway.proof_package import MOST_BETWEEN
from gateway.proof_package.of_events import ProofPackages
from gateway.recording import Recording
from gateway.web.answers import LeavesAnswer
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import path_id
from gateway.web.http.errors import RequestRefused
from gateway.web.http.files import as_file, in_time
from gateway.web.operation import VIEW_EVENTS, VIEW_FOOTAGE


class StatusProofs(Family):
    """The handlers of `/status/proof/{event}`, a ZIP file, and `/status/chain/{camera}`."""

    def __init__(self, *, packages: ProofPackages, recording: Recording) -> None:
        self._packages = packages
        self._recording = recording

    @operation("GET", "/status/proof/{id}", VIEW_EVENTS & VIEW_FOOTAGE, "proof")
    async def _get(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        async with in_time():
            path = await self._packages.of_event(path_id(request), by=caller.username)
        answer = as_file(path, "application/zip")
        answer.headers["Content-Disposition"] = f'attachment; filename="{path.name}"'
        return answer

    @operation("GET", "/status/chain/{id}", VIEW_FOOTAGE, "leaves")
    async def _chain(self, request: web.Request) -> LeavesAnswer:
        """Answer `/status/chain/{camera}?after=…&before=…` with the chain's leaves between two segments' numbers."""
        camera_id = path_id(request)
        if camera_id not in {camera.camera_id for camera in self._recording.cameras()}:
            raise NotFoundError(f"this site has no camera {camera_id}")
        after, before = (_number(request.query.get(name, "")) for name in ("after", "before"))
        if not 0 <= before - after - 1 <= MOST_BETWEEN:
            raise RequestRefused(400, f"'after' and 'before': at most {MOST_BETWEEN} numbers are told between the two")
        leaves = await self._recording.leaves(camera_id, after=after, before=before)
        if leaves is None:
            raise NotFoundError(f"what stood between numbers {after} and {before} is not known any more")
        return LeavesAnswer(leaves=leaves)


def _number(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", text):
        raise RequestRefused(400, "'after' and 'before' are numbers of the chain")
    return int(text)
