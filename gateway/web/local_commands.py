"""Requests of commands to the register and for the site file, on the local socket alone.

Only root and the gateway's own user may: these requests carry hashes of passwords and new rights.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from aiohttp import web
from pydantic import ValidationError

from gateway.runtime.unix_sockets import peer_user
from gateway.site.running_site import Reloaded, RunningSite, TrialEnd
from gateway.web.auth.admission import local_caller
from gateway.web.http.bodies import read_body, read_bytes
from gateway.web.http.errors import RequestRefused, from_json_text
from gateway.web.register.changes import (
    CHANGE,
    REGISTER_PATH,
    RELOAD_PATH,
    TRIAL_PATH,
    Answer,
    ReaderUnseen,
    Reload,
    SiteChange,
)
from gateway.web.register.register import Register


@dataclass(frozen=True, kw_only=True)
class LocalCommands:
    """The handlers. `site_file`: None for a gateway that cannot read it again."""

    register: Register
    site_file: RunningSite | None

    def routes(self) -> tuple[web.RouteDef, ...]:
        """Return the routes. They are no operations of the interface."""
        return (
            web.post(REGISTER_PATH, self._change),
            web.post(RELOAD_PATH, self._reload),
            web.post(TRIAL_PATH, self._trial),
        )

    async def _change(self, request: web.Request) -> web.StreamResponse:
        _refuse_all_but_owner(request)
        try:
            change = CHANGE.validate_json(await read_bytes(request))
        except ValidationError:
            return _said(Answer(error="the gateway does not know this change; it runs another release"))
        return _said(await self.register.ask(change))

    async def _reload(self, request: web.Request) -> web.StreamResponse:
        """Take over the file. Answer at once while its changes are on trial: the interface may be served anew."""
        _refuse_all_but_owner(request)
        wanted = await read_body(request, Reload)
        if self.site_file is None:
            return _said(Answer(error="this gateway does not read its site file again"))
        if wanted.dry_run:
            return _said(_of_file(await self.site_file.compare()))
        done = await self.site_file.reload(by="command", wait=wanted.wait, lanes_are_free=wanted.now)
        is_confirmed = done.is_taken and not done.on_trial
        return _said(_of_file(done).model_copy(update={"confirmed": is_confirmed, "run": self.site_file.run_name}))

    async def _trial(self, request: web.Request) -> web.StreamResponse:
        """Answer whether a change is still on trial, and how the last one ended."""
        _refuse_all_but_owner(request)
        file = self.site_file
        if file is None:
            return _said(Answer())
        if file.trial is not None:
            return _said(Answer(on_trial=True, run=file.run_name))
        return _said(_of_trial(file.last_outcome, run=file.run_name))


def _refuse_all_but_owner(request: web.Request) -> None:
    """Raise RequestRefused (403) for others on the local socket, HTTPNotFound for the network.

    Members of the group may open the socket too. A process of the gateway itself is refused by `local_caller`.
    """
    if local_caller(request) is None or request.transport is None:
        raise web.HTTPNotFound
    if peer_user(request.transport.get_extra_info("socket")) not in (0, os.geteuid()):
        raise RequestRefused(403, "only root and the gateway's own user may do this; try it with sudo")


def _said(answer: Answer) -> web.StreamResponse:
    return from_json_text(answer.model_dump_json().encode())


def _of_file(found: Reloaded) -> Answer:
    changes = tuple(
        SiteChange(
            part=one.part,
            id=one.id,
            name=one.name,
            how=one.how,
            keys=one.keys,
            devices=one.devices,
            lanes=one.lanes,
            text=str(one.words()),
        )
        for one in found.changes
    )
    return Answer(faults=found.faults, changes=changes, refused=found.refused, on_trial=found.on_trial)


def _of_trial(end: TrialEnd, *, run: str) -> Answer:
    unseen = tuple(
        ReaderUnseen(device_id=one.device_id, name=one.name, proof=one.proof.value, text=str(one.words))
        for one in end.unseen
    )
    return Answer(confirmed=end.confirmed, why=str(end.why), unseen=unseen, run=run)
