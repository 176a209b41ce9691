"""Promise 1: close is never sent while a safety point is active, unknown or stale, or has not been clear for a while.

A gate that closes by the gateway's command is opened again when something comes into its way.
"""

from __future__ import annotations

from collections import Counter

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from simulation.virtual_site import observations as seen
from simulation.virtual_site.lane_field import CLOSING, FIRE, PHOTOCELL, POSITION

_SAFETY = (CLOSING, PHOTOCELL)
_OPENS = (*_SAFETY, FIRE)
_CLOSES_WITHIN = 14.0
_ANSWERS_WITHIN = 3.5
_AT_ONCE = 0.25
_TRIES_AGAIN_WITHIN = 1.25


class ClosingCheck:
    """The judgement of each close when it is sent, by the reports up to then and by what really was under the gate."""

    promise = "1 close is never unsafe"
    wants = (
        seen.PointReported,
        seen.PositionReported,
        seen.Refreshed,
        seen.GateAway,
        seen.ModuleAway,
        seen.PollMissed,
        seen.Wrote,
        seen.Ended,
    )

    def __init__(
        self, *, stale: float, clear: float, clear_after_loss: float, fire_lanes: frozenset[str] = frozenset()
    ) -> None:
        """Make the check. All times are in seconds, as in the site file. `fire_lanes` have a fire input."""
        self._fire_lanes = fire_lanes
        self._stale = stale
        self._clear = clear
        self._clear_after_loss = clear_after_loss
        self._returned: dict[tuple[str, str], float] = {}
        self._points: dict[tuple[str, str], seen.PointReported] = {}
        self._positions: dict[str, seen.PositionReported] = {}
        self._refreshed: dict[tuple[str, str], float] = {}
        self._away: set[str] = set()
        self._missed: set[tuple[str, str]] = set()

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        match observation:
            case seen.PointReported():
                place = observation.lane, observation.point
                before = self._points.get(place)
                if before is None or before.state is PointState.UNKNOWN or place in self._missed:
                    self._returned[place] = observation.at
                self._points[place] = observation
                self._missed.discard(place)
            case seen.PositionReported():
                self._positions[observation.lane] = observation
            case seen.Refreshed():
                self._note_refreshed(observation)
            case seen.GateAway():
                self._note_away(observation)
            case seen.ModuleAway():
                self._forget_points(observation)
            case seen.PollMissed():
                self._missed.update((observation.lane, point) for point in observation.points)
            case seen.Ended():
                self._points.clear()
                self._missed.clear()
                self._refreshed.clear()
                self._positions.clear()
            case seen.Wrote(action=GateAction.CLOSE):
                return self._judge(observation)
            case _:
                pass
        return ""

    def _note_refreshed(self, observation: seen.Refreshed) -> None:
        for point in observation.points:
            place, at = (observation.lane, point), observation.at
            reported = self._points.get(place)
            is_late = (
                reported is not None and at - max(reported.at, self._refreshed.get(place, reported.at)) > self._stale
            )
            if is_late or place in self._missed:
                self._returned[place] = at
            self._refreshed[place] = at
            self._missed.discard(place)

    def _note_away(self, observation: seen.GateAway) -> None:
        if not observation.away:
            self._away.discard(observation.lane)
            return
        self._away.add(observation.lane)
        self._positions.pop(observation.lane, None)
        self._forget_points(observation)

    def _forget_points(self, observation: seen.GateAway | seen.ModuleAway) -> None:
        for point in observation.points if observation.away else ():
            self._points.pop((observation.lane, point), None)

    def _judge(self, close: seen.Wrote) -> str:
        lane = close.lane
        if lane in self._away:
            return f"close was sent in {lane} while its controller was away"
        position = self._positions.get(lane)
        if (
            position is None
            or position.position is GatePosition.UNKNOWN
            or self._age(position, POSITION, close) > self._stale
        ):
            return f"close was sent in {lane} while the gate's position was unknown or stale"
        faults = [self._fault_of(point, close) for point in _SAFETY]
        if lane in self._fire_lanes:
            faults.append(self._not_known_off(FIRE, close))
        if fault := next((fault for fault in faults if fault), ""):
            return f"close was sent in {lane} while {fault}"
        if close.in_the_way:
            return f"close was sent in {lane} though {', '.join(close.in_the_way)} was occupied and had been read so"
        return ""

    def _not_known_off(self, point: str, close: seen.Wrote) -> str:
        reported = self._points.get((close.lane, point))
        if reported is None or reported.state is PointState.UNKNOWN:
            return f"{point} was unknown"
        if reported.state is PointState.ON:
            return f"{point} was active"
        if (close.lane, point) in self._missed:
            return f"{point} had not answered when it was asked last"
        age = self._age(reported, point, close)
        return f"{point} was stale, read {age:.1f} s before" if age > self._stale else ""

    def _fault_of(self, point: str, close: seen.Wrote) -> str:
        if fault := self._not_known_off(point, close):
            return fault
        reported = self._points[close.lane, point]
        returned = self._returned[close.lane, point]
        if close.at < reported.at + self._clear:
            return f"{point} had been off for {close.at - reported.at:.2f} s only"
        if close.at < returned + self._clear_after_loss:
            return f"{point} had been known again for {close.at - returned:.2f} s only"
        once = self._refreshed.get((close.lane, point), reported.at) <= max(reported.at, returned)
        return f"{point} had been read as off only once" if once else ""

    def _age(self, reported: seen.PointReported | seen.PositionReported, point: str, close: seen.Wrote) -> float:
        return close.at - max(reported.at, self._refreshed.get((close.lane, point), reported.at))


