"""The page's view of one lane: its inputs with their age, its last passages, and the trial of a card."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from drivers.plate_text import plain_plate
from gateway.domain.credentials import MAX_TEXT, Credential
from gateway.domain.errors import NotFoundError
from gateway.domain.events import EventKind, RecordedEvent
from gateway.domain.printed import readings_of
from gateway.store import EventFilter
from gateway.texts import text
from gateway.web.answers import Answer, AnswerPart
from gateway.web.auth.callers import Caller
from gateway.web.families import Family, operation
from gateway.web.http.bodies import Body, Text
from gateway.web.operation import CONTROL_DEVICES, VIEW_DEVICES, VIEW_EVENTS
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


class AgesAnswer(Answer):
    """The age in seconds of the last report on each of the lane's points; the points are in the page's stream."""

    ages: tuple[float | None, ...]


class LanePast(Answer):
    """The lane's last passages, newest first, and its last access decision."""

    passages: tuple[EventState, ...]
    read: EventState | None


class RuleSeen(AnswerPart):
    """A rule of the access decision, whether it passed, and what it saw."""

    rule: str
    passed: bool
    seen: str


class TrialShown(AnswerPart):
    """The outcome of a trial: whether the lane would open, in words too, and each rule of the decision."""

    opens: bool
    text: str
    read: str
    holder: str
    trace: tuple[RuleSeen, ...]


class TrialAnswer(Answer):
    """A card that was tried."""

    trial: TrialShown


class StatusLane(Family):
    """The handlers of `/status/lane/points`, `/status/lane/past` and `/status/lane/try`."""

    @operation("GET", "/status/lane/points/{lane}", VIEW_DEVICES, "ages")
    async def _points(self, lane: str) -> AgesAnswer:
        return AgesAnswer(ages=self.context.lanes.ages(lane))

    @operation("GET", "/status/lane/past/{lane}", VIEW_DEVICES & VIEW_EVENTS, "passages")
    async def _past(self, lane: str, caller: Caller) -> LanePast:
        gate = next((known.gate_id for known in self.context.lanes.lanes() if known.lane_id == lane), None)
        if gate is None:
            raise NotFoundError(text("refused.lane_unknown", lane=lane))
        passed = await self._newest(lane, gate, _PASSED, limit=_LAST)
        read = await self._newest(lane, gate, _READ, limit=1)
        shown = visible_events(await self.context.event_states.of((*passed, *read)), user_state(caller))
        return LanePast(passages=shown[: len(passed)], read=shown[len(passed)] if read else None)

    async def _newest(
        self, lane_id: str, gate: int, types: tuple[int, ...], *, limit: int
    ) -> tuple[RecordedEvent, ...]:
        """Return the lane's newest events of these types, newest first. They are events of its gate.

        No index has the lane. Counts by gate and type find them, also where the lane has been silent for long.
        """
        page = await self.context.store.events.page(EventFilter(device_ids=(gate,), types=types), limit=limit)
        return tuple(event for event in page.events if event.lane_id == lane_id)

    @operation("POST", "/status/lane/try", CONTROL_DEVICES & VIEW_EVENTS, "trial")
    async def _try(self, wanted: CardTrial, caller: Caller) -> TrialAnswer:
        """Decide as if the card were read now. No gate opens; the event that records it is marked as a test."""
        credential = await self._read(wanted.card)
        trial = await self.context.lanes.try_card(
            credential, lane_id=wanted.lane_id, direction=wanted.direction, by=caller.username
        )
        decision = trial.decision
        shown = TrialShown(
            opens=trial.opens,
            text=str(trial.words()),
            read=credential.shown(),
            holder=decision.card.holder if decision.card else "",
            trace=tuple(RuleSeen(rule=one.rule, passed=one.passed, seen=one.seen) for one in decision.trace),
        )
        return TrialAnswer(trial=shown)

    async def _read(self, typed: str) -> Credential:
        """Return the first reading that a card is listed for among those that the text may stand for, or its first."""
        readings = readings_of(typed)
        plate = plain_plate(typed)[:MAX_TEXT]
        plates = (Credential(plate=plate),) if plate else ()
        for one in readings + plates:
            if await self.context.store.cards.matching((*one.aliases(), *one.other_spellings())):
                return one
        return readings[0]
