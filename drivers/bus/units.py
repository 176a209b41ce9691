"""Judgement of units' answers: which unit may be asked, whose answer is proven, and how late one comes.

It uses `drivers.bus.occupancy` (who answers, and how fast), `drivers.bus.late_answers` (whose answers come late) and
`drivers.bus.line_quality` and `drivers.bus.recent` (what people are told of it).
"""

from __future__ import annotations

from collections import deque

from drivers.bus.late_answers import Lateness
from drivers.bus.line_quality import Failure, LineAnswers, LineQuality, failure_of
from drivers.bus.occupancy import Occupancy
from drivers.bus.recent import RecentTurns
from drivers.bus.transactions import Priority, Transaction, UnitRests
from drivers.contract import DriverError, LinkError, MonotonicSeconds, TooLate

_MOST_OVERDUE = 16
"""So many requests with numbers are remembered whose answers may still come."""


class LineUnits:
    """All units of the line of this name. Instants come with each call."""

    def __init__(self, *, line: str) -> None:
        self._line = line
        self._lateness = Lateness()
        self._answers = LineAnswers(line=line)
        self.occupancy = Occupancy()
        self.recent = RecentTurns()
        self._overdue: deque[tuple[Transaction, MonotonicSeconds]] = deque(maxlen=_MOST_OVERDUE)

    def refuse_resting(self, unit: int, *, now: MonotonicSeconds) -> None:
        """Raise UnitRests when the unit may not be polled now."""
        rest = self.occupancy.rest_left(unit, now=now)
        if rest > 0:
            raise UnitRests(f"unit {unit} on {self._line} does not answer; asked again in {rest:.1f} s")
        if self._lateness.rest_left(unit, now=now) > 0:
            raise UnitRests(self._words(unit, now))

    def polled(self, unit: int, *, allowed: float, now: MonotonicSeconds) -> Priority:
        """Return whether this is a poll, or a probe of a silent unit beside others that answer.

        `allowed`: how long the answer may take.
        """
        self._answers.polled(unit, allowed=allowed)
        is_probe = self.occupancy.has_live and not self.occupancy.is_live(unit)
        self.occupancy.asked(unit, now=now)
        return Priority.PROBE if is_probe else Priority.POLL

    def unproven(
        self, transaction: Transaction, received: bytes, *, asked_at: MonotonicSeconds, at: MonotonicSeconds
    ) -> LinkError | None:
        """Return why an answer without a number may not be this request's own; None when it is."""
        exchange, is_command = transaction.exchange, transaction.priority is Priority.COMMAND
        self._lateness.take_beside(received, unit=exchange.unit, now=at)
        if self._lateness.is_proven(exchange, received, is_command=is_command, asked_at=asked_at, at=at):
            return None
        self._note(transaction, received, asked_at=asked_at, at=at, failure=Failure.LATE)
        if transaction.is_of_site:
            self._answers.failed(exchange.unit, Failure.LATE, now=at)
        reason = self._words(exchange.unit, at)
        return LinkError(reason) if is_command else UnitRests(reason)

    def answered(
        self, transaction: Transaction, received: bytes, *, asked_at: MonotonicSeconds, at: MonotonicSeconds
    ) -> None:
        """Note an answer that counts; nothing is received from a unit that never answers."""
        self._note(transaction, received, asked_at=asked_at, at=at)
        if transaction.is_of_site and transaction.exchange.answered:
            self.occupancy.answered(transaction.exchange.unit, took=at - asked_at)
            self._answers.answered(transaction.exchange.unit, took=at - asked_at, now=at)

    def timed_out(self, transaction: Transaction, *, now: MonotonicSeconds) -> LinkError:
        """Note that the unit did not answer in time; return the error for its caller."""
        unit, waited = transaction.exchange.unit, transaction.timeout
        if transaction.is_of_site:
            self.occupancy.failed(unit, timeout=waited, now=now)
        if self._lateness.late_by(unit, now=now) > waited:
            return TooLate(self._words(unit, now))
        return LinkError(f"unit {unit} on {self._line} did not answer within {waited * 1000:.0f} ms")

    def failed(
        self,
        transaction: Transaction,
        received: bytes,
        error: Exception,
        *,
        asked_at: MonotonicSeconds,
        now: MonotonicSeconds,
    ) -> None:
        """Note a transaction without a proven answer: the answer may still come, or be in `received`."""
        exchange = transaction.exchange
        failure = failure_of(exchange.request, received, error) if transaction.sent else None
        if failure is not None:
            self._note(transaction, received, asked_at=asked_at, at=now, failure=failure)
        if failure is not None and transaction.is_of_site:
            self._answers.failed(exchange.unit, failure, now=now)
        if failure is Failure.SILENT and exchange.tagged:
            self._overdue.append((transaction, asked_at))
        if exchange.answered and not exchange.tagged and transaction.sent:
            self._lateness.unanswered(exchange, asked_at=asked_at, now=now)
            self._lateness.take(received, now=now)

    def take(self, data: bytes, *, now: MonotonicSeconds) -> bool:
        """Take bytes that no request waits for; return whether they are an answer that was awaited before."""
        if self._lateness.take(data, now=now):
            self.recent.note(now, received=data, failure=Failure.LATE)
            return True
        if self._is_overdue(data, now=now):
            self.recent.note(now, received=data, failure=Failure.LATE)
            return False
        self.recent.note(now, received=data)
        self._answers.stray(now=now)
        return False

    def _is_overdue(self, data: bytes, *, now: MonotonicSeconds) -> bool:
        """Return whether these bytes answer a numbered request that was given up; note how late they come."""
        for place, (transaction, asked_at) in enumerate(self._overdue):
            exchange = transaction.exchange
            try:
                is_answer = exchange.parse(data) is not None
            except DriverError:  # it answers another request, or none
                is_answer = False
            if is_answer:
                del self._overdue[place]
                if transaction.is_of_site:
                    self._answers.came_late(exchange.unit, took=now - asked_at, now=now)
                return True
        return False

    def quality(self, *, down_reason: str, now: MonotonicSeconds) -> LineQuality:
        """Return how the units answer, on a line that is down for this reason ("": it is open)."""
        return self._answers.quality(down_reason=down_reason, now=now)

    def forget_late_answers(self) -> None:
        """Forget all late answers: the line was opened anew."""
        self._lateness.forget()

    def _note(
        self,
        transaction: Transaction,
        received: bytes,
        *,
        asked_at: MonotonicSeconds,
        at: MonotonicSeconds,
        failure: Failure | None = None,
    ) -> None:
        exchange = transaction.exchange
        self.recent.note(
            asked_at,
            took=at - asked_at,
            unit=exchange.unit,
            priority=transaction.priority,
            request=exchange.request,
            received=received,
            failure=failure,
        )

    def _words(self, unit: int, now: MonotonicSeconds) -> str:
        return f"unit {unit} on {self._line} {self._lateness.words(unit, now=now)}"
