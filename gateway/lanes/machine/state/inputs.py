"""The gate and the inputs as they were read last, with their age. The machine and the runner share them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from drivers.contract import GatePosition, PointState
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import Side
from gateway.site.roles import ROLES, Role

NEVER = float("-inf")
CHATTER_CHANGES = 24
"""So many changes within `CHATTER_SECONDS` are chatter: no more than one vehicle or trailer passes in a second."""
CHATTER_SECONDS = 10.0
BURST_CHANGES = 8
"""So many changes within `BURST_SECONDS` are chatter too: four vehicles, or four drop-outs of a loop, take longer."""
BURST_SECONDS = 3.0
_MISSED_IS_LOSS = 2
_AT_REST = frozenset({GatePosition.OPEN, GatePosition.STOPPED, GatePosition.CLOSED})


@dataclass(frozen=True, slots=True)
class InputReading:
    """An input and when that was read.

    Attributes:
        state: its state as last read.
        at: when it was last read.
        since: when it took that state.
        changes: when it last changed between on and off, the oldest change first.
        returned: when it was last read again after it had been unknown, missed or not read for too long. Its first
            reading counts too.
        resumed: as `returned`, but also when it was read again after one missed poll with the point off before and
            after it.
        missed: number of polls in a row that its device has not answered since the last reading.
    """

    state: PointState = PointState.UNKNOWN
    at: float = NEVER
    since: float = NEVER
    changes: tuple[float, ...] = ()
    returned: float = NEVER
    resumed: float = NEVER
    missed: int = 0

    def fresh(self, now: float, stale: float) -> PointState:
        """Return its state, or unknown once it is older than `stale` seconds."""
        return self.state if now - self.at <= stale else PointState.UNKNOWN

    def reported(self, state: PointState, at: float, *, stale: float = float("inf")) -> InputReading:
        """Return the point after another reading. A reading more than `stale` seconds after the last is a return.

        So is a reading after missed polls: after two in a row, or after one with the point on before or after it. The
        detector may have lost power: while it starts it may report a vehicle that is not there, and after that it sees
        none for a moment.

        One missed poll with the point off before and after it is no return, but delays a close for as long as a return
        does: a detector that starts does not see a vehicle that drives up, and a close that was due would come down on
        it. A gate that already closes is not opened again for that; otherwise one lost answer in a hundred would open
        every gate.
        """
        was_missed = self.missed >= _MISSED_IS_LOSS or (self.missed > 0 and PointState.ON in {self.state, state})
        was_lost = self.state is PointState.UNKNOWN or was_missed or at - self.at > stale
        returned = at if was_lost and state is not PointState.UNKNOWN else self.returned
        resumed = at if self.missed else max(self.resumed, returned)
        if state is self.state:
            return replace(self, at=at, returned=returned, resumed=resumed, missed=0)
        known = PointState.UNKNOWN not in {state, self.state}
        changes = (*self.changes[1 - CHATTER_CHANGES :], at) if known else self.changes
        return InputReading(state, at, since=at, changes=changes, returned=returned, resumed=resumed)

    def clears_at(self, clear: float, after_loss: float) -> float:
        """Return when it counts as clear if it stays off: once it has been off for `clear` seconds.

        After a return or a missed poll that takes at least `after_loss` seconds: a detector that has just got power may
        not see a vehicle yet.
        """
        return max(self.since + clear, self.resumed + after_loss)

    @property
    def is_confirmed(self) -> bool:
        """True when a second reading has confirmed its state."""
        return self.at > max(self.since, self.resumed)

    def chatters_until(self) -> float:
        """Return until when it counts as chattering if it does not change again; `NEVER` when it does not."""
        if self._changed_within(CHATTER_CHANGES, CHATTER_SECONDS) or self._changed_within(BURST_CHANGES, BURST_SECONDS):
            return self.changes[-1] + CHATTER_SECONDS
        return NEVER

    def _changed_within(self, changes: int, seconds: float) -> bool:
        return len(self.changes) >= changes and self.changes[-1] - self.changes[-changes] <= seconds

    def is_on(self) -> bool:
        """Return whether it was on when last read."""
        return self.state is PointState.ON

    def is_off(self) -> bool:
        """Return whether it was off when last read."""
        return self.state is PointState.OFF


_NOT_READ = InputReading()


@dataclass(frozen=True, slots=True)
class SeenGate:
    """The gate's position.

    Attributes:
        position: its position as last read.
        at: when it was last read.
        known: the last position that was not unknown.
        since: when it took that position; for an unknown position, no earlier than its controller answered.
        has_rested: whether it was seen open, closed or stopped since the start.
    """

    position: GatePosition = GatePosition.UNKNOWN
    at: float = NEVER
    known: GatePosition = GatePosition.UNKNOWN
    since: float = NEVER
    has_rested: bool = False

    def fresh(self, now: float, stale: float) -> GatePosition:
        """Return its position, or unknown once it is older than `stale` seconds."""
        return self.position if now - self.at <= stale else GatePosition.UNKNOWN

    def reported(self, position: GatePosition, at: float) -> SeenGate:
        """Return the gate after another reading."""
        known = self.known if position is GatePosition.UNKNOWN else position
        since = self.since if position is self.position else at
        return SeenGate(position, at, known, since, has_rested=self.has_rested or position in _AT_REST)

    def regained(self, at: float) -> SeenGate:
        """Return the gate once its controller answers again; its position is still to be read."""
        return replace(self, since=at)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The lane's gate and all its inputs, as last read.

    Attributes:
        gate: the gate's position.
        gate_lost: why the gate's controller is away, "" while it answers.
        points: the readings of its inputs, by role and place among those of the role; those not read yet are missing.
        on_fire: whether the fire input was on when its state was last known.
    """

    gate: SeenGate = field(default_factory=SeenGate)
    gate_lost: str = ""
    points: Mapping[tuple[Role, int], InputReading] = field(default_factory=lambda: MappingProxyType({}))
    on_fire: bool = False

    @property
    def arming(self) -> InputReading:
        """The arming loop."""
        return self.reading(Role.ARMING)

    @property
    def far(self) -> InputReading:
        """The arming loop on the other side of a two-way lane."""
        return self.reading(Role.FAR)

    @property
    def closing(self) -> InputReading:
        """The closing loop."""
        return self.reading(Role.CLOSING)

    def loop(self, side: Side) -> InputReading:
        """Return the arming loop of this side."""
        return self.arming if side is Side.NEAR else self.far

    def reading(self, role: Role, index: int = 0) -> InputReading:
        """Return the reading of an input; one that was not read yet is unknown."""
        return self.points.get((role, index), _NOT_READ)

    def reported(self, event: m.InputReported, *, stale: float) -> Inputs:
        """Return the inputs after a reading of one of them.

        A fire ends only when its input is seen off: the loss of the input is no all-clear.
        """
        reading = self.reading(event.role, event.index).reported(event.state, event.at, stale=stale)
        inputs = self._with_point(event.role, event.index, reading)
        if not ROLES[event.role].opens or event.state is PointState.UNKNOWN:
            return inputs
        return replace(inputs, on_fire=reading.is_on())

    def missed(self, event: m.InputMissed) -> Inputs:
        """Return the inputs after a poll that was not answered."""
        reading = replace(self.reading(event.role, event.index), missed=event.in_a_row)
        return self._with_point(event.role, event.index, reading)

    def gate_reported(self, position: GatePosition, at: float) -> Inputs:
        """Return the inputs after a reading of the gate's position."""
        return replace(self, gate=self.gate.reported(position, at))

    def gate_away(self, reason: str) -> Inputs:
        """Return the inputs once the gate's controller does not answer."""
        return replace(self, gate_lost=reason or "it does not answer")

    def gate_away_for(self, reason: str) -> Inputs:
        """Return the inputs with another reason for the loss; unchanged while the controller answers."""
        return replace(self, gate_lost=self.gate_lost and reason)

    def gate_back(self, at: float | None = None) -> Inputs:
        """Return the inputs once the controller answers again; `at` is when, where that is known."""
        return replace(self, gate_lost="", gate=self.gate if at is None else self.gate.regained(at))

    def _with_point(self, role: Role, index: int, reading: InputReading) -> Inputs:
        return replace(self, points=MappingProxyType({**self.points, (role, index): reading}))
