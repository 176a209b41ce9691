"""State of a line's units: which are live (they answer) or silent, how fast they answer, and how long each rests.

Rules that keep a silent unit from slowing its neighbours:
- A unit is silent until its first answer, and after two time-outs in a row. Its polls are probes: they go when no live
  unit is about to be polled, with a time-out cut to that pause. They wait at most `LONGEST_PROBE_WAIT` for a pause.
- Between probes it rests: it is not polled. Silent units together take a bounded share of the line, a smaller one when
  live units are on it.
- The time-out of a live unit follows its own recent answers, within what its profile allows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from drivers.contract import MonotonicSeconds

REST_SHARE = 4.0
REST_SHARE_BESIDE_LIVE = 12.0
SILENT_AFTER = 2
LONGEST_PROBE_WAIT = 0.5
FULL_PROBE_SECONDS = 60.0

_KEPT_ANSWERS = 32
_KEPT_INTERVALS = 4
_LONGEST_INTERVAL = 1.0
_LIVE_FACTOR = 6.0
_LIVE_FLOOR = 0.15
_PROBE_FACTOR = 4.0
_SHORT_PROBE_FACTOR = 1.5
_PROBE_FLOOR = 0.05
_SHORT_PROBE_FLOOR = 0.03


def rest_after(*, failures: int, timeout: float, silent_units: int = 1, beside_live: bool = False) -> float:
    """Return the seconds for which a unit rests after `failures` time-outs in a row.

    After one time-out it does not rest. From the second on, all silent units together take about a fifth of the line's
    time, or a thirteenth when live units are on it.
    """
    factor = REST_SHARE_BESIDE_LIVE if beside_live else REST_SHARE
    return 0.0 if failures < SILENT_AFTER else factor * timeout * silent_units


@dataclass(slots=True)
class _Unit:
    """One unit.

    Attributes:
        failures: the number of time-outs in a row.
        has_answered: whether it ever answered.
        rests_until: its polls are refused before.
        answers: the seconds that its last answers took.
        asked_at: when its last poll was asked for.
        intervals: the seconds between its last polls.
        full_probe_at: when it was last probed with the full time-out that its profile allows.
    """

    failures: int = 0
    has_answered: bool = False
    rests_until: MonotonicSeconds = float("-inf")
    answers: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT_ANSWERS))
    asked_at: MonotonicSeconds = float("-inf")
    intervals: deque[float] = field(default_factory=lambda: deque(maxlen=_KEPT_INTERVALS))
    full_probe_at: MonotonicSeconds = float("-inf")

    @property
    def is_live(self) -> bool:
        return self.has_answered and self.failures < SILENT_AFTER

    def expected_at(self, now: MonotonicSeconds) -> MonotonicSeconds | None:
        """Return when its next poll is expected, by the intervals between the last ones; None for no expectation."""
        return min((at for pause in self.intervals if (at := self.asked_at + pause) > now), default=None)


class UnitStates:
    """The states of all units of one line. Instants come with each call."""

    def __init__(self) -> None:
        self._units: dict[int, _Unit] = {}
        self._full_probe_at = float("-inf")
        self.poll_is_owed = False
        """True when a late probe went before a waiting poll: that poll goes before the next late probe."""

    def is_live(self, unit: int) -> bool:
        """Return whether the unit answers."""
        known = self._units.get(unit)
        return known is not None and known.is_live

    @property
    def has_live(self) -> bool:
        """True when any unit of the line answers."""
        return any(known.is_live for known in self._units.values())

    @property
    def silent(self) -> frozenset[int]:
        """The addresses of the units that were polled and do not answer."""
        return frozenset(unit for unit, known in self._units.items() if not known.is_live and known.failures)

    def rest_left(self, unit: int, *, now: MonotonicSeconds) -> float:
        """Return the seconds for which the unit still rests; 0.0 when it does not."""
        known = self._units.get(unit)
        return 0.0 if known is None else max(0.0, known.rests_until - now)

    def asked(self, unit: int, *, now: MonotonicSeconds) -> None:
        """Note that a poll of the unit was asked for."""
        known = self._of(unit)
        if 0 < now - known.asked_at <= _LONGEST_INTERVAL:
            known.intervals.append(now - known.asked_at)
        known.asked_at = now

    def answered(self, unit: int, *, took: float) -> None:
        """Note that the unit answered `took` seconds after the request."""
        known = self._of(unit)
        known.failures, known.has_answered = 0, True
        known.rests_until = known.full_probe_at = float("-inf")
        known.answers.append(took)

    def failed(self, unit: int, *, timeout: float, now: MonotonicSeconds) -> None:
        """Note that the unit did not answer within `timeout` seconds."""
        known = self._of(unit)
        known.failures += 1
        known.rests_until = now + rest_after(
            failures=known.failures,
            timeout=timeout,
            silent_units=max(1, len(self.silent)),
            beside_live=self.has_live,
        )

    def live_timeout(self, unit: int, allowed: float) -> float:
        """Return the time-out for a live unit: a multiple of its slowest recent answer, at most `allowed`.

        After a lost answer, and before the first, it is `allowed`.
        """
        known = self._of(unit)
        if known.failures or not known.answers:
            return allowed
        return min(allowed, max(_LIVE_FLOOR, _LIVE_FACTOR * max(known.answers)))

    def pause(self, *, now: MonotonicSeconds) -> float:
        """Return the seconds until the next expected poll of a live unit; infinite when none is expected."""
        expected = [at for known in self._units.values() if known.is_live and (at := known.expected_at(now))]
        return min(expected) - now if expected else float("inf")

    def free(self, *, now: MonotonicSeconds) -> float:
        """Return the seconds until a live unit is polled at the earliest; 0.0 when a poll is overdue.

        Only units that were polled within the last second count; infinite when there is none.
        """
        polled = [unit for unit in self._units.values() if unit.is_live and now - unit.asked_at < _LONGEST_INTERVAL]
        return min(((unit.expected_at(now) or now) - now for unit in polled), default=float("inf"))

    def probe_timeout(self, unit: int, allowed: float, *, pause: float, now: MonotonicSeconds) -> float | None:
        """Return the time-out of a probe that would go now; None when it must wait for a longer pause.

        `pause` is the time, in seconds, until a live unit is polled. Normally the time-out is a multiple of the slowest
        live unit's answers. So that a slower unit is found too, one probe in `FULL_PROBE_SECONDS` gets the full
        `allowed` time. The silent units take turns at it.
        """
        slowest = max((max(s.answers) for s in self._units.values() if s.is_live and s.answers), default=None)
        if slowest is None:
            return allowed
        known = self._of(unit)
        usual = min(allowed, max(_PROBE_FLOOR, _PROBE_FACTOR * slowest))
        own_turn = now - known.full_probe_at >= FULL_PROBE_SECONDS * max(1, len(self.silent))
        is_full_due = own_turn and now - self._full_probe_at >= FULL_PROBE_SECONDS
        wanted = allowed if is_full_due else usual
        if pause >= wanted:
            self._note_full(known, wanted, allowed, now)
            return wanted
        if not is_full_due and pause >= min(usual, max(_SHORT_PROBE_FLOOR, _SHORT_PROBE_FACTOR * slowest)):
            return pause
        return None

    def late_probe_timeout(self, unit: int, allowed: float, *, now: MonotonicSeconds) -> float:
        """Return the time-out of a probe that goes although it found no pause."""
        timeout = self.probe_timeout(unit, allowed, pause=float("inf"), now=now)
        return allowed if timeout is None else timeout

    def _note_full(self, known: _Unit, wanted: float, allowed: float, now: MonotonicSeconds) -> None:
        if wanted == allowed:
            known.full_probe_at = self._full_probe_at = now

    def _of(self, unit: int) -> _Unit:
        return self._units.setdefault(unit, _Unit())
