"""Troubles that last, and since when the gate is off its closed limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.domain.events import EventKind
from gateway.texts import Words


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong that lasts: its kind, the input where there are several, and words for people."""

    kind: EventKind
    subject: str
    text: Words

    @property
    def key(self) -> tuple[EventKind, str]:
        """Its identity while it lasts."""
        return self.kind, self.subject


@dataclass(frozen=True, slots=True)
class Troubles:
    """The lane's troubles.

    Attributes:
        present: those that an event reported and that are not over.
        off_closed_at: when the gate left its closed limit, or the last vehicle was let in or passed since.
        forced_at: since when it is off the limit without a reason, None if it is not.
        unmoved: that a command did not bring the gate to its limit, "" once the gate has reached a limit again.
        is_slow: whether the gate was seen to move all the same.
    """

    present: tuple[Trouble, ...] = ()
    off_closed_at: float | None = None
    forced_at: float | None = None
    unmoved: Words = ""
    is_slow: bool = False

    def off_closed(self, at: float) -> Troubles:
        """Return the troubles with the time of an open gate counted from `at`."""
        return replace(self, off_closed_at=at)

    def forced(self, at: float | None) -> Troubles:
        """Return the troubles with the gate off its limit without a reason since `at`, None if there is a reason."""
        return self if at == self.forced_at else replace(self, forced_at=at)

    def gate_unmoved(self, text: Words, *, is_slow: bool = False) -> Troubles:
        """Return the troubles after a command did not bring the gate to its limit. `is_slow`: it moves all the same."""
        return replace(self, unmoved=text, is_slow=is_slow)
