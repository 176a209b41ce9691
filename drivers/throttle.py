"""Growing waits after refused attempts: of passwords, codes and tokens, and of requests that do harm. Pure."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

_FORGET_SECONDS = 900.0
_LONGEST_SECONDS = 60.0
_MOST_KEYS = 4096


@dataclass(slots=True)
class _Failures:
    count: int
    last: float
    until: float


class Throttle:
    """Counter of failures by key. The first `free` failures cost nothing; each further one doubles the wait, 2 to 60 s.

    A key's failures are forgotten 15 minutes after the last. Times are monotonic seconds.
    """

    def __init__(self, *, free: int) -> None:
        self._free = free
        self._known: dict[Hashable, _Failures] = {}

    def wait(self, key: Hashable, *, now: float) -> float:
        """Return seconds until `key` may try again, 0 when it may now."""
        known = self._known.get(key)
        return 0.0 if known is None else max(0.0, known.until - now)

    def failed(self, key: Hashable, *, now: float) -> None:
        """Note a failure of `key`."""
        known = self._known.pop(key, None)
        count = 1 if known is None or now - known.last > _FORGET_SECONDS else known.count + 1
        over = count - self._free
        wait = min(_LONGEST_SECONDS, 2.0 ** min(over, 16)) if over > 0 else 0.0
        while len(self._known) >= _MOST_KEYS:
            del self._known[next(iter(self._known))]  # the one that failed longest ago
        self._known[key] = _Failures(count=count, last=now, until=now + wait)

    def forgive(self, key: Hashable) -> None:
        """Withdraw the latest failure of `key`, because it could not be checked."""
        known = self._known.get(key)
        if known is not None:
            known.count -= 1
            known.until = known.last

    def succeeded(self, key: Hashable) -> None:
        """Forget the failures of `key`."""
        self._known.pop(key, None)
