"""A lane's tape: the events of the last two minutes, and the commands that its machine answered.

One state is kept for every ten seconds. The machine is deterministic, so that the rest can be replayed from there.
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
"""The most steps of one stretch. A storm of events therefore ends a stretch sooner."""


@dataclass(frozen=True, slots=True)
class TapedStep:
    """One event, its moment, and the commands that the machine answered."""

    now: m.Now
    event: m.LaneEvent
    commands: tuple[m.LaneCommand, ...]


@dataclass(frozen=True, slots=True)
class Incident:
    """A part of a lane's history that can be replayed: its rules, its first state, and each step from there."""

    rules: LaneRules
    state: LaneState
    steps: tuple[TapedStep, ...]


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """The first step where a replay differs: its index from 0, the commands on the tape, and the commands now."""

    place: int
    taped: tuple[m.LaneCommand, ...]
    now: tuple[m.LaneCommand, ...]


class LaneTape:
    """The record of a lane's steps, in stretches of ten seconds. Stretches older than two minutes are dropped."""

    def __init__(self, rules: LaneRules) -> None:
        self._rules = rules
        self._stretches: deque[_TapeStretch] = deque()

    def add(self, before: LaneState, now: m.Now, event: m.LaneEvent, commands: tuple[m.LaneCommand, ...]) -> None:
        """Add a step; `before` is the state before the event."""
        newest = self._stretches[-1] if self._stretches else None
        if newest is None or now.at >= newest.begun + _STRETCH_SECONDS or len(newest.steps) >= _MOST_STEPS:
            newest = _TapeStretch(now.at, before, [])
            self._stretches.append(newest)
        newest.steps.append(TapedStep(now, event, commands))
        while len(self._stretches) > 1 and (
            self._stretches[1].begun < now.at - TAPE_SECONDS or len(self._stretches) > _MOST_STRETCHES
        ):
            self._stretches.popleft()

    def incident(self) -> Incident | None:
        """Return the whole tape, None while it is empty."""
        if not self._stretches:
            return None
        steps = tuple(step for stretch in self._stretches for step in stretch.steps)
        return Incident(self._rules, self._stretches[0].state, steps)


@dataclass(frozen=True, slots=True)
class _TapeStretch:
    begun: float
    state: LaneState
    steps: list[TapedStep]


_MOST_STRETCHES = 2 * int(TAPE_SECONDS / _STRETCH_SECONDS)


def replayed(incident: Incident) -> ReplayDifference | None:
    """Replay an incident with the machine; return the first difference, None when every command is the same."""
    state = incident.state
    for place, step in enumerate(incident.steps):
        answered = machine.handle(incident.rules, state, step.event, step.now)
        if answered.commands != step.commands:
            return ReplayDifference(place, step.commands, answered.commands)
        state = answered.state
    return None
