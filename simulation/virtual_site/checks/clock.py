"""Promise 9: a clock step neither expires cards nor reorders events, and stamps of an untrusted clock are marked."""

from __future__ import annotations

from gateway.domain.access import Reason
from gateway.domain.events import Event, EventKind
from simulation.virtual_site import observations as seen

_LATE_MICROS = 3_600_000_000
_SLACK_MICROS = 1_000
_BESIDE_THE_LANE = frozenset({EventKind.COMMAND_RECORDED, EventKind.COMMAND_REFUSED, EventKind.COMMAND_UNKNOWN})
_DECIDED_WITHIN_MICROS = 2_000_000
_OF_TIME = frozenset({Reason.EXPIRED, Reason.NOT_YET_VALID})


class ClockCheck:
    """The comparison of each event's time with the true time, and with the spans in which the clock was not trusted.

    In such a span, lanes that need a trusted clock refuse cards with a limited validity, and no other lane does.
    """

    promise = "9 clock steps do no harm"
    wants = (seen.ClockJudged, seen.CardJudged, seen.Acknowledged)

    def __init__(
        self, *, sure_time_lanes: frozenset[str] = frozenset(), cards_with_days: frozenset[int] = frozenset()
    ) -> None:
        self._sure_time_lanes = sure_time_lanes
        self._cards_with_days = cards_with_days
        self._wrong: list[tuple[int, int]] = []
        self._wrong_since: int | None = None
        self._good: set[int] = set()
        self._latest: dict[str, int] = {}

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.ClockJudged():
                self._judge_clock(observation)
            case seen.CardJudged(good=True):
                self._good.add(observation.card_id)
            case seen.CardJudged():
                self._good.discard(observation.card_id)
            case seen.Acknowledged():
                faults = (self._judge(event, observation.true_micros) for event in observation.entry.events)
                return next((fault for fault in faults if fault), "")
            case _:
                pass
        return ""

    def _judge_clock(self, observation: seen.ClockJudged) -> None:
        if not observation.trusted:
            self._wrong_since = observation.true_micros
        elif self._wrong_since is not None:
            self._wrong.append((self._wrong_since, observation.true_micros))
            self._wrong_since = None

    def _judge(self, event: Event, now: int) -> str:
        denied = event.kind is EventKind.ACCESS_DENIED and event.data.get("reason") in _OF_TIME
        if denied and event.data.get("card_id") in self._good:
            return f"card {event.data.get('card_id')} is valid for years and was denied: {event.description}"
        if fault := self._judge_stance(event):
            return fault
        if not event.clock_trusted:
            recently = self._wrong_since is not None or (self._wrong and now - self._wrong[-1][1] < _LATE_MICROS)
            return "" if recently else f"{event.name} is marked as untrusted, though the clock was right"
        since = self._wrong_since
        if any(start < event.date_at < end for start, end in self._wrong) or (since and event.date_at > since):
            return f"{event.name} is marked as trusted, but was stamped while the clock was not"
        if not now - _LATE_MICROS < event.date_at <= now + _SLACK_MICROS:
            return f"{event.name} is marked as trusted and stamped {(event.date_at - now) / 1e6:.1f} s from now"
        return self._out_of_order(event)

    def _judge_stance(self, event: Event) -> str:
        """Judge a decision made while the clock was not trusted, by whether its lane needs a trusted one."""
        is_concerned = event.lane_id in self._sure_time_lanes and event.data.get("card_id") in self._cards_with_days
        wrong = [*self._wrong, *([(self._wrong_since, event.date_at + 1)] if self._wrong_since is not None else [])]
        if event.kind is EventKind.ACCESS_GRANTED and is_concerned:
            if any(start + _DECIDED_WITHIN_MICROS < event.date_at < end for start, end in wrong):
                return f"{event.lane_id} wants a sure time, and granted a card with days without it"
        elif event.kind is EventKind.ACCESS_DENIED and event.data.get("reason") == Reason.CLOCK_UNTRUSTED:
            recently = any(start <= event.date_at < end + _DECIDED_WITHIN_MICROS for start, end in wrong)
            if not is_concerned or not recently:
                return f"{event.lane_id} refused for its clock, which did not matter: {event.description}"
        return ""

    def _out_of_order(self, event: Event) -> str:
        """Judge the order of one lane's events.

        Events of commands are left out, because they may be on disk before earlier events of the lane.
        """
        if not event.lane_id or event.kind in _BESIDE_THE_LANE:
            return ""
        latest = self._latest.get(event.lane_id, 0)
        self._latest[event.lane_id] = max(latest, event.date_at)
        return f"{event.name} was recorded after a later event of {event.lane_id}" if event.date_at < latest else ""
