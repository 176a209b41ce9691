"""Vehicles without a right of way, and what is remembered of earlier vehicles to tell them apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.lanes.machine.state.visits import Visit


@dataclass(frozen=True, slots=True)
class Intruder:
    """Something on the closing loop without a right of way.

    Attributes:
        visit: what is known of it.
        at: when it was noticed, on the closing loop or before.
        first: whether it came onto the closing loop before any arming loop.
        moved_on: whether the arming loop was released for it, which tells it from the vehicle before.
        drops_out: whether the closing loop was free only for a moment before: then it may be the vehicle before.
        reached_arming: whether it went on from the closing loop to the arming loop.
        shut: whether the gate has been closed all the time, so that it cannot have passed.
    """

    visit: Visit
    at: float
    first: bool
    moved_on: bool = False
    drops_out: bool = False
    reached_arming: bool = False
    shut: bool = False


@dataclass(frozen=True, slots=True)
class MovedOn:
    """A vehicle that was not let in and left the arming loop, perhaps forwards."""

    visit: Visit
    at: float


@dataclass(frozen=True, slots=True)
class Intruders:
    """The vehicle on the closing loop without a right of way, and what is remembered of earlier vehicles.

    Attributes:
        present: the one on the closing loop now.
        moved_on: the last one that left the arming loop without being let in, and may come onto the closing loop.
        vehicle_passed_at: when a vehicle with the right of way passed last, either way; minus infinity for never.
        left_at: when the closing loop was left last, by whatever it was.
    """

    present: Intruder | None = None
    moved_on: MovedOn | None = None
    vehicle_passed_at: float = float("-inf")
    left_at: float = float("-inf")

    def noticed(self, intruder: Intruder, *, moved_on: MovedOn | None) -> Intruders:
        """Return the intruders once something is on the closing loop; `moved_on` may still come onto it later."""
        return replace(self, present=intruder, moved_on=moved_on)

    def gone(self) -> Intruders:
        """Return the intruders with the closing loop free, or held by a vehicle with the right of way."""
        return replace(self, present=None)

    def driving_on(self, intruder: Intruder, visit: Visit, *, vehicle: bool) -> Intruders:
        """Return the intruders once this one left the arming loop forwards; `vehicle`: it is surely a vehicle."""
        on = replace(intruder, visit=visit, first=False, moved_on=intruder.moved_on or vehicle)
        return replace(self, present=on)

    def left_arming_loop(self, visit: Visit, at: float) -> Intruders:
        """Return the intruders after a vehicle that was not let in left the arming loop, perhaps forwards."""
        return replace(self, moved_on=MovedOn(visit, at))

    def vehicle_passed(self, at: float) -> Intruders:
        """Return the intruders after a vehicle has passed; nobody is between the loops then."""
        return replace(self, vehicle_passed_at=at, moved_on=None)

    def closing_loop_left(self, at: float) -> Intruders:
        """Return the intruders after the closing loop was left."""
        return replace(self, left_at=at)
