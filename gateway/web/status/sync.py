"""Synchronisation with central: its state, and a refresh or a comparison when a technician requests it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from pydantic import Field

from gateway.domain.central_status import CentralStatus
from gateway.web.answers import SyncAnswer
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import EDIT_SETTINGS


class ReconcileDays(Body):
    """The number of past days whose records are to be compared."""

    days: Annotated[int, Field(strict=True, ge=1, le=400)] = 30


class Central(Protocol):
    """The line to central, as far as the page needs it."""

    def snapshot(self) -> CentralStatus:
        """Return the present state of the line. Never waits."""
        ...

    async def reconcile(self, *, days: int, by: str) -> None:
        """Request a comparison of the records of the last `days` with central's; missing ones are sent again.

        The request is on disk when this returns. Raises StoreError.
        """
        ...

    async def refresh(self, *, by: str) -> None:
        """Request that all lists are fetched again, now or as soon as central answers.

        The request is on disk when this returns. Raises StoreError.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class StatusSync(Family):
    """The handlers of `/status/sync`, `/status/sync/refresh` and `/status/sync/reconcile`."""

    central: Central | None

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
        if self.central is None:
            raise RequestRefused(409, "this site stands alone: its site file names no central service")
        return self.central
