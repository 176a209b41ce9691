"""What was last seen of an input or of the gate, with its age. Frozen values; the machine and the shell share them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from drivers.contract import GatePosition, PointState

NEVER = float("-inf")
CHATTER_CHANGES = 24
"""So many changes within `CHATTER_SECONDS` are no vehicles: more than one a second does not pass, trailers included."""
CHATTER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class SeenPoint:
    """An input and when that was read.

    Attributes:
        state: as last read.
        at: when that was.
        since: since when it is so.
        changes: when it changed between on and off last, the oldest first.
    """

    state: PointState = PointState.UNKNOWN
    at: float = NEVER
    since: float = NEVER
    changes: tuple[float, ...] = ()

    def fresh(self, now: float, stale: float) -> PointState:
        """Its state, or unknown once it is older than `stale` seconds."""
        return self.state if now - self.at <= stale else PointState.UNKNOWN

    def reported(self, state: PointState, at: float) -> SeenPoint:
        """The point after another reading."""
        if state is self.state:
            return replace(self, at=at)
        known = PointState.UNKNOWN not in {state, self.state}
        changes = (*self.changes[1 - CHATTER_CHANGES :], at) if known else self.changes
        return SeenPoint(state, at, since=at, changes=changes)

    def chatters_until(self) -> float:
        """Until when it counts as chattering if it does not change again; `NEVER` when it does not chatter."""
        if len(self.changes) < CHATTER_CHANGES or self.changes[-1] - self.changes[0] > CHATTER_SECONDS:
            return NEVER
        return self.changes[-1] + CHATTER_SECONDS

    def is_on(self) -> bool:
        """Whether it was on when last read."""
        return self.state is PointState.ON

    def is_off(self) -> bool:
        """Whether it was off when last read."""
        return self.state is PointState.OFF


@dataclass(frozen=True, slots=True)
class SeenGate:
    """The gate's position and when that was read; `known` is the last one that was not unknown."""

    position: GatePosition = GatePosition.UNKNOWN
    at: float = NEVER
    known: GatePosition = GatePosition.UNKNOWN

    def fresh(self, now: float, stale: float) -> GatePosition:
        """Its position, or unknown once it is older than `stale` seconds."""
        return self.position if now - self.at <= stale else GatePosition.UNKNOWN

    def reported(self, position: GatePosition, at: float) -> SeenGate:
        """The gate after another reading."""
        known = self.known if position is GatePosition.UNKNOWN else position
        return SeenGate(position, at, known)
