"""Standing orders: a lane held open or locked down, by a person or by the schedule. `standing` carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class OrderKind(StrEnum):
    """What a standing order wants. `NORMAL` is a person's word against the schedule."""

    NORMAL = "normal"
    HOLD_OPEN = "hold_open"
    LOCK_DOWN = "lock_down"


_WORDS = {
    OrderKind.NORMAL: "works as usual",
    OrderKind.HOLD_OPEN: "is held open",
    OrderKind.LOCK_DOWN: "is locked down",
}


@dataclass(frozen=True, slots=True)
class Order:
    """A standing order.

    Attributes:
        kind: what it wants.
        by: who gave it: `user:<name>` or `schedule`.
        reason: why, in the words of whoever gave it; "" when none was given.
    """

    kind: OrderKind
    by: str
    reason: str = ""

    def sentence(self) -> str:
        """The order for people."""
        who = self.by.removeprefix("user:")
        return f"the lane {_WORDS[self.kind]} by {who}" + (f": {self.reason}" if self.reason else "")
