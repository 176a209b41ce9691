"""Judgement of units' answers: which unit may be polled, and which answers count. Pure.

An answer without a transaction number counts only with a proof that it belongs to its request.

A line keeps the order of its bytes, but may delay them. So an answer can be mistaken only while an earlier request of
the same form still has no answer: the unit owes one. An answer in that state does not count until it is known whose it
was, and the unit is not polled meanwhile. If it was the earlier request's, the answer to the next request follows it
after as long as lay between the two requests.

- Nothing follows: the owed answer was lost. The next answer counts.
- An answer follows: the line is late. The unit is asked again once everything owed has come, or after 1.5 times the
  longest recent delay.

`Units` joins this proof with `drivers.bus.unit_states` (which units answer, and how fast) and, for people, with
`drivers.bus.line_quality` and `drivers.bus.recent`.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field

from drivers.bus.line_quality import Failure, LineAnswers, LineQuality, failure_of
from drivers.bus.recent import RecentTurns
from drivers.bus.transactions import Exchange, Priority, Transaction, UnitRests
from drivers.bus.unit_states import UnitStates
from drivers.contract import DriverError, LinkError, MonotonicSeconds, ProtocolViolation, TooLate

OWED_SECONDS = 10.0
"""Seconds after which an unanswered request is taken as lost, unless longer delays were seen on the line."""
REMEMBERED_SECONDS = 60.0

_KEPT = 32
_LONGEST_STRAY = 1024
_FACTOR_APART = 1.25
_MARGIN_APART = 0.15
_FACTOR_LATE = 1.5
_MARGIN_LATE = 0.25
_SETTLED_SECONDS = 0.05

AnyExchange = Exchange[object]

_MOST_OVERDUE = 16
"""Most unanswered requests with numbers that are remembered, to recognise their late answers."""


@dataclass(frozen=True, slots=True, eq=False)
class _Owed:
    exchange: AnyExchange
    asked_at: MonotonicSeconds


@dataclass(slots=True)
class _UnitAnswers:
    """One unit.

    Attributes:
        owed: the requests that were not answered in time, and still may be; oldest first.
        late_by: the longest recent delay from a request to its late answer, in seconds; 0.0 for none.
        late_at: when the last late answer came.
        proves_at: if nothing comes until then, the owed answers count as lost; None when nothing is being proven.
        left_alone_until: the unit must not be polled before.
    """

    owed: deque[_Owed] = field(default_factory=lambda: deque(maxlen=_KEPT))
    late_by: float = 0.0
    late_at: MonotonicSeconds = float("-inf")
    proves_at: MonotonicSeconds | None = None
    left_alone_until: MonotonicSeconds = float("-inf")

    def look(self, now: MonotonicSeconds) -> None:
        """Forget delays, proofs and owed answers whose time is over."""
        if now - self.late_at > REMEMBERED_SECONDS:
            self.late_by = 0.0
        if self.proves_at is not None and now >= self.proves_at:
            self.owed.clear()
            self.proves_at = None
        longest = max(OWED_SECONDS, self.patience)
        while self.owed and now - self.owed[0].asked_at > longest:
            self.owed.popleft()

    @property
    def patience(self) -> float:
        """Seconds after a request within which a late answer is expected; 0.0 when no recent answer was late."""
        return _FACTOR_LATE * self.late_by + _MARGIN_LATE if self.late_by else 0.0

    def listen(self, since: MonotonicSeconds, *, first_asked_at: MonotonicSeconds) -> None:
        """Begin a proof: set until when a further answer would follow.

        `first_asked_at` is the instant of the request that the answer at `since` may belong to.
        """
        asked = (first_asked_at, *(owed.asked_at for owed in self.owed))
        apart = max((later - earlier for earlier, later in itertools.pairwise(asked)), default=0.0)
        self.proves_at = max(since + _FACTOR_APART * apart + _MARGIN_APART, asked[-1] + self.patience)
        self.left_alone_until = self.proves_at


class Lateness:
    """The owed and late answers of all units of a line without transaction numbers. Instants come with each call."""

    def __init__(self) -> None:
        self._units: dict[int, _UnitAnswers] = {}
        self._strays = bytearray()

    def rest_left(self, unit: int, *, now: MonotonicSeconds) -> float:
        """Return the seconds for which the unit must not be polled; 0.0 when it may be."""
        known = self._units.get(unit)
        if known is None:
            return 0.0
        known.look(now)
        return max(0.0, known.left_alone_until - now)

    def late_by(self, unit: int, *, now: MonotonicSeconds) -> float:
        """Return the longest recent delay from a request to its late answer, in seconds; 0.0 when none was late."""
        known = self._units.get(unit)
        if known is None:
            return 0.0
        known.look(now)
        return known.late_by

    def words(self, unit: int, *, now: MonotonicSeconds) -> str:
        """Return why a unit's answers do not count, in words for people that follow the unit's name."""
        late_by = self.late_by(unit, now=now)
        if late_by:
            return f"answers too late, {late_by:.1f} s after it was asked"
        return "may have answered an earlier request; it is asked again soon"

    def unanswered(self, exchange: AnyExchange, *, asked_at: MonotonicSeconds, now: MonotonicSeconds) -> None:
        """Note a request that got no readable answer in time, so that the unit owes one that may still come."""
        unit = self._units.setdefault(exchange.unit, _UnitAnswers())
        unit.look(now)
        unit.owed.append(_Owed(exchange, asked_at))
        if unit.proves_at is None:
            unit.left_alone_until = asked_at + unit.patience
        else:
            unit.listen(now, first_asked_at=unit.owed[0].asked_at)

    def is_proven(
        self,
        exchange: AnyExchange,
        received: bytes,
        *,
        is_command: bool,
        asked_at: MonotonicSeconds,
        at: MonotonicSeconds,
    ) -> bool:
        """Return whether the answer in `received`, all bytes since the request, belongs to this request.

        If not, the unit is left alone for a while. The answer to a command counts all the same when only equal
        commands are owed an answer: whichever it answers, the unit took that very command.
        """
        unit = self._units.get(exchange.unit)
        if unit is not None:
            unit.look(at)
        if unit is None or not unit.owed:
            return True
        end = exchange.answer_end(received)
        answer, behind = received[:end], received[end:]
        rivals = [owed for owed in unit.owed if owed.exchange.is_answered_by(answer)]
        if not rivals:
            # The line keeps the order of bytes, so earlier answers cannot come any more.
            unit.owed.clear()
            unit.proves_at, unit.left_alone_until = None, float("-inf")
            return True
        unit.owed.remove(rivals[0])
        unit.owed.append(_Owed(exchange, asked_at))
        unit.listen(at, first_asked_at=rivals[0].asked_at)
        self.take(behind, now=at)
        return is_command and all(rival.exchange.request == exchange.request for rival in rivals)

    def take(self, data: bytes, *, now: MonotonicSeconds) -> bool:
        """Take bytes that answered no request in time; return whether they complete a late answer."""
        if not any(unit.owed for unit in self._units.values()):
            self._strays.clear()
            return False
        self._strays += data
        has_settled = False
        while (settled := self._settled(bytes(self._strays), now)) is not None:
            has_settled = True
            del self._strays[:settled]
        del self._strays[:-_LONGEST_STRAY]
        return has_settled

    def take_beside(self, received: bytes, *, unit: int, now: MonotonicSeconds) -> None:
        """Look for late answers of other units in bytes that came while `unit` was asked."""
        for other, known in self._units.items():
            if other != unit and known.owed:
                self._settle_first(known, received, now)

    def _settled(self, strays: bytes, now: MonotonicSeconds) -> int | None:
        """Find one late answer; return how many bytes it takes, with those before it."""
        for unit in self._units.values():
            settled = self._settle_first(unit, strays, now)
            if settled is not None:
                return settled
        return None

    def _settle_first(self, unit: _UnitAnswers, received: bytes, now: MonotonicSeconds) -> int | None:
        unit.look(now)
        owed = next((owed for owed in unit.owed if owed.exchange.is_answered_by(received)), None)
        if owed is None:
            return None
        unit.owed.remove(owed)
        unit.late_by, unit.late_at = max(unit.late_by, now - owed.asked_at), now
        if not unit.owed:
            unit.proves_at, unit.left_alone_until = None, now + _SETTLED_SECONDS
        elif unit.proves_at is None:
            unit.left_alone_until = unit.owed[-1].asked_at + unit.patience
        else:
            unit.listen(now, first_asked_at=owed.asked_at)
        return owed.exchange.answer_end(received)

    def forget(self) -> None:
        """Forget all owed answers, since none can outlive the line that was closed."""
        for unit in self._units.values():
            unit.owed.clear()
            unit.proves_at = None
        self._strays.clear()


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
