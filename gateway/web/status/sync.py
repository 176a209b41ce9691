"""Synchronisation with central: its state, and a refresh or a comparison when a technician requests it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Protocol

from aiohttp import web
from pydantic import Field, TypeAdapter

from gateway.domain.central_status import CentralStatus
from gateway.web.auth.admission import Route
from gateway.web.auth.callers import Caller
from gateway.web.http.bodies import Body, read_body
from gateway.web.http.envelope import success
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import Operation, needs

SYNC_STATE = Operation("POST", "/status/sync", needs("can_edit_settings"), "sync", reads=True)
SYNC_REFRESH = Operation("POST", "/status/sync/refresh", needs("can_edit_settings"), "sync")
SYNC_RECONCILE = Operation("POST", "/status/sync/reconcile", needs("can_edit_settings"), "sync")


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
class StatusSync:
    """The handlers of `/status/sync`, `/status/sync/refresh` and `/status/sync/reconcile`."""

    central: Central | None

    def routes(self) -> tuple[Route, ...]:
        """Return the operations of this family."""
        return (
            Route(SYNC_STATE, self._state),
            Route(SYNC_REFRESH, self._refresh),
            Route(SYNC_RECONCILE, self._reconcile),
        )

    async def _state(self, request: web.Request, _: Caller) -> web.StreamResponse:
        await read_body(request, Body)
        return success(sync=_json(self._known().snapshot()))

    async def _refresh(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        """Request a refresh. Success means that it will be done, even after a restart; see `/status/sync`."""
        await read_body(request, Body)
        central = self._known()
        await central.refresh(by=f"user:{caller.username}")
        return success(sync=_json(central.snapshot()))

    async def _reconcile(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        """Request a comparison. Success means that it will be done, even after a restart; see `/status/sync`."""
        wanted = await read_body(request, ReconcileDays)
        central = self._known()
        await central.reconcile(days=wanted.days, by=f"user:{caller.username}")
        return success(sync=_json(central.snapshot()))

    def _known(self) -> Central:
        if self.central is None:
            raise RequestRefused(409, "this site stands alone: its site file names no central service")
        return self.central


_STATUS = TypeAdapter(CentralStatus)


def _json(status: CentralStatus) -> object:
    return _STATUS.dump_python(status, mode="json")
