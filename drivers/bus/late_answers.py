"""Late answers without transaction numbers, pure: when is an answer proven to belong to its request?

A line keeps the order of its bytes, but may delay them. So an answer can be mistaken for another's only where an
earlier request still waits for one of the same form. Then nothing is believed until it is known which it was: if it was
the earlier one's, the answer that is owed to the next request follows it by as much as the requests were apart. Nobody
asks the unit meanwhile. If nothing follows, what was owed is lost, and the next answer is believed; if something
follows, the line is late, and the unit is not asked again before what it owes has come, or half as long again as it
was ever late has passed.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass, field

from drivers.bus.transactions import Exchange
from drivers.contract import MonotonicSeconds, ProtocolViolation

OWED_SECONDS = 10.0
"""After that a request that was never answered never will be, on a line that was not seen to be later still."""
REMEMBERED_SECONDS = 60.0

_KEPT = 32
_LONGEST_STRAY = 1024
_FACTOR_APART = 1.25
_MARGIN_APART = 0.15
_FACTOR_LATE = 1.5
_MARGIN_LATE = 0.25
_SETTLED_SECONDS = 0.05

AnyExchange = Exchange[object]


@dataclass(frozen=True, slots=True, eq=False)
class _Owed:
    exchange: AnyExchange
    asked_at: MonotonicSeconds


@dataclass(slots=True)
class _Unit:
    """One unit.

    Attributes:
        owed: the requests that were not answered in time, and still may be; oldest first.
        late_by: the most that an answer was late of late; 0.0 for never.
        late_at: when that was last seen.
        proves_at: when, if nothing comes until then, what is owed is lost; None when nothing is being proven.
        left_alone_until: not asked before.
    """

    owed: deque[_Owed] = field(default_factory=lambda: deque(maxlen=_KEPT))
    late_by: float = 0.0
    late_at: MonotonicSeconds = float("-inf")
    proves_at: MonotonicSeconds | None = None
    left_alone_until: MonotonicSeconds = float("-inf")

    def look(self, now: MonotonicSeconds) -> None:
        """Forget what is over."""
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
        """Seconds after a request in which its answer is to be expected on a line that was seen to be late."""
        return _FACTOR_LATE * self.late_by + _MARGIN_LATE if self.late_by else 0.0

    def listen(self, since: MonotonicSeconds, *, first_asked_at: MonotonicSeconds) -> None:
        """Wait for what would follow if what came just now answers the request of `first_asked_at`."""
        asked = (first_asked_at, *(owed.asked_at for owed in self.owed))
        apart = max((later - earlier for earlier, later in itertools.pairwise(asked)), default=0.0)
        self.proves_at = max(since + _FACTOR_APART * apart + _MARGIN_APART, asked[-1] + self.patience)
        self.left_alone_until = self.proves_at


class Lateness:
    """All units of one line whose answers bear no numbers. Instants come with each call."""

    def __init__(self) -> None:
        self._units: dict[int, _Unit] = {}
        self._strays = bytearray()

    def rest_left(self, unit: int, *, now: MonotonicSeconds) -> float:
        """Seconds for which the unit must not be polled; 0.0 when it may be."""
        known = self._units.get(unit)
        if known is None:
            return 0.0
        known.look(now)
        return max(0.0, known.left_alone_until - now)

    def late_by(self, unit: int, *, now: MonotonicSeconds) -> float:
        """Return the longest recent delay of an answer in seconds after its request; 0.0 when none was late."""
        known = self._units.get(unit)
        if known is None:
            return 0.0
        known.look(now)
        return known.late_by

    def words(self, unit: int, *, now: MonotonicSeconds) -> str:
        """Return the reason, for people, why a unit's answers do not count."""
        late_by = self.late_by(unit, now=now)
        if late_by:
            return f"answers too late, {late_by:.1f} s after it was asked"
        return "may have answered an earlier request; it is asked again soon"

    def unanswered(self, exchange: AnyExchange, *, asked_at: MonotonicSeconds, now: MonotonicSeconds) -> None:
        """Note a request without an answer in time, or without a readable one: its answer may still come."""
        unit = self._units.setdefault(exchange.unit, _Unit())
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
        """Return whether the answer in these bytes, all that came since the request, is the request's own.

        If not, the unit is left alone for a while. The answer to a command that is owed one already counts anyway:
        either way the unit took just that command.
        """
        unit = self._units.get(exchange.unit)
        if unit is not None:
            unit.look(at)
        if unit is None or not unit.owed:
            return True
        end = _end_of_answer(exchange, received)
        answer, behind = received[:end], received[end:]
        rivals = [owed for owed in unit.owed if _answers(owed.exchange, answer)]
        if not rivals:
            # The order is kept: earlier answers cannot come any more.
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
        """Take bytes that came while another unit was asked: late answers may be among them."""
        for other, known in self._units.items():
            if other != unit and known.owed:
                self._settle_first(known, received, now)

    def _settled(self, strays: bytes, now: MonotonicSeconds) -> int | None:
        """Find one late answer; return its length with what was before it."""
        for unit in self._units.values():
            settled = self._settle_first(unit, strays, now)
            if settled is not None:
                return settled
        return None

    def _settle_first(self, unit: _Unit, received: bytes, now: MonotonicSeconds) -> int | None:
        unit.look(now)
        owed = next((owed for owed in unit.owed if _answers(owed.exchange, received)), None)
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
        return _end_of_answer(owed.exchange, received)

    def forget(self) -> None:
        """Forget all late answers: the line was opened anew, and delays none over that."""
        for unit in self._units.values():
            unit.owed.clear()
            unit.proves_at = None
        self._strays.clear()


def _answers(exchange: AnyExchange, received: bytes) -> bool:
    try:
        return exchange.parse(received) is not None
    except ProtocolViolation:
        return False


def _end_of_answer(exchange: AnyExchange, received: bytes) -> int:
    """Return how many of the bytes it takes until the exchange is answered."""
    low, high = 1, len(received)
    while low < high:
        middle = (low + high) // 2
        if _answers(exchange, received[:middle]):
            high = middle
        else:
            low = middle + 1
    return high
