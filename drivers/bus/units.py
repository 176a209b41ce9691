"""Judgement of units' answers: which unit may be polled, and which answers count.

It joins `drivers.bus.unit_states` (which units answer, and how fast), `drivers.bus.late_answers` (which answers are
late) and, for people, `drivers.bus.line_quality` and `drivers.bus.recent`.
"""

from __future__ import annotations

from collections import deque

from drivers.bus.late_answers import Lateness
from drivers.bus.line_quality import Failure, LineAnswers, LineQuality, failure_of
from drivers.bus.recent import RecentTurns
from drivers.bus.transactions import Priority, Transaction, UnitRests
from drivers.bus.unit_states import UnitStates
from drivers.contract import DriverError, LinkError, MonotonicSeconds, ProtocolViolation, TooLate

_MOST_OVERDUE = 16
"""Most unanswered requests with numbers that are remembered, to recognise their late answers."""


class LineUnits:
    """All units of one line. `line` is the line's name, for messages. Instants come with each call."""

    def __init__(self, *, line: str) -> None:
        self._line = line
        self._lateness = Lateness()
        self._answers = LineAnswers(line=line)
        self.states = UnitStates()
        self.recent = RecentTurns()
        self._overdue: deque[tuple[Transaction, MonotonicSeconds]] = deque(maxlen=_MOST_OVERDUE)

    def refuse_resting(self, unit: int, *, now: MonotonicSeconds) -> None:
        """Raise UnitRests when the unit may not be polled now."""
        rest = self.states.rest_left(unit, now=now)
        if rest > 0:
            raise UnitRests(f"unit {unit} on {self._line} does not answer; asked again in {rest:.1f} s")
        if self._lateness.rest_left(unit, now=now) > 0:
            raise UnitRests(self._words(unit, now))

    def polled(self, unit: int, *, allowed: float, now: MonotonicSeconds) -> Priority:
        """Note that a poll was asked for; return its priority: PROBE if the unit is silent while others answer.

        `allowed` is how long the answer may take, in seconds.
        """
        self._answers.polled(unit, allowed=allowed)
        is_probe = self.states.has_live and not self.states.is_live(unit)
        self.states.asked(unit, now=now)
        return Priority.PROBE if is_probe else Priority.POLL

    def unproven(
        self, transaction: Transaction, received: bytes, *, asked_at: MonotonicSeconds, at: MonotonicSeconds
    ) -> LinkError | None:
        """Return the error for an answer that may belong to an earlier request; None when it is proven to be its own.

        Called only for answers without a number.
        """
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
        """Note an answer that counts. `received` is empty for a unit that never answers."""
        self._note(transaction, received, asked_at=asked_at, at=at)
        if transaction.is_of_site and transaction.exchange.answered:
            self.states.answered(transaction.exchange.unit, took=at - asked_at)
            self._answers.answered(transaction.exchange.unit, took=at - asked_at, now=at)

    def timed_out(self, transaction: Transaction, received: bytes, *, now: MonotonicSeconds) -> LinkError:
        """Note that the unit did not answer in time; return the error for its caller.

        `received` are the bytes that came instead of an answer.
        """
        unit, waited = transaction.exchange.unit, transaction.timeout
        if transaction.is_of_site:
            self.states.failed(unit, timeout=waited, now=now)
        if self._lateness.late_by(unit, now=now) > waited:
            return TooLate(self._words(unit, now))
        silent = f"unit {unit} on {self._line} did not answer within {waited * 1000:.0f} ms"
        violation = _explained(transaction, received)
        return LinkError(silent) if violation is None else LinkError(f"{silent}: {violation}", cause=violation.cause)

    def failed(
        self,
        transaction: Transaction,
        received: bytes,
        error: Exception,
        *,
        asked_at: MonotonicSeconds,
        now: MonotonicSeconds,
    ) -> None:
        """Note a failed transaction. Its answer may still come, and `received` may hold a late one."""
        exchange = transaction.exchange
        failure = failure_of(exchange.request, received, error) if transaction.sent else None
        if failure is not None:
            self._note(transaction, received, asked_at=asked_at, at=now, failure=failure)
        if failure is not None and transaction.is_of_site:
            violation = error if isinstance(error, ProtocolViolation) else _explained(transaction, received)
            self._answers.failed(exchange.unit, failure, now=now, violation=violation)
        if failure is Failure.SILENT and exchange.tagged:
            self._overdue.append((transaction, asked_at))
        if exchange.answered and not exchange.tagged and transaction.sent:
            self._lateness.unanswered(exchange, asked_at=asked_at, now=now)
            self._lateness.take(received, now=now)

    def take(self, data: bytes, *, now: MonotonicSeconds) -> bool:
        """Take bytes that no request waits for; return whether they complete a late answer without a number."""
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
            except DriverError:  # the bytes answer another request, or none
                is_answer = False
            if is_answer:
                del self._overdue[place]
                if transaction.is_of_site:
                    self._answers.came_late(exchange.unit, took=now - asked_at, now=now)
                return True
        return False

    def quality(self, *, down_reason: str, now: MonotonicSeconds) -> LineQuality:
        """Return the statistics of the line's units. `down_reason` is why the line is down, "" while it is open."""
        return self._answers.quality(down_reason=down_reason, now=now)

    def forget_late_answers(self) -> None:
        """Forget all owed answers, since none can outlive the line that was closed."""
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


def _explained(transaction: Transaction, received: bytes) -> ProtocolViolation | None:
    explain = transaction.exchange.explain
    return None if explain is None or not received else explain(received)
