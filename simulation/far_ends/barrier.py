"""A barrier as a machine, which takes time to move and whose own controller protects vehicles. Pure.

Instants come with each call. Nothing moves by itself: each call first advances the machine to `now`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from drivers.contract import GatePosition

_WARNS_AGAIN = 0.5
_BETWEEN = {1: GatePosition.OPENING, -1: GatePosition.CLOSING, 0: GatePosition.STOPPED}


class Wish(StrEnum):
    """Commands of a controller."""

    OPEN = "open"
    CLOSE = "close"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class BarrierState:
    """The state of the controller's terminals.

    Attributes:
        opening: how far the arm is open, 0.0 to 1.0.
        moving: 1 while the arm moves up, -1 down, 0 while it is still.
        closed_limit: whether the lower limit switch is on.
        open_limit: whether the upper limit switch is on.
        arming_loop: whether a vehicle is on the loop in front.
        closing_loop: whether a vehicle is on the loop under the arm.
        photocell: whether something is in the beam.
        fault: whether the controller is in fault.
    """

    opening: float
    moving: int
    closed_limit: bool
    open_limit: bool
    arming_loop: bool
    closing_loop: bool
    photocell: bool
    fault: bool

    @property
    def position(self) -> GatePosition:
        """The position, as a controller that knows it tells it."""
        if not self.moving and (self.closed_limit or self.open_limit):
            return GatePosition.CLOSED if self.closed_limit else GatePosition.OPEN
        return _BETWEEN[self.moving]

    @property
    def points(self) -> dict[str, bool]:
        """The inputs by the names that profiles use."""
        return {
            "closed_limit": self.closed_limit,
            "open_limit": self.open_limit,
            "arming_loop": self.arming_loop,
            "closing_loop": self.closing_loop,
            "photocell": self.photocell,
            "fault": self.fault,
        }


class Barrier:
    """One barrier with its loops, photocell and controller.

    While the closing loop or the photocell is active, the controller stops a closing arm and does not begin to close.

    Args:
        travel_seconds: the time from closed to open.
        warns_seconds: how long its lamp warns before it closes on a command. An open ends the warning.
    """

    def __init__(self, *, travel_seconds: float = 1.2, warns_seconds: float = 0.0) -> None:
        self._travel = travel_seconds
        self._warns = warns_seconds
        self._opening = 0.0
        self._moving = 0
        self._at = 0.0
        self._close_due: float | None = None
        self._arming = False
        self._closing_loop = False
        self._photocell = False
        self._fault = False
        self._locked = False

    def command(self, wish: Wish, *, now: float) -> None:
        """Act on a pulse at the controller's terminal. A locked or faulty controller ignores it."""
        self._advance(now)
        if self._fault or self._locked:
            return
        match wish:
            case Wish.OPEN:
                self._close_due = None
                self._moving = 1 if self._opening < 1.0 else 0
            case Wish.CLOSE:
                if self._warns and not self._is_obstructed:
                    self._close_due = now + self._warns
                elif not self._is_obstructed:
                    self._close_due = None
                    self._moving = -1 if self._opening > 0.0 else 0
            case Wish.STOP:
                self._close_due = None
                self._moving = 0

    def state(self, *, now: float) -> BarrierState:
        """Return the terminals at `now`."""
        self._advance(now)
        return BarrierState(
            opening=self._opening,
            moving=self._moving,
            closed_limit=self._opening <= 0.0,
            open_limit=self._opening >= 1.0,
            arming_loop=self._arming,
            closing_loop=self._closing_loop,
            photocell=self._photocell,
            fault=self._fault,
        )

    def set_arming_loop(self, *, occupied: bool, now: float) -> None:
        """Let a vehicle come to, or leave, the loop in front."""
        self._advance(now)
        self._arming = occupied

    def set_closing_loop(self, *, occupied: bool, now: float) -> None:
        """Let a vehicle come to, or leave, the loop under the arm."""
        self._advance(now)
        if occupied:
            self._close_due = None
        self._closing_loop = occupied
        self._stop_on_obstruction()

    def set_photocell(self, *, interrupted: bool, now: float) -> None:
        """Let something come into, or leave, the beam."""
        self._advance(now)
        self._photocell = interrupted
        self._stop_on_obstruction()

    def set_fault(self, *, present: bool, now: float) -> None:
        """Put the controller into fault, where it stands still, or take it out of it."""
        self._advance(now)
        self._fault = present
        if present:
            self._moving = 0

    def set_locked(self, *, locked: bool, now: float) -> None:
        """Turn the key switch. A locked controller acknowledges commands and obeys none."""
        self._advance(now)
        self._locked = locked

    def force(self, *, opening: float, now: float) -> None:
        """Push the arm to a place between 0.0 and 1.0."""
        self._advance(now)
        self._moving = 0
        self._opening = min(1.0, max(0.0, opening))

    @property
    def _is_obstructed(self) -> bool:
        return self._closing_loop or self._photocell

    def _stop_on_obstruction(self) -> None:
        if self._is_obstructed and self._moving < 0:
            self._moving = 0

    def _advance(self, now: float) -> None:
        """Advance the machine to `now`, closings that were due meanwhile included."""
        due = self._close_due
        if due is not None and due <= now and not (self._fault or self._locked):
            self._travel_until(max(due, self._at))
            self._close_due = None
            if self._is_obstructed:
                self._close_due = now + _WARNS_AGAIN
            else:
                self._moving = -1 if self._opening > 0.0 else 0
        self._travel_until(now)

    def _travel_until(self, now: float) -> None:
        elapsed, self._at = max(0.0, now - self._at), max(now, self._at)
        if not self._moving:
            return
        self._opening = min(1.0, max(0.0, self._opening + self._moving * elapsed / self._travel))
        if self._opening == (1.0 if self._moving > 0 else 0.0):
            self._moving = 0
