"""The field of one lane: a barrier, vehicles, and inputs that may be wrong. It stays while gateways come and go."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from simulation.far_ends.barrier import Barrier, BarrierState, Wish

ARMING, CLOSING, PHOTOCELL, FIRE = "arming_loop", "closing_loop", "photocell", "fire"
POSITION = "position"
POINTS = (ARMING, CLOSING, PHOTOCELL)
SETTLE = 7.0
"""Seconds without a happening after which a lane counts as settled: nothing is under way there any more."""
_NEVER = float("-inf")
_SETTLED_ON = 0.25
_BLIND_SECONDS = 3.0  # for so long a lane may use a reading from before its line was disturbed


@dataclass(frozen=True, slots=True)
class Dropping:
    """Dropouts of the closing loop under a vehicle: soon after it came, then again and again.

    Attributes:
        until: the end of the trouble.
        free: the seconds of each dropout; less than a lane's clear time.
        held: the seconds between two dropouts.
    """

    until: float = _NEVER
    free: float = 0.0
    held: float = 1.0

    def drops(self, occupied_since: float, now: float) -> bool:
        """Return whether the loop looks free at `now`, though it is occupied."""
        after = now - occupied_since - _SETTLED_ON
        return self.until > now and after >= 0 and after % (self.free + self.held) < self.free


@dataclass(slots=True)
class Troubles:
    """Faults of the line to a gate and of its inputs, each until an instant.

    Attributes:
        taken_until: until then the line is busy with others; commands wait, and nothing is wrong.
        next_cut: the seconds for which the line is cut once the next command is on it; 0 for no such cut.
        deaf_until: until then the controller restarts, while a converter keeps the connection.
    """

    away_until: float = _NEVER
    losing_until: float = _NEVER
    late_until: float = _NEVER
    jammed_until: float = _NEVER
    taken_until: float = _NEVER
    hand_until: float = _NEVER
    stops_until: float = _NEVER
    cut_until: float = _NEVER
    next_cut: float = 0.0
    deaf_until: float = _NEVER
    modules_away: dict[int, float] = field(default_factory=dict)
    modules_silent: dict[int, float] = field(default_factory=dict)
    fire_until: float = _NEVER
    dropping: Dropping = field(default_factory=Dropping)
    stuck: dict[str, tuple[bool, float]] = field(default_factory=dict)
    chattering: dict[str, float] = field(default_factory=dict)

    def last_until(self) -> float:
        """Return the instant at which the last of these faults ends or ended."""
        ways = (self.away_until, self.losing_until, self.late_until, self.jammed_until, self.cut_until, self.deaf_until)
        modules = (*self.modules_away.values(), *self.modules_silent.values(), self.fire_until)
        ends = (*ways, *modules, self.hand_until, self.dropping.until)
        return max(*ends, *(end for _, end in self.stuck.values()), *self.chattering.values(), _NEVER)

    def lies(self, point: str, now: float) -> bool:
        """Return whether this input may show a wrong value.

        A loop that drops out does not count while the line to the gate works, because it was seen to be occupied.
        """
        lost_until = max(self.away_until, self.losing_until, self.cut_until, self.late_until)
        if point == CLOSING and self.dropping.until > now and lost_until + _BLIND_SECONDS > now:
            return True
        return self.stuck.get(point, (False, _NEVER))[1] > now or self.chattering.get(point, _NEVER) > now


class WatchedBarrier(Barrier):
    """The demo's barrier with watchers of its changes, and with the instant since which each point is occupied."""

    def __init__(self, *, travel_seconds: float) -> None:
        super().__init__(travel_seconds=travel_seconds)
        self.watchers: dict[int, Callable[[], None]] = {}
        self.occupied_since: dict[str, float] = {}
        self.touched_at = _NEVER

    def command(self, wish: Wish, *, now: float) -> None:
        """Give the controller a command, and notify watchers."""
        super().command(wish, now=now)
        self._tell(now)

    def set_arming_loop(self, *, occupied: bool, now: float) -> None:
        """Set the loop in front, and notify watchers."""
        super().set_arming_loop(occupied=occupied, now=now)
        self._occupy(ARMING, occupied=occupied, now=now)

    def set_closing_loop(self, *, occupied: bool, now: float) -> None:
        """Set the loop under the arm, and notify watchers."""
        super().set_closing_loop(occupied=occupied, now=now)
        self._occupy(CLOSING, occupied=occupied, now=now)

    def set_photocell(self, *, interrupted: bool, now: float) -> None:
        """Set the beam, and notify watchers."""
        super().set_photocell(interrupted=interrupted, now=now)
        self._occupy(PHOTOCELL, occupied=interrupted, now=now)

    def force(self, *, opening: float, now: float) -> None:
        """Push the arm to a place between 0.0 and 1.0, and notify watchers."""
        super().force(opening=opening, now=now)
        self._tell(now)

    def touch(self, now: float) -> None:
        """Notify the watchers that something about the barrier or the line to it changed."""
        self._tell(now)

    def _occupy(self, point: str, *, occupied: bool, now: float) -> None:
        if occupied:
            self.occupied_since.setdefault(point, now)
        else:
            self.occupied_since.pop(point, None)
        self._tell(now)

    def _tell(self, now: float) -> None:
        self.touched_at = now
        for watcher in self.watchers.values():
            watcher()


