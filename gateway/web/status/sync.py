"""Synchronisation with central: its state, and a refresh or a comparison when a technician requests it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gateway.web.answers import SyncAnswer
from gateway.web.auth.callers import Caller
from gateway.web.context import Central
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import EDIT_SETTINGS


class ReconcileDays(Body):
    """The number of past days whose records are to be compared."""

    days: Annotated[int, Field(strict=True, ge=1, le=400)] = 30


class StatusSync(Family):
    """The handlers of `/status/sync`, `/status/sync/refresh` and `/status/sync/reconcile`."""

    @operation("POST", "/status/sync", EDIT_SETTINGS, "sync", reads=True)
    async def _state(self, _: Body) -> SyncAnswer:
        return SyncAnswer(sync=self._known().snapshot())

    @operation("POST", "/status/sync/refresh", EDIT_SETTINGS, "sync")
    async def _refresh(self, _: Body, caller: Caller) -> SyncAnswer:
        """Request a refresh. Success means that it will be done, even after a restart; see `/status/sync`."""
        central = self._known()
        await central.refresh(by=f"user:{caller.username}")
        return SyncAnswer(sync=central.snapshot())

    @operation("POST", "/status/sync/reconcile", EDIT_SETTINGS, "sync")
    async def _reconcile(self, wanted: ReconcileDays, caller: Caller) -> SyncAnswer:
        """Request a comparison. Success means that it will be done, even after a restart; see `/status/sync`."""
        central = self._known()
        await central.reconcile(days=wanted.days, by=f"user:{caller.username}")
        return SyncAnswer(sync=central.snapshot())

    def _known(self) -> Central:
        if self.context.central is None:
            raise RequestRefused(409, "this site stands alone: its site file names no central service")
        return self.context.central
