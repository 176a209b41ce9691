"""The page's view of one lane: its inputs with their age, its last passages, and the trial of a card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from aiohttp import web
from pydantic import Field, TypeAdapter

from drivers.plate_text import plain_plate
from gateway.domain.credentials import MAX_TEXT, Credential
from gateway.domain.errors import NotFoundError
from gateway.domain.events import EventKind, RecordedEvent
from gateway.domain.printed import readings_of
from gateway.lanes import Lanes
from gateway.store import EventFilter
from gateway.store.cards.cards import Cards
from gateway.store.events.events import Events
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Text
from gateway.web.http.envelope import success
from gateway.web.operation import CONTROL_DEVICES, VIEW_DEVICES, VIEW_EVENTS
from gateway.web.status.event_states import EventStates
from gateway.web.status.snapshot import EventState, user_state, visible_events

_PASSED = (
    EventKind.VEHICLE_PASSED,
    EventKind.VEHICLE_BACKED_OUT,
    EventKind.UNAUTHORISED_PASSAGE,
    EventKind.VEHICLE_TAILGATED,
    EventKind.WRONG_WAY,
)
_READ = (EventKind.ACCESS_GRANTED, EventKind.ACCESS_DENIED)
_LAST = 12


class CardTrial(Body):
    """A card to try at a lane, by its number or plate. `direction` is for two-way lanes; "" for the lane's own."""

    lane_id: Text
    card: Annotated[str, Field(strict=True, min_length=1, max_length=120, pattern=r"\S")]
    direction: Literal["", "entry", "exit"] = ""


@dataclass(frozen=True, kw_only=True)
class StatusLane(Family):
    """The handlers of `/status/lane/points`, `/status/lane/past` and `/status/lane/try`."""

    lanes: Lanes
    cards: Cards
    events: Events
    states: EventStates

    @operation("GET", "/status/lane/points/{lane}", VIEW_DEVICES, "ages")
    async def _points(self, request: web.Request) -> web.StreamResponse:
        """Answer with how old the last report on each of the lane's points is; the points are in the page's stream."""
        return success(ages=self.lanes.ages(request.match_info["lane"]))

    @operation("GET", "/status/lane/past/{lane}", VIEW_DEVICES & VIEW_EVENTS, "passages")
    async def _past(self, request: web.Request, caller: Caller) -> web.StreamResponse:
        """Answer with the lane's last passages, newest first, and its last access decision."""
        lane_id = request.match_info["lane"]
        gate = next((lane.gate_id for lane in self.lanes.lanes() if lane.lane_id == lane_id), None)
        if gate is None:
            raise NotFoundError(f"no lane '{lane_id}' at this site")
        passed = await self._newest(lane_id, gate, _PASSED, limit=_LAST)
        read = await self._newest(lane_id, gate, _READ, limit=1)
        shown = visible_events(await self.states.of((*passed, *read)), user_state(caller))
        fields = {"passages": shown[: len(passed)], "read": shown[len(passed)] if read else None}
        return web.Response(body=b'{"success":true,%b' % _PAST.dump_json(fields)[1:], content_type="application/json")

    async def _newest(
        self, lane_id: str, gate: int, types: tuple[int, ...], *, limit: int
    ) -> tuple[RecordedEvent, ...]:
        """Return the lane's newest events of these types, newest first. They are events of its gate.

        No index has the lane. Counts by gate and type find them, also where the lane has been silent for long.
        """
        page = await self.events.page(EventFilter(device_ids=(gate,), types=types), limit=limit)
        return tuple(event for event in page.events if event.lane_id == lane_id)

    @operation("POST", "/status/lane/try", CONTROL_DEVICES & VIEW_EVENTS, "trial")
    async def _try(self, wanted: CardTrial, caller: Caller) -> web.StreamResponse:
        """Decide as if the card were read now. No gate opens; the event that records it is marked as a test."""
        credential = await self._read(wanted.card)
        trial = await self.lanes.try_card(
            credential, lane_id=wanted.lane_id, direction=wanted.direction, by=caller.username
        )
        decision = trial.decision
        return success(
            trial={
                "opens": trial.opens,
                "text": trial.sentence(),
                "read": credential.shown(),
                "holder": decision.card.holder if decision.card else "",
                "trace": [{"rule": rule.rule, "passed": rule.passed, "seen": rule.seen} for rule in decision.trace],
            }
        )

    async def _read(self, typed: str) -> Credential:
        """Return the first reading that a card is listed for among those that the text may stand for, or its first."""
        readings = readings_of(typed)
        plate = plain_plate(typed)[:MAX_TEXT]
        plates = (Credential(plate=plate),) if plate else ()
        for one in readings + plates:
            if await self.cards.matching((*one.aliases(), *one.other_spellings())):
                return one
        return readings[0]


_PAST = TypeAdapter(Mapping[str, tuple[EventState, ...] | EventState | None])
