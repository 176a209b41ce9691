"""Operations that central denies or fails with now. They are paused; rows of other operations go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gateway.runtime.supervision import Backoff
from gateway.store import OutboxRow

_FAILURES = 3  # in a row; fewer may be the fault of single records

Action = tuple[str, str]
"""An operation: a kind of record and an action, as rows of the outbox have them."""


def action_of(row: OutboxRow) -> Action:
    """Return the operation of a row."""
    return row.kind, row.action


@dataclass(slots=True)
class _Trouble:
    """The failures of an operation.

    Attributes:
        times: how many times in a row it was denied or failed.
        until: when it may be tried again, in monotonic seconds; 0 for at any time.
        said: its last error; "" for a denial, which the client reports.
    """

    times: int = 0
    until: float = 0.0
    said: str = ""


class PausedOperations:
    """Backoff for each operation: one that is denied, or fails repeatedly, is tried more and more rarely."""

    def __init__(
        self,
        *,
        monotonic: Callable[[], float],
        denied_backoff: Backoff | None = None,
        failing_backoff: Backoff | None = None,
    ) -> None:
        self._monotonic = monotonic
        self._denied_backoff = denied_backoff or Backoff(first=2.0, longest=60.0)
        self._failing_backoff = failing_backoff or Backoff(first=0.5, longest=15.0)
        self._troubles: dict[Action, _Trouble] = {}

    def denied(self, action: Action) -> bool:
        """Pause an operation that central does not permit; return whether that is new."""
        trouble = self._troubles.setdefault(action, _Trouble())
        trouble.times += 1
        trouble.said = ""
        trouble.until = self._monotonic() + self._denied_backoff.wait(trouble.times)
        return trouble.times == 1

    def failed(self, action: Action, said: str) -> int:
        """Count a failure of central; return how many in a row. The third pauses the operation."""
        trouble = self._troubles.setdefault(action, _Trouble())
        trouble.times += 1
        trouble.said = said
        if trouble.times >= _FAILURES:
            trouble.until = self._monotonic() + self._failing_backoff.wait(trouble.times - _FAILURES + 1)
        return trouble.times

    def went_through(self, action: Action) -> bool:
        """Note that central carried out an operation, or refused only the record; return whether it was paused."""
        trouble = self._troubles.pop(action, None)
        return trouble is not None and trouble.until > 0

    def is_doubtful(self, action: Action) -> bool:
        """Return whether the operation's last attempt was denied or failed."""
        return action in self._troubles

    def now(self) -> frozenset[Action]:
        """Return the operations that are paused now."""
        now = self._monotonic()
        return frozenset(action for action, trouble in self._troubles.items() if trouble.until > now)

    def failing(self) -> tuple[str, ...]:
        """Return the last errors of the operations with which central fails repeatedly."""
        return tuple(trouble.said for trouble in self._troubles.values() if trouble.until > 0 and trouble.said)

    def left(self) -> float | None:
        """Return the seconds until the next paused operation may be tried; None when none is paused."""
        now = self._monotonic()
        return min((trouble.until - now for trouble in self._troubles.values() if trouble.until > now), default=None)
