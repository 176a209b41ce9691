"""The witness: it passes each observation to the checks that want it, keeps the last ones, and sums up the run."""

from __future__ import annotations

import zlib
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from simulation.virtual_site import observations as seen

_KEPT = 30
_MOST_VIOLATIONS = 20
_SUMMED = (seen.Wrote, seen.Called, seen.Presented, seen.Drove, seen.Injected, seen.CentralTook, seen.Ended)


class Check(Protocol):
    """The check of one promise."""

    @property
    def promise(self) -> str:
        """The promise, for people."""
        ...

    @property
    def wants(self) -> tuple[type[seen.Observation], ...]:
        """The kinds of observations that the check needs."""
        ...

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        ...


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise, the step that broke it, and the observations up to and including that step."""

    promise: str
    text: str
    step: int
    at: float
    tape: tuple[str, ...]


class Witness:
    """The receiver of all observations. `digest` is equal for equal runs."""

    def __init__(self, *, checks: Iterable[Check]) -> None:
        self._by_kind: dict[type[seen.Observation], list[Check]] = {}
        for check in checks:
            for kind in check.wants:
                self._by_kind.setdefault(kind, []).append(check)
        self._tape: deque[seen.Observation] = deque(maxlen=_KEPT)
        self.violations: list[Violation] = []
        self.violated: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.steps = 0
        self.digest = 0
        self._camera_events: set[int] = set()

    @property
    def camera_events(self) -> frozenset[int]:
        """The camera events that were acknowledged."""
        return frozenset(self._camera_events)

    def see(self, observation: seen.Observation, *, taped: bool = True) -> None:
        """Record an observation. One that is not `taped` repeats an earlier one and is only for the checks."""
        self.steps += 1
        if taped:
            self._tape.append(observation)
            self._sum_up(observation)
        for check in self._by_kind.get(type(observation), ()):
            text = check.see(observation)
            if text:
                self._break(check.promise, text, observation)

    def _break(self, promise: str, text: str, observation: seen.Observation) -> None:
        self.violated[promise] += 1
        if len(self.violations) < _MOST_VIOLATIONS:
            tape = tuple(str(item) for item in self._tape)
            self.violations.append(Violation(promise, text, self.steps, observation.at, tape))

    def _sum_up(self, observation: seen.Observation) -> None:
        match observation:
            case seen.Acknowledged():
                self._camera_events.update(observation.recorded.camera_event_ids)
                for event in observation.entry.events:
                    self.counts[f"event {event.kind.name.lower()}"] += 1
                if observation.entry.passage is not None:
                    self.counts[f"passage {observation.entry.passage.outcome}"] += 1
                text = f"{observation.at:.6f} {observation.recorded.event_ids} {observation.recorded.camera_event_ids}"
                self.digest = zlib.crc32(text.encode(), self.digest)
            case seen.Wrote():
                self.counts[f"command {observation.action} written"] += 1
                if observation.hidden and observation.action == "close":
                    self.counts["close with something there that no input told of (the controller refuses it)"] += 1
            case seen.Injected():
                self.counts[f"injected {observation.kind}"] += 1
            case seen.Drove():
                self.counts[f"vehicle {observation.outcome}"] += 1
            case _:
                pass
        if isinstance(observation, _SUMMED) and not isinstance(observation, seen.CentralTook):
            self.digest = zlib.crc32(str(observation).encode(), self.digest)
