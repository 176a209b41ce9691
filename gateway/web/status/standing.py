"""What a person decides for longer than one vehicle: standing orders, and corrections of who is where."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import Field

from gateway.lanes.board import AreaBoard, Board
from gateway.lanes.orders import OrderKind
from gateway.store import Store
from gateway.web.admission import Route
from gateway.web.bodies import Body, Id, Text, read_body
from gateway.web.catalogue import AREA_COUNT, LANE_ORDER, PASSBACK_FORGIVE
from gateway.web.envelope import success
from gateway.web.errors import RequestRefused
from gateway.web.sessions import Caller


class LaneOrder(Body):
    """A standing order: `hold_open`, `lock_down`, `normal` (against the schedule), or none: as the schedule says."""

    lane_id: Text
    order: OrderKind | None = None
    reason: Annotated[str, Field(strict=True, max_length=200)] = ""


class AreaCount(Body):
    """How many are in an area."""

    area_id: Text
    count: Annotated[int, Field(strict=True, ge=0, le=1_000_000)]


class PassbackForgive(Body):
    """Whose next passage counts as the first: an access card's by its id, or everybody's."""

    card_id: Id | None = None
    everybody: Annotated[bool, Field(strict=True)] = False


class Standing:
    """`/status/lane/order`, `/status/area/count` and `/status/passback/forgive`. Success means recorded."""

    def __init__(self, *, store: Store, board: Board, areas: AreaBoard) -> None:
        self._store = store
        self._board = board
        self._areas = areas

    def routes(self) -> tuple[Route, ...]:
        """The operations of this family."""
        return (
            Route(LANE_ORDER, self._order),
            Route(AREA_COUNT, self._count),
            Route(PASSBACK_FORGIVE, self._forgive),
        )

    async def _order(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, LaneOrder)
        source = f"user:{caller.username}"
        await self._board.order(
            lane_id=wanted.lane_id, kind=wanted.order, reason=" ".join(wanted.reason.split()), source=source
        )
        return success(lane={"id": wanted.lane_id, "order": wanted.order})

    async def _count(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        wanted = await read_body(request, AreaCount)
        await self._areas.correct_count(wanted.area_id, wanted.count, source=f"user:{caller.username}")
        self._store.changes.bump()
        return success(area={"id": wanted.area_id, "count": wanted.count})

    async def _forgive(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        """Everybody must be asked for by name: a missing card id is a slip."""
        wanted = await read_body(request, PassbackForgive)
        if (wanted.card_id is None) is not wanted.everybody:
            raise RequestRefused(400, "'card_id' or 'everybody' is needed")
        await self._areas.forgive(wanted.card_id, source=f"user:{caller.username}")
        return success(passback={"card_id": wanted.card_id, "everybody": wanted.everybody})
