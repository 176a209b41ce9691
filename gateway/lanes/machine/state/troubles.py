"""Troubles that last, and since when the gate is off its closed limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.domain.events import EventKind


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong that lasts: which kind (an event kind's name), of what, and since when for people."""

    kind: EventKind
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class Troubles:
    """The lane's troubles.

    Attributes:
        present: those that an event reported and that are not over.
        off_closed_at: since when the gate is off its closed limit, or since the last passage.
        forced_at: since when it is off without a reason.
        unmoved: why a command that was to move the gate did not, "" once it has reached a limit since then.
    """

    present: tuple[Trouble, ...] = ()
    off_closed_at: float | None = None
    forced_at: float | None = None
    unmoved: str = ""

    def with_present(self, present: tuple[Trouble, ...]) -> Troubles:
        """Return the troubles with these present."""
        return replace(self, present=present)

    def closed(self) -> Troubles:
        """Return the troubles once the gate is closed."""
        return replace(self, off_closed_at=None, forced_at=None)

    def off_closed(self, at: float) -> Troubles:
        """Return the troubles with the time of an open gate counted from `at`."""
        return replace(self, off_closed_at=at)

    def forced(self, at: float | None) -> Troubles:
        """Return the troubles with the gate off its limit without a reason since `at`, None: with a reason."""
        return replace(self, forced_at=at)

    def gate_unmoved(self, reason: str) -> Troubles:
        """Return the troubles after a command that did not move the gate, for this reason; "": it moves again."""
        return replace(self, unmoved=reason)
