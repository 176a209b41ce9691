"""Statistics of how the units of a line answer, and the faults of the line that they show. Pure.

The faults as the line's master sees them:
- Wrong speed, wrong parity or swapped wires: a unit says nothing, or something that is no frame.
- A converter that receives its own bytes: each request comes back.
- Two units at one address: they answer at once and garble each other's frames, while other units answer well.
- Another master on the line, or noise: bytes come that nobody asked for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from statistics import median

from drivers.contract import Cause, LinkError, MonotonicSeconds, ProtocolViolation

REPLY_BOUNDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Upper bounds of the histogram of reply times, in seconds. Slower answers are counted in one more class at the end."""
_LAST = 100
_LAST_TIMES = 16
_FAILS_AFTER = 2
_UNIT_FAILS_AFTER = 3
"""Failures in a row until one unit counts as faulty, one more than until a line without any answer does."""
_UNRELIABLE_LOSSES = 5
_SLOW_SHARE = 0.5
_STRAY_SECONDS = 60.0
_STRETCH_SECONDS = 300.0
_STRETCHES = 12
_STRAYS = 5


class Failure(StrEnum):
    """The ways in which a request was not answered."""

    SILENT = "silent"
    GARBLED = "garbled"
    ECHOED = "echoed"
    LATE = "late"


_HEARD = (Failure.ECHOED, Failure.GARBLED, Failure.LATE)
"""Failures that say more about the cause than silence does, the most telling first."""


class LineFault(StrEnum):
    """A fault of a line as a whole."""

    DOWN = "down"
    SILENT = "silent"
    GARBLED = "garbled"
    ECHOES = "echoes"
    DISTURBED = "disturbed"


class UnitFault(StrEnum):
    """A fault of one unit while others on its line answer."""

    SILENT = "silent"
    GARBLED = "garbled"
    UNRELIABLE = "unreliable"
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of answers by their time (as `UnitQuality.reply_times`), and of failures by their kind."""

    reply_times: tuple[int, ...]
    failed: Mapping[Failure, int]

    @property
    def lost_share(self) -> float:
        """The share of requests that failed, 0.0 to 1.0."""
        lost = sum(self.failed.values())
        return lost / max(1, lost + sum(self.reply_times))


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitQuality:
    """Statistics of one unit's answers.

    Attributes:
        unit: its address on the line.
        reply_times: counts of its answers since the start, by their time: one count for each of `REPLY_BOUNDS`, and one
            for those that took longer.
        failed: counts of its failed requests since the start, by how they failed.
        hour: the same counts of the last hour.
        reply_seconds: the median time of the last 16 answers, late ones included; None before the first.
        allowed_seconds: how long its answers may take.
        failing: how its requests fail now, None while it answers.
        failures: how many requests failed since its last answer.
        losses: how often among its last 100 requests one failed right after one that was answered.
        unsecured: why it has no secure channel, "" when it has one; None where the line has no such channels.
        is_tampered: whether it reports that its housing is open.
        violation: what is wrong with the newest of its answers that cannot be understood; "" while it answers well.
        cause: the cause of that, where it is known for sure.
    """

    unit: int
    reply_times: tuple[int, ...]
    failed: Mapping[Failure, int]
    reply_seconds: float | None
    allowed_seconds: float
    failing: Failure | None
    losses: int
    failures: int
    hour: Counts = field(default_factory=lambda: Counts((), {}))
    unsecured: str | None = None
    is_tampered: bool = False
    violation: str = ""
    cause: Cause | None = None

    @property
    def is_late(self) -> bool:
        """True when it answers, but always too late."""
        return self.failing is Failure.LATE and self.reply_seconds is not None

    @property
    def fault(self) -> UnitFault | None:
        """The unit's fault, None for none. It holds only while other units on the line answer."""
        if self.is_late:
            return UnitFault.SLOW
        if self.failing is not None and self.failures >= _UNIT_FAILS_AFTER:
            is_spoilt = self.failing in {Failure.GARBLED, Failure.ECHOED}
            return UnitFault.GARBLED if is_spoilt else UnitFault.SILENT
        if self.losses >= _UNRELIABLE_LOSSES:
            return UnitFault.UNRELIABLE
        if self.reply_seconds is not None and self.reply_seconds > _SLOW_SHARE * self.allowed_seconds:
            return UnitFault.SLOW
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class LineQuality:
    """Statistics of a line and of the units that were asked on it.

    Attributes:
        name: the link's id.
        down_reason: why the line is down, "" while it is open.
        strays: how often in the last minute bytes came that nobody asked for, counted up to 5.
        units: the units by address.
        echoes: whether requests come back on the line, although its settings do not say so.
        down_cause: why the line is down, where that is known for sure.
        is_serial: whether the line is a serial port of this machine.
    """

    name: str
    down_reason: str
    strays: int
    units: tuple[UnitQuality, ...]
    echoes: bool = False
    down_cause: Cause | None = None
    is_serial: bool = True

    @property
    def cause(self) -> Cause | None:
        """The cause of the line's fault, or of the first unit that fails; None where it is not known for sure."""
        if self.down_reason:
            return self.down_cause
        return next((unit.cause for unit in self.units if unit.failing is not None and unit.cause), None)

    @property
    def violation(self) -> str:
        """The fault in the answers of the first unit that cannot be understood; "" for none known."""
        return next((unit.violation for unit in self.units if unit.failing is not None and unit.violation), "")

    @property
    def fault(self) -> LineFault | None:
        """The fault of the line as a whole; None for none, and when only single units have one."""
        if self.down_reason:
            return LineFault.DOWN
        if self.echoes:
            return LineFault.ECHOES
        failing = [unit.failing for unit in self.units]
        if failing and None not in failing and not any(unit.is_late for unit in self.units):
            if Failure.ECHOED in failing:
                return LineFault.ECHOES
            return LineFault.GARBLED if Failure.GARBLED in failing else LineFault.SILENT
        return LineFault.DISTURBED if self.strays >= _STRAYS else None