class LaneField:
    """The field of one lane. `shown` gives the values that its inputs show, which may be wrong."""

    def __init__(
        self,
        *,
        lane_id: str,
        gate_id: int,
        reader_id: int,
        dice: random.Random,
        modules: Mapping[int, tuple[str, ...]] = MappingProxyType({}),
        has_limit_switches: bool = False,
    ) -> None:
        """Make the field. `modules` are the lane's input modules with their points; the controller has the rest.

        A controller without limit switches tells the gate's position itself.
        """
        self.has_limit_switches = has_limit_switches
        self.is_asked = False
        self.modules = modules
        elsewhere = {point for points in modules.values() for point in points}
        self.gate_points = tuple(point for point in POINTS if point not in elsewhere)
        self.read_at: dict[str, float] = {}
        self.lane_id = lane_id
        self.gate_id = gate_id
        self.reader_id = reader_id
        self.dice = dice
        self.barrier = WatchedBarrier(travel_seconds=dice.uniform(1.0, 2.5))
        self.troubles = Troubles()
        self.vehicles = 0

    def known_in_the_way(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the occupied safety points in two groups: those that the gateway can know of, and the others."""
        there = {point: since for point, since in self.barrier.occupied_since.items() if point in {CLOSING, PHOTOCELL}}
        known = tuple(point for point, since in sorted(there.items()) if self._was_read(point, since))
        return known, tuple(sorted(set(there) - set(known)))

    def _was_read(self, point: str, since: float) -> bool:
        read_at = self.read_at.get(point, _NEVER)
        return since <= read_at and not self.troubles.lies(point, read_at)

    def shown(self, now: float, points: Collection[str]) -> tuple[BarrierState, dict[str, bool]]:
        """Return the barrier's state, and the values that these inputs show at `now`."""
        state, troubles = self.barrier.state(now=now), self.troubles
        shown = {ARMING: state.arming_loop, CLOSING: state.closing_loop, PHOTOCELL: state.photocell}
        shown[FIRE] = troubles.fire_until > now
        inputs = {point: shown[point] for point in points}
        since = self.barrier.occupied_since.get(CLOSING)
        if CLOSING in inputs and since is not None and troubles.dropping.drops(since, now):
            inputs[CLOSING] = False
        for point in inputs:
            stuck, until = troubles.stuck.get(point, (False, _NEVER))
            if until > now:
                inputs[point] = stuck
            elif troubles.chattering.get(point, _NEVER) > now:
                inputs[point] = self.dice.random() < 0.5
        return state, inputs

    def is_quiet(self, now: float, settle: float) -> bool:
        """Return whether nothing was here, moved or was wrong for `settle` seconds, and no answer is awaited."""
        barrier = self.barrier
        if self.is_asked or self.vehicles or barrier.occupied_since or now - barrier.touched_at < settle:
            return False
        return self.troubles.last_until() + settle < now and barrier.state(now=now).closed_limit
