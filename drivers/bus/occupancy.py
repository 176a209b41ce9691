"""State of a line's units: which answer, how fast, which are silent, and how long each is left alone.

Rules, so that a silent unit costs its neighbours next to nothing:
- A unit that did not answer twice in a row, or never yet, is silent. Its polls are probes: they go when no live unit is
  about to ask, cut short to the pause; they wait at most `LONGEST_PROBE_WAIT` for such a pause.
- Between probes it rests. Silent units together take a bounded share of the line, less where others live on it.
- Where answers are not numbered, a unit rests after a time-out until a late answer must have come.
- A live unit is waited for as long as its own answers of late suggest, within what its profile allows.
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
    """Seconds for which a unit is left alone after that many time-outs in a row.

    One lost answer costs nothing. From the second on, all silent units together take about a fifth of the line, or a
    thirteenth when live units are on it.
    """
    factor = REST_SHARE_BESIDE_LIVE if beside_live else REST_SHARE
    return 0.0 if failures < SILENT_AFTER else factor * timeout * silent_units


@dataclass(slots=True)
class _Unit:
    """One unit.

    Attributes:
        failures: time-outs in a row.
        has_answered: whether it ever did.
        rests_until: no polls before.
        answers: how long the last answers took.
        asked_at: when its last poll was asked for.
        intervals: between the last polls.
        full_probe_at: when it was last waited for in full.
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
        """Return when its next poll is to be expected, by the pauses between the last ones."""
        return min((at for pause in self.intervals if (at := self.asked_at + pause) > now), default=None)


class Occupancy:
    """All units of one line. Instants come with each call."""

    def __init__(self) -> None:
        self._units: dict[int, _Unit] = {}
        self._full_probe_at = float("-inf")
        self.poll_is_owed = False
        """A late probe went before a poll: that poll goes before the next late probe."""

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
        """The units that were asked and do not answer."""
        return frozenset(unit for unit, known in self._units.items() if not known.is_live and known.failures)

    def rest_left(self, unit: int, *, now: MonotonicSeconds) -> float:
        """Seconds for which the unit's polls still rest; 0.0 when they do not."""
        known = self._units.get(unit)
        return 0.0 if known is None else max(0.0, known.rests_until - now)

    def asked(self, unit: int, *, now: MonotonicSeconds) -> None:
        """Note that a poll of the unit was asked for."""
        known = self._of(unit)
        if 0 < now - known.asked_at <= _LONGEST_INTERVAL:
            known.intervals.append(now - known.asked_at)
        known.asked_at = now

    def answered(self, unit: int, *, took: float) -> None:
        """Note that the unit answered, so many seconds after the request."""
        known = self._of(unit)
        known.failures, known.has_answered = 0, True
        known.rests_until = known.full_probe_at = float("-inf")
        known.answers.append(took)

    def failed(self, unit: int, *, timeout: float, now: MonotonicSeconds) -> None:
        """Note that the unit did not answer within `timeout`."""
        known = self._of(unit)
        known.failures += 1
        known.rests_until = now + rest_after(
            failures=known.failures,
            timeout=timeout,
            silent_units=max(1, len(self.silent)),
            beside_live=self.has_live,
        )

    def live_timeout(self, unit: int, allowed: float) -> float:
        """Return how long to wait for an answer of a live unit; as long as allowed after a lost one."""
        known = self._of(unit)
        if known.failures or not known.answers:
            return allowed
        return min(allowed, max(_LIVE_FLOOR, _LIVE_FACTOR * max(known.answers)))

    def pause(self, *, now: MonotonicSeconds) -> float:
        """Seconds until some live unit is expected to ask; infinite when none is."""
        expected = [at for known in self._units.values() if known.is_live and (at := known.expected_at(now))]
        return min(expected) - now if expected else float("inf")

    def free(self, *, now: MonotonicSeconds) -> float:
        """Seconds until some live unit is polled at the earliest: 0.0 when a poll is overdue, infinite for no poll."""
        polled = [unit for unit in self._units.values() if unit.is_live and now - unit.asked_at < _LONGEST_INTERVAL]
        return min(((unit.expected_at(now) or now) - now for unit in polled), default=float("inf"))

    def probe_timeout(self, unit: int, allowed: float, *, pause: float, now: MonotonicSeconds) -> float | None:
        """Return how long to wait for a silent unit that is asked now; None to wait for a longer pause.

        `pause` is what live units leave free. Once in `FULL_PROBE_SECONDS` for each silent unit the full time that is
        allowed is spent, for units slower than any that was heard here; on the whole line no sooner than that either.
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
        """Return how long to wait for a silent unit that found no pause and goes all the same."""
        timeout = self.probe_timeout(unit, allowed, pause=float("inf"), now=now)
        return allowed if timeout is None else timeout

    def _note_full(self, known: _Unit, wanted: float, allowed: float, now: MonotonicSeconds) -> None:
        if wanted == allowed:
            known.full_probe_at = self._full_probe_at = now

    def _of(self, unit: int) -> _Unit:
        return self._units.setdefault(unit, _Unit())
