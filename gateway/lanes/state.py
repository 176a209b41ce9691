"""A lane's state: frozen values that only the machine makes anew."""

from __future__ import annotations

from dataclasses import dataclass, field

from drivers.contract import GatePosition, PointState
from gateway.clock import Stamp
from gateway.domain.access import Decision
from gateway.domain.commands import Command
from gateway.domain.credentials import Credential
from gateway.lanes.board import Phase

NEVER = float("-inf")
_UNSTAMPED = Stamp(micros=0, trusted=False)


@dataclass(frozen=True, slots=True)
class LaneRules:
    """What a lane is told by the site file. Times are seconds.

    Attributes:
        boot: distinguishes the command ids of this run of the program from all others.
        closes_itself: the gate's own controller closes it; the gateway never sends close by itself.
        command_life: from a command's birth to its deadline.
        stale: age from which a position or an input is unknown.
        opening: how long an opening may take.
        closing: how long a closing may take.
        waiting: how long an opened gate waits for a vehicle that was never seen.
        back_out: both loops free for this long after a grant means that the vehicle left backwards.
        close_pause: how long the gate is left alone after a close that failed.
        close_tries: how many closes are sent before a person is called.
    """

    lane_id: str
    direction: str
    gate_id: int
    boot: str
    safety_points: int = 0
    cameras: tuple[int, ...] = ()
    closes_itself: bool = True
    command_life: float = 5.0
    stale: float = 5.0
    opening: float = 8.0
    closing: float = 15.0
    waiting: float = 30.0
    back_out: float = 5.0
    close_pause: float = 5.0
    close_tries: int = 3
    clip_before: float = 5.0
    clip_after: float = 5.0


@dataclass(frozen=True, slots=True)
class SeenPoint:
    """An input and when that was read."""

    state: PointState = PointState.UNKNOWN
    at: float = NEVER

    def fresh(self, now: float, stale: float) -> PointState:
        """Its state, or unknown once it is older than `stale` seconds."""
        return self.state if now - self.at <= stale else PointState.UNKNOWN


@dataclass(frozen=True, slots=True)
class SeenGate:
    """The gate's position and when that was read."""

    position: GatePosition = GatePosition.UNKNOWN
    at: float = NEVER

    def fresh(self, now: float, stale: float) -> GatePosition:
        """Its position, or unknown once it is older than `stale` seconds."""
        return self.position if now - self.at <= stale else GatePosition.UNKNOWN


@dataclass(frozen=True, slots=True)
class Visit:
    """One vehicle's time in the lane, or an opening without one.

    Attributes:
        arrived: when it was first noticed.
        credential: what was read last, None before.
        decision: the decision on it, None before.
        opened_by: who had the gate opened without a card, "" for none.
        vehicle_seen: whether the arming loop was on in this visit.
        arming_released: whether the arming loop has been released since the grant.
    """

    arrived: Stamp
    credential: Credential | None = None
    decision: Decision | None = None
    opened_by: str = ""
    vehicle_seen: bool = False
    arming_released: bool = False

    @property
    def granted(self) -> bool:
        """Whether this visit may pass."""
        return bool(self.opened_by) or (self.decision is not None and self.decision.granted)


@dataclass(frozen=True, slots=True)
class InFlight:
    """The command under way: when it is given up, and when the device acknowledged it."""

    command: Command
    give_up_at: float
    acknowledged_at: float | None = None


@dataclass(frozen=True, slots=True)
class Closing:
    """The gate is to be closed, beside whatever the next vehicle does meanwhile.

    Attributes:
        since: when this was decided, or when the last close was sent.
        sent: whether a close is on its way, or the device closes by itself.
        tries: closes sent so far.
        not_before: the gate is left alone until then.
        told: whether technicians were told that a safety point holds it.
        seen_moving: whether the gate was seen closing since the close was sent.
    """

    since: float
    sent: bool = False
    tries: int = 0
    not_before: float = NEVER
    told: bool = False
    seen_moving: bool = False


@dataclass(frozen=True, slots=True)
class LaneState:
    """Everything a lane knows.

    `phase` is the vehicle's: IDLE, ARMED, DECIDING, OPENING, OPEN or PASSING. Behind a vehicle that has gone the gate
    is still to be closed, which `closing_gate` tells; `shown_phase` is both in one word. `free_since` is when both
    loops were last seen to become free.
    """

    phase: Phase = Phase.IDLE
    since: float = NEVER
    since_stamp: Stamp = _UNSTAMPED
    gate: SeenGate = field(default_factory=SeenGate)
    gate_lost: str = ""
    arming: SeenPoint = field(default_factory=SeenPoint)
    closing: SeenPoint = field(default_factory=SeenPoint)
    safety: tuple[SeenPoint, ...] = ()
    visit: Visit | None = None
    decisions: int = 0
    commands: int = 0
    flight: InFlight | None = None
    closing_gate: Closing | None = None
    free_since: float | None = None
    intruder: Stamp | None = None
    note: str = ""

    @property
    def shown_phase(self) -> Phase:
        """The phase for people."""
        if self.gate_lost:
            return Phase.FAULT
        if self.phase is Phase.IDLE and self.closing_gate is not None:
            return Phase.CLOSING if self.closing_gate.sent else Phase.CLEARED
        return self.phase
