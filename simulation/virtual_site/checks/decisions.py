"""Promise 6 and the access decision: each card is decided by the card list, and at once.

No lane is delayed by central, a hanging disk, a wrong clock or the trouble of another lane.
"""

from __future__ import annotations

from gateway.domain.access import Reason
from gateway.domain.commands import GateAction
from gateway.domain.events import Event, EventKind
from simulation.virtual_site import observations as seen

_SETTLED_AFTER = 60.0
_JUDGED_BY_OTHERS = frozenset({Reason.STORE_UNAVAILABLE, Reason.EXPIRED, Reason.NOT_YET_VALID, Reason.CLOCK_UNTRUSTED})
_AT_MOST = 0.25
_OF_A_PERSON = 1.5
_PERSON_ASKED = "a person asked for an open"


class AccessCheck:
    """The comparison of recorded decisions with the card list. A card is not judged for a minute after it changed."""

    promise = "decisions follow the card list"
    wants = (seen.CardJudged, seen.Acknowledged)

    def __init__(self) -> None:
        self._cards: dict[int, seen.CardJudged] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.CardJudged():
                self._cards[observation.card_id] = observation
            case seen.Acknowledged():
                faults = (self._judge(event, observation.at) for event in observation.entry.events)
                return next((fault for fault in faults if fault), "")
            case _:
                pass
        return ""

    def _judge(self, event: Event, now: float) -> str:
        if event.kind not in {EventKind.ACCESS_GRANTED, EventKind.ACCESS_DENIED}:
            return ""
        number = event.data.get("card_id")
        judged = self._cards.get(number) if isinstance(number, int) else None
        if event.kind is EventKind.ACCESS_GRANTED:
            if judged is None:
                return f"a card that is not on the list was granted: {event.description}"
            settled = judged.at == 0 or now - judged.at > _SETTLED_AFTER
            return f"card {number} may not pass and was granted" if settled and judged.good is False else ""
        if judged is None or event.data.get("reason") in _JUDGED_BY_OTHERS:
            return ""
        settled = judged.at == 0 or now - judged.at > _SETTLED_AFTER
        return f"card {number} may pass and was denied: {event.description}" if settled and judged.good else ""


class DelayCheck:
    """The rule that a valid card at a working lane reaches the gate's driver at once, whatever else is broken.

    A person's open may wait a moment for the disk, but no longer. One that still waits when the gateway is told to stop
    need not be sent.
    """

    promise = "6 no lane is delayed"
    wants = (
        seen.Presented,
        seen.Asked,
        seen.Called,
        seen.Drove,
        seen.Acknowledged,
        seen.ClockJudged,
        seen.ToldToStop,
        seen.Ended,
    )

    def __init__(self, *, sure_time_lanes: frozenset[str] = frozenset()) -> None:
        """Make the check. `sure_time_lanes` refuse cards with a limited validity while the clock is not trusted.

        They may also refuse one that was read right before.
        """
        self._sure_time_lanes = sure_time_lanes
        self._waiting: dict[str, tuple[float, str]] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        fault = self._overdue(observation.at)
        match observation:
            case seen.Presented(good=True, calm=True):
                self._waiting[observation.lane] = observation.at + _AT_MOST, f"good card {observation.card} was read"
            case seen.Asked(action=GateAction.OPEN, calm=True):
                self._waiting.setdefault(observation.lane, (observation.at + _OF_A_PERSON, _PERSON_ASKED))
            case seen.Asked():
                self._waiting.pop(observation.lane, None)
            case seen.Called(action=GateAction.OPEN):
                self._waiting.pop(observation.lane, None)
            case seen.ClockJudged(trusted=False):
                for lane in self._sure_time_lanes:
                    self._waiting.pop(lane, None)
            case seen.ToldToStop():
                self._waiting = {lane: one for lane, one in self._waiting.items() if one[1] != _PERSON_ASKED}
            case seen.Ended():
                self._waiting.clear()
            case _:
                pass
        return fault

    def _overdue(self, now: float) -> str:
        for lane, (due, what) in self._waiting.items():
            if now > due:
                del self._waiting[lane]
                return f"{what} in {lane}, and its gate was not commanded by {due:.3f}, though nothing was wrong there"
        return ""