def failure_of(request: bytes, received: bytes, error: Exception) -> Failure | None:
    """Return how a request failed, by the bytes that came after it; None when the line was lost."""
    if isinstance(error, LinkError):
        return None
    if not received:
        return Failure.SILENT if isinstance(error, TimeoutError) else Failure.GARBLED
    return Failure.ECHOED if received.startswith(request) else Failure.GARBLED


@dataclass(slots=True)
class _Stretch:
    """The counts of five minutes of a unit's answers."""

    number: int
    reply_times: list[int] = field(default_factory=lambda: [0] * (len(REPLY_BOUNDS) + 1))
    failed: Counter[Failure] = field(default_factory=Counter)


@dataclass(slots=True)
class _UnitCounts:
    reply_times: list[int] = field(default_factory=lambda: [0] * (len(REPLY_BOUNDS) + 1))
    failed: Counter[Failure] = field(default_factory=Counter)
    was_answered: deque[bool] = field(default_factory=lambda: deque(maxlen=_LAST))
    last_times: deque[float] = field(default_factory=lambda: deque(maxlen=_LAST_TIMES))
    since_answer: Counter[Failure] = field(default_factory=Counter)
    allowed: float = 0.0
    violation: ProtocolViolation | None = None
    stretches: deque[_Stretch] = field(default_factory=lambda: deque(maxlen=_STRETCHES))

    def stretch(self, now: MonotonicSeconds) -> _Stretch:
        """Return the counts of the five minutes that contain `now`."""
        number = int(now // _STRETCH_SECONDS)
        if not self.stretches or self.stretches[-1].number != number:
            self.stretches.append(_Stretch(number))
        return self.stretches[-1]

    def hour(self, now: MonotonicSeconds) -> Counts:
        """Add up the counts of the last hour."""
        first = int(now // _STRETCH_SECONDS) - _STRETCHES + 1
        late = [stretch for stretch in self.stretches if stretch.number >= first]
        times = [stretch.reply_times for stretch in late] or [[0] * (len(REPLY_BOUNDS) + 1)]
        return Counts(tuple(map(sum, zip(*times, strict=True))), sum((s.failed for s in late), Counter[Failure]()))

    def failing(self) -> Failure | None:
        """Return the most telling failure since the last answer, once there were enough of them."""
        count = self.since_answer.total()
        if count < _FAILS_AFTER:
            return None
        heard = [kind for kind in _HEARD if 3 * self.since_answer[kind] >= count]
        return heard[0] if heard else self.since_answer.most_common(1)[0][0]

    def quality(self, unit: int, *, now: MonotonicSeconds) -> UnitQuality:
        return UnitQuality(
            unit=unit,
            reply_times=tuple(self.reply_times),
            failed=dict(self.failed),
            reply_seconds=median(self.last_times) if self.last_times else None,
            allowed_seconds=self.allowed,
            failing=self.failing(),
            failures=self.since_answer.total(),
            losses=sum(before and not after for before, after in pairwise(self.was_answered)),
            hour=self.hour(now),
            violation="" if self.violation is None else str(self.violation),
            cause=None if self.violation is None else self.violation.cause,
        )


class LineAnswers:
    """The collector of the statistics of one line. `line` is its name."""

    def __init__(self, *, line: str) -> None:
        self._line = line
        self._units: dict[int, _UnitCounts] = {}
        self._strays: deque[MonotonicSeconds] = deque(maxlen=_STRAYS)

    def polled(self, unit: int, *, allowed: float) -> None:
        """Note a poll whose answer may take `allowed` seconds."""
        self._units.setdefault(unit, _UnitCounts()).allowed = allowed

    def answered(self, unit: int, *, took: float, now: MonotonicSeconds) -> None:
        """Note an answer that came `took` seconds after its request."""
        known = self._units.setdefault(unit, _UnitCounts())
        place = bisect_left(REPLY_BOUNDS, took)
        known.reply_times[place] += 1
        known.stretch(now).reply_times[place] += 1
        known.was_answered.append(True)
        known.last_times.append(took)
        known.since_answer.clear()
        known.violation = None

    def failed(
        self, unit: int, failure: Failure, *, now: MonotonicSeconds, violation: ProtocolViolation | None = None
    ) -> None:
        """Note a request without an answer that counts. `violation`: what is wrong with what came instead."""
        known = self._units.setdefault(unit, _UnitCounts())
        known.failed[failure] += 1
        known.stretch(now).failed[failure] += 1
        known.was_answered.append(False)
        known.since_answer[failure] += 1
        known.violation = violation or known.violation

    def came_late(self, unit: int, *, took: float, now: MonotonicSeconds) -> None:
        """Note a late answer, `took` seconds after its request; count the request as LATE instead of SILENT."""
        known = self._units[unit]
        for counts in (known.failed, known.stretch(now).failed, known.since_answer):
            if counts[Failure.SILENT]:  # these counts may have been cleared since the request failed
                counts[Failure.SILENT] -= 1
                counts[Failure.LATE] += 1
        known.last_times.append(took)

    def stray(self, *, now: MonotonicSeconds) -> None:
        """Note bytes that nobody asked for."""
        self._strays.append(now)

    def quality(self, *, down_reason: str, now: MonotonicSeconds) -> LineQuality:
        """Return the line's statistics as of now. `down_reason` is why the line is down, "" while it is open."""
        return LineQuality(
            name=self._line,
            down_reason=down_reason,
            strays=sum(at > now - _STRAY_SECONDS for at in self._strays),
            units=tuple(known.quality(unit, now=now) for unit, known in sorted(self._units.items())),
        )
