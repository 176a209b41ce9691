"""A lane's tape: the last two minutes of what its machine was told, and what it answered.

States are frozen values, so that one every ten seconds is enough to run the rest through the machine again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from gateway.lanes.machine import machine
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.lane import LaneState

TAPE_SECONDS = 120.0
_STRETCH_SECONDS = 10.0
_MOST_STEPS = 2_000
"""Of one stretch: a storm of events ends it sooner."""


@dataclass(frozen=True, slots=True)
class TapedStep:
    """One event, its moment, and the commands that the machine answered."""

    now: m.Now
    event: m.LaneEvent
    commands: tuple[m.LaneCommand, ...]


@dataclass(frozen=True, slots=True)
class Incident:
    """A stretch of a lane's life that can be run again: its rules, its state at first, and each step since."""

    rules: LaneRules
    state: LaneState
    steps: tuple[TapedStep, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first step that a machine answers differently: its place from 0, and both answers."""

    place: int
    taped: tuple[m.LaneCommand, ...]
    now: tuple[m.LaneCommand, ...]


class LaneTape:
    """Takes each step of a lane, and forgets what is older than two minutes."""

    def __init__(self, rules: LaneRules) -> None:
        self._rules = rules
        self._stretches: deque[_Stretch] = deque()

    def add(self, before: LaneState, now: m.Now, event: m.LaneEvent, commands: tuple[m.LaneCommand, ...]) -> None:
        """Take a step; `before` is the state that the event met."""
        newest = self._stretches[-1] if self._stretches else None
        if newest is None or now.at >= newest.begun + _STRETCH_SECONDS or len(newest.steps) >= _MOST_STEPS:
            newest = _Stretch(now.at, before, [])
            self._stretches.append(newest)
        newest.steps.append(TapedStep(now, event, commands))
        while len(self._stretches) > 1 and (
            self._stretches[1].begun < now.at - TAPE_SECONDS or len(self._stretches) > _MOST_STRETCHES
        ):
            self._stretches.popleft()

    def incident(self) -> Incident | None:
        """Return what is on the tape; None for one that is empty."""
        if not self._stretches:
            return None
        steps = tuple(step for stretch in self._stretches for step in stretch.steps)
        return Incident(self._rules, self._stretches[0].state, steps)


@dataclass(frozen=True, slots=True)
class _Stretch:
    begun: float
    state: LaneState
    steps: list[TapedStep]


_MOST_STRETCHES = 2 * int(TAPE_SECONDS / _STRETCH_SECONDS)


def replayed(incident: Incident) -> Difference | None:
    """Run an incident through the machine; return the first difference, None when every answer is the same."""
    state = incident.state
    for place, step in enumerate(incident.steps):
        answered = machine.handle(incident.rules, state, step.event, step.now)
        if answered.commands != step.commands:
            return Difference(place, step.commands, answered.commands)
        state = answered.state
    return None