class ReopeningCheck:
    """The rule that an open follows a close when something comes into the way, or a fire breaks out.

    The rule holds from the moment in which a close may be on the line until an open is written; giving the open to the
    driver is not enough. While the driver has an open, or a person's stop that replaced it, the line decides when it is
    sent. If the line was down or busy until its deadline, another open must follow at once. An open that was refused
    for any other reason gives no delay. There are four exceptions:

    - A person's stop was seen to work, or was acknowledged while the gate stands half-way or open, as long as the gate
      is not seen to close.
    - The gate was seen to close after the close and to stand open again: its own safety has opened it.
    - The obstacle is gone again before the close was answered, or while the line holds up an open, since none could be
      sent before.
    - The gate was seen to stand still before: the photocell may belong to another device, which reports later.
    """

    promise = "1 what closes onto something is opened again"
    wants = (
        seen.PointReported,
        seen.PositionReported,
        seen.GateAway,
        seen.ModuleAway,
        seen.PollMissed,
        seen.Wrote,
        seen.Answered,
        seen.Called,
        seen.Asked,
        seen.Ended,
    )

    def __init__(self) -> None:
        self._unanswered: set[str] = set()
        self._opens: Counter[str] = Counter()
        self._stops: Counter[str] = Counter()
        self._kept_by_line: set[str] = set()
        self._closing: dict[str, float] = {}
        self._due: dict[tuple[str, str], float] = {}
        self._closed: set[str] = set()
        self._asked: set[str] = set()
        self._stop_acknowledged: set[str] = set()
        self._position: dict[str, GatePosition] = {}
        self._rests: set[str] = set()
        self._seen_closing: set[str] = set()

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        fault = self._overdue(observation.at)
        match observation:
            case seen.Wrote(action=GateAction.CLOSE) if observation.lane not in self._closed:
                self._closing[observation.lane] = observation.at
                self._asked.discard(observation.lane)
                self._stop_acknowledged.discard(observation.lane)
                self._rests.discard(observation.lane)
                self._seen_closing.discard(observation.lane)
                self._kept_by_line.discard(observation.lane)
                self._unanswered.add(observation.lane)
            case seen.Answered(action=GateAction.CLOSE):
                self._unanswered.discard(observation.lane)
            case seen.Called():
                self._note_called(observation)
            case seen.Answered(action=GateAction.OPEN):
                self._note_answered_open(observation)
            case seen.PositionReported():
                self._note_position(observation)
            case seen.GateAway():
                self._over(observation.lane)
            case seen.Answered(action=GateAction.STOP):
                self._note_answered_stop(observation)
            case seen.Wrote(action=GateAction.OPEN):
                self._over(observation.lane)
            case seen.Asked(action=GateAction.STOP):
                self._asked.add(observation.lane)
                if self._waits_for_line(observation.lane):
                    self._put_off(observation)
            case seen.Ended():
                self._closing.clear()
                self._due.clear()
                self._unanswered.clear()
                self._opens.clear()
                self._stops.clear()
                self._kept_by_line.clear()
                self._position.clear()
            case _:
                self._note_points(observation)
        return fault

    def _note_called(self, called: seen.Called) -> None:
        if called.action is GateAction.OPEN:
            self._opens[called.lane] += 1
            self._kept_by_line.discard(called.lane)
        elif called.action is GateAction.STOP:
            self._stops[called.lane] += 1

    def _note_answered_open(self, answered: seen.Answered) -> None:
        """Note that the driver returned from an open. If it was written, the rule for this close is over already."""
        lane = answered.lane
        self._opens[lane] = max(0, self._opens[lane] - 1)
        if not answered.kept_by_line or lane not in self._closing:
            return
        if answered.at - self._closing[lane] >= _CLOSES_WITHIN:
            self._over(lane)
        else:
            self._kept_by_line.add(lane)
            self._put_off(answered)

    def _waits_for_line(self, lane: str) -> bool:
        return self._opens[lane] > 0 or lane in self._kept_by_line

    def _put_off(
        self, observation: seen.Answered | seen.Asked | seen.PositionReported, seconds: float = _TRIES_AGAIN_WITHIN
    ) -> None:
        """Give the gateway `seconds` for the next open, because the line held one up or a person's stop replaced it."""
        for point in _OPENS:
            if (due := self._due.get((observation.lane, point))) is not None:
                self._due[observation.lane, point] = max(due, observation.at + seconds)

    def _note_points(self, observation: seen.Observation) -> None:
        match observation:
            case seen.PointReported(state=PointState.OFF):
                self._out_of_the_way(observation)
            case seen.PointReported(point=point, state=state) if point == FIRE:
                if state is PointState.ON and observation.lane not in self._asked:
                    self._in_the_way(observation)
            case seen.PointReported():
                self._in_the_way(observation)
            case seen.PollMissed(points=points, in_a_row=2) if CLOSING in points:
                self._in_the_way(seen.PointReported(observation.at, observation.lane, CLOSING, PointState.UNKNOWN))
            case seen.ModuleAway(away=True, points=points) if PHOTOCELL in points:
                self._in_the_way(seen.PointReported(observation.at, observation.lane, PHOTOCELL, PointState.UNKNOWN))
            case _:
                pass

    def _has_stopped(self, lane: str) -> bool:
        """Return whether a person's stop was seen to work; giving it is not enough."""
        position = self._position.get(lane)
        stopped = lane in self._asked and position is GatePosition.STOPPED
        return stopped or self._is_stopped_open(lane)

    def _is_stopped_open(self, lane: str) -> bool:
        """Return whether a stop was acknowledged and the gate is not on its way down."""
        position = self._position.get(lane)
        return lane in self._stop_acknowledged and position in {GatePosition.OPEN, GatePosition.OPENING}

    def _note_answered_stop(self, answered: seen.Answered) -> None:
        lane = answered.lane
        self._stops[lane] = max(0, self._stops[lane] - 1)
        if not answered.acknowledged:
            self._put_off(answered)
            return
        self._stop_acknowledged.add(lane)
        if self._position.get(lane) is GatePosition.STOPPED:
            self._over(lane)

    def _note_position(self, observation: seen.PositionReported) -> None:
        self._position[observation.lane] = observation.position
        if observation.position is GatePosition.STOPPED:
            self._rests.add(observation.lane)
        else:
            self._rests.discard(observation.lane)
        if observation.position is GatePosition.CLOSED:
            self._closed.add(observation.lane)
            self._over(observation.lane)
        else:
            self._closed.discard(observation.lane)
            if observation.position is GatePosition.STOPPED and self._has_stopped(observation.lane):
                self._over(observation.lane)
            if observation.position is GatePosition.CLOSING:
                self._seen_closing.add(observation.lane)
                self._put_off(observation, _AT_ONCE)  # what a stop at an open gate had put off is due now
            elif observation.position is GatePosition.OPEN and observation.lane in self._seen_closing:
                self._over(observation.lane)

    def _in_the_way(self, point: seen.PointReported) -> None:
        began = self._closing.get(point.lane)
        if self._has_stopped(point.lane) or point.lane in self._rests:
            return
        if point.point in _OPENS and began is not None and point.at - began < _CLOSES_WITHIN:
            due = max(point.at, began + _ANSWERS_WITHIN) + _AT_ONCE
            self._due.setdefault((point.lane, point.point), due)

    def _out_of_the_way(self, point: seen.PointReported) -> None:
        if point.lane in self._unanswered or self._waits_for_line(point.lane) or self._is_stopped_open(point.lane):
            self._due.pop((point.lane, point.point), None)

    def _over(self, lane: str) -> None:
        self._closing.pop(lane, None)
        self._kept_by_line.discard(lane)
        for point in _OPENS:
            self._due.pop((lane, point), None)

    def _overdue(self, now: float) -> str:
        for (lane, point), due in self._due.items():
            if now > due and not self._opens[lane] and not self._stops[lane] and not self._is_stopped_open(lane):
                self._over(lane)
                return f"{lane} was closing, {point} became active or unknown, and the gate was not opened again"
        return ""
