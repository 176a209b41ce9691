"""A card that may not pass is never granted, and one that may is never refused."""

from __future__ import annotations

from gateway.domain.access import Reason
from gateway.domain.events import Event, EventKind
from gateway.simulation import observations as seen

_SETTLED_AFTER = 60.0
_JUDGED_BY_OTHERS = frozenset({Reason.STORE_UNAVAILABLE, Reason.EXPIRED, Reason.NOT_YET_VALID, Reason.CLOCK_UNTRUSTED})


class AccessCheck:
    """Compares decisions as recorded with the card list. A minute after a change of a card it is left alone."""

    promise = "decisions follow the card list"
    wants = (seen.CardJudged, seen.Acknowledged)

    def __init__(self) -> None:
        self._cards: dict[int, seen.CardJudged] = {}

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
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
