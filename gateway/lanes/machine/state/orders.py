"""Standing orders: a lane held open or locked down, by a person or by the schedule."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from gateway.domain.commands import actor
from gateway.texts import Text, Words, text

_NEVER = float("-inf")


class OrderKind(StrEnum):
    """The kind of a standing order. `NORMAL` is a person's order against the schedule."""

    NORMAL = "normal"
    HOLD_OPEN = "hold_open"
    LOCK_DOWN = "lock_down"


@dataclass(frozen=True, slots=True)
class Order:
    """A standing order.

    Attributes:
        kind: what it makes the lane do.
        by: its source: `user:<name>` or `schedule`.
        reason: why, in the words of whoever gave it; "" when none was given.
    """

    kind: OrderKind
    by: str
    reason: str = ""

    def words(self) -> Text:
        """Return the order in a sentence for people."""
        who = actor(self.by)
        if self.reason:
            return text(f"order_for.{self.kind}", who=who, reason=self.reason)
        return text(f"order.{self.kind}", who=who)


@dataclass(frozen=True, slots=True)
class ReasonToStayOpen:
    """The last reason to keep the gate open ("fire" or "hold_open", and in words), and its end."""

    reason: str = ""
    sentence: Words = ""
    until: float = _NEVER


@dataclass(frozen=True, slots=True)
class OpensToStayOpen:
    """Number of opens sent to keep the gate open, when the next may follow, and whether an event reported failure."""

    tries: int = 0
    not_before: float = _NEVER
    reported: bool = False


@dataclass(frozen=True, slots=True)
class Orders:
    """The standing orders, and what was done to keep the gate open.

    Attributes:
        operator: a person's order.
        scheduled: what the schedule wants.
        doubt: what a clock that is not trusted means for the lane's schedules, "" for nothing.
        doubted_since: when the doubt last changed.
        opens: the opens sent to keep the gate open.
        last_reason: why the gate was kept open last; points must have been clear since its end.
    """

    operator: Order | None = None
    scheduled: Order | None = None
    doubt: str = ""
    doubted_since: float = _NEVER
    opens: OpensToStayOpen = field(default_factory=OpensToStayOpen)
    last_reason: ReasonToStayOpen = field(default_factory=ReasonToStayOpen)

    @property
    def in_force(self) -> Order | None:
        """The order that counts: a person's before the schedule's; None when the lane works as usual."""
        order = self.operator or self.scheduled
        return None if order is None or order.kind is OrderKind.NORMAL else order

    def given(self, order: Order | None) -> Orders:
        """Return the orders with a person's order; with None the schedule counts again."""
        return replace(self, operator=order)

    def by_schedule(self, order: Order | None, doubt: str) -> Orders:
        """Return the orders with what the schedule wants from now on."""
        return replace(self, scheduled=order, doubt=doubt)

    def doubted(self, since: float) -> Orders:
        """Return the orders with the start of the present doubt about the clock."""
        return replace(self, doubted_since=since)

    def afresh(self) -> Orders:
        """Return the orders with no open counted yet."""
        return replace(self, opens=OpensToStayOpen())

    def not_sent(self, *, soon: float) -> Orders:
        """Return the orders after an open that was not sent. After the first open, the next is due at `soon`."""
        is_first = self.opens.tries == 1
        return replace(self, opens=replace(self.opens, not_before=soon)) if is_first else self
