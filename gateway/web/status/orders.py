"""Orders that only the page offers: standing orders, a stop, corrections of counts and anti-passback.

A problem of the site is acknowledged here, too.
"""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from pydantic import Field

from gateway.domain.commands import GateAction
from gateway.domain.errors import NotFoundError
from gateway.domain.problems import ProblemKind
from gateway.lanes.machine.state.orders import Order, OrderKind
from gateway.lanes.snapshots import LaneSnapshot
from gateway.problems.problem import SitePart
from gateway.texts import text
from gateway.web.answers import Answer, AnswerPart
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Id, Text
from gateway.web.http.dates import refuse_late
from gateway.web.http.errors import RequestRefused
from gateway.web.operation import CONTROL_DEVICES, EDIT_ENTRIES
from gateway.web.operations.devices import CommandRecord, command_record

_HOUR_SECONDS = 3600.0


class OrderSeen(Body):
    """A standing order as the person sees it, with who gave it and why; without a `kind` the schedule counts."""

    kind: OrderKind | None = None
    by: Annotated[str, Field(strict=True, max_length=400)] = ""
    reason: Annotated[str, Field(strict=True, max_length=400)] = ""

    def is_of(self, standing: Order | None) -> bool:
        """Return whether this order is the one in force; None while the schedule counts."""
        if standing is None:
            return self.kind is None
        return (self.kind, self.by, self.reason) == (standing.kind, standing.by, standing.reason)


class LaneOrder(Body):
    """A standing order: `hold_open`, `lock_down`, or `normal` to override the schedule; null to follow the schedule.

    `instead_of` is the lane's `standing` as the person sees it. If another order is in force, this one is refused.
    """

    lane_id: Text
    order: OrderKind | None = None
    reason: Annotated[str, Field(strict=True, max_length=200)] = ""
    instead_of: OrderSeen | None = None


class LaneStop(Body):
    """The lane whose gate is to stop where it is."""

    lane_id: Text


class AreaCount(Body):
    """A correction of the number of vehicles in an area."""

    area_id: Text
    count: Annotated[int, Field(strict=True, ge=0, le=1_000_000)]


class PassbackForgive(Body):
    """The card whose anti-passback state is to be forgotten, by its id; or all cards, with `everybody`."""

    card_id: Id | None = None
    everybody: Annotated[bool, Field(strict=True)] = False


class OrderedLane(AnswerPart):
    """A lane and its standing order; null: it follows the schedule."""

    id: str
    order: OrderKind | None


class OrderAnswer(Answer):
    """The order is on disk."""

    lane: OrderedLane


class StoppedLane(AnswerPart):
    """The lane whose gate was told to stop."""

    id: str


class StopAnswer(Answer):
    """A stop was sent, also if the disk failed; its `recorded` is false then."""

    lane: StoppedLane
    command: CommandRecord


class CountedArea(AnswerPart):
    """An area and the number of vehicles in it."""

    id: str
    count: int


class AreaAnswer(Answer):
    """The count is on disk."""

    area: CountedArea


class Forgiven(AnswerPart):
    """The card whose anti-passback state was forgotten, or all cards."""

    card_id: int | None
    everybody: bool


class ForgivenAnswer(Answer):
    """The anti-passback state is forgotten on disk."""

    passback: Forgiven


class StatusOrders(Family):
    """The handlers of `/status/lane/order` and `/stop`, `/status/area/count` and `/status/passback/forgive`."""

    # The interface's specification has no operations for these.
    @operation("POST", "/status/lane/order", CONTROL_DEVICES, "lane")
    async def _order(self, wanted: LaneOrder, request: web.Request, caller: Caller) -> OrderAnswer:
        refuse_late(request, self.context.clock)
        lane = self._lane(wanted.lane_id)
        if wanted.instead_of is not None and not wanted.instead_of.is_of(lane.standing):
            present = lane.order_text or text("lane.as_scheduled")
            raise RequestRefused(409, text("refused.order_changed", why=present))
        source = f"user:{caller.username}"
        await self.context.lanes.order(
            lane_id=wanted.lane_id, kind=wanted.order, reason=" ".join(wanted.reason.split()), source=source
        )
        return OrderAnswer(lane=OrderedLane(id=wanted.lane_id, order=wanted.order))

    def _lane(self, lane_id: str) -> LaneSnapshot:
        lane = next((lane for lane in self.context.lanes.lanes() if lane.lane_id == lane_id), None)
        if lane is None:
            raise NotFoundError(text("refused.lane_unknown", lane=lane_id))
        return lane

    @operation("POST", "/status/lane/stop", CONTROL_DEVICES, "lane")
    async def _stop(self, wanted: LaneStop, caller: Caller) -> StopAnswer:
        """Send a stop, late or not. Whether the gate stands still is shown by its position and by events."""
        lane = self._lane(wanted.lane_id)
        source = f"user:{caller.username}"
        command = await self.context.lanes.command(device_id=lane.gate_id, action=GateAction.STOP, source=source)
        return StopAnswer(lane=StoppedLane(id=lane.lane_id), command=command_record(command))

    @operation("POST", "/status/area/count", EDIT_ENTRIES, "area")
    async def _count(self, wanted: AreaCount, caller: Caller) -> AreaAnswer:
        await self.context.areas.correct_count(wanted.area_id, wanted.count, source=f"user:{caller.username}")
        self.context.store.changes.bump()
        return AreaAnswer(area=CountedArea(id=wanted.area_id, count=wanted.count))

    @operation("POST", "/status/passback/forgive", EDIT_ENTRIES, "passback")
    async def _forgive(self, wanted: PassbackForgive, caller: Caller) -> ForgivenAnswer:
        """Forget a card's anti-passback state, or that of all cards with `everybody`: a missing id is an error."""
        if (wanted.card_id is None) is not wanted.everybody:
            raise RequestRefused(400, "'card_id' or 'everybody' is needed")
        await self.context.areas.forgive(wanted.card_id, source=f"user:{caller.username}")
        return ForgivenAnswer(passback=Forgiven(card_id=wanted.card_id, everybody=wanted.everybody))


class ProblemNamed(Body):
    """A problem, identified as in the list of problems. For `silent_hours`, nobody is called for it."""

    kind: ProblemKind
    part: SitePart
    id: Annotated[str, Field(strict=True, max_length=200)] = ""
    subject: Annotated[str, Field(strict=True, max_length=1000)] = ""
    silent_hours: Annotated[float, Field(ge=0, le=168)] = 0.0


class ProblemKey(AnswerPart):
    """The identity of a problem in the list of problems."""

    kind: ProblemKind
    part: SitePart
    id: str
    subject: str


class AcknowledgedAnswer(Answer):
    """The problem that a person knows of now."""

    problem: ProblemKey


class StatusProblems(Family):
    """The handler of `/status/problem/acknowledge`."""

    @operation("POST", "/status/problem/acknowledge", CONTROL_DEVICES, "problem")
    async def _acknowledge(self, named: ProblemNamed, caller: Caller) -> AcknowledgedAnswer:
        key = (named.kind, named.part, named.id, named.subject)
        self.context.acknowledge(key, by=caller.username, silent_seconds=named.silent_hours * _HOUR_SECONDS)
        return AcknowledgedAnswer(problem=ProblemKey.model_validate(named))
