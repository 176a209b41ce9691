"""Promise 1: close is never sent while a safety point is active, unknown or stale."""

from __future__ import annotations

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.simulation import observations as seen
from gateway.simulation.lane_field import CLOSING, PHOTOCELL

_SAFETY = (CLOSING, PHOTOCELL)


class ClosingCheck:
    """Judges each close as it goes out: by what was reported until then, and by what really was there."""

    promise = "1 close is never unsafe"
    wants = (seen.PointReported, seen.PositionReported, seen.Refreshed, seen.GateAway, seen.Wrote, seen.Ended)

    def __init__(self, *, stale: float) -> None:
        self._stale = stale
        self._points: dict[tuple[str, str], seen.PointReported] = {}
        self._positions: dict[str, seen.PositionReported] = {}
        self._refreshed: dict[str, float] = {}
        self._away: set[str] = set()

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        match observation:
            case seen.PointReported():
                self._points[observation.lane, observation.point] = observation
            case seen.PositionReported():
                self._positions[observation.lane] = observation
            case seen.Refreshed():
                self._refreshed[observation.lane] = observation.at
            case seen.GateAway():
                self._note_away(observation)
            case seen.Ended():
                self._points.clear()
                self._refreshed.clear()
                self._positions.clear()
            case seen.Wrote(action=GateAction.CLOSE):
                return self._judge(observation)
            case _:
                pass
        return ""

    def _note_away(self, observation: seen.GateAway) -> None:
        if not observation.away:
            self._away.discard(observation.lane)
            return
        self._away.add(observation.lane)
        self._positions.pop(observation.lane, None)
        for point in _SAFETY:
            self._points.pop((observation.lane, point), None)

    def _judge(self, close: seen.Wrote) -> str:
        lane = close.lane
        if lane in self._away:
            return f"close was sent in {lane} while its controller was away"
        position = self._positions.get(lane)
        if position is None or position.position is GatePosition.UNKNOWN or self._age(position, close) > self._stale:
            return f"close was sent in {lane} while the gate's position was unknown or stale"
        faults = (self._fault_of(point, close) for point in _SAFETY)
        if fault := next((fault for fault in faults if fault), ""):
            return f"close was sent in {lane} while {fault}"
        if close.in_the_way:
            return f"close was sent in {lane} though {', '.join(close.in_the_way)} was occupied and had been read so"
        return ""

    def _fault_of(self, point: str, close: seen.Wrote) -> str:
        told = self._points.get((close.lane, point))
        if told is None or told.state is PointState.UNKNOWN:
            return f"{point} was unknown"
        if told.state is PointState.ON:
            return f"{point} was active"
        age = self._age(told, close)
        return f"{point} was stale, read {age:.1f} s before" if age > self._stale else ""

    def _age(self, told: seen.PointReported | seen.PositionReported, close: seen.Wrote) -> float:
        return close.at - max(told.at, self._refreshed.get(close.lane, told.at))
