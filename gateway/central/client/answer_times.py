"""How long central takes to answer, and whether that counts as slow. Pure."""

from __future__ import annotations

from collections import deque
from statistics import median

_LAST = 5
_SLOW_SECONDS = 3.0
_TIME_OUT_SHARE = 0.5
_WELL_SHARE = 0.5


class AnswerTimes:
    """The times of the last five answers, from the request to the first line of the answer: a long list is not slow.

    Central is slow once three of five took more than 3 s, or more than half of the time-out where that is less: a
    person who waits for it then sees nothing for that long. It is well again once three of five took less than half of
    that, so that one at the border is told once.
    """

    def __init__(self, *, timeout_seconds: float) -> None:
        """`timeout_seconds`: when an answer is not waited for any longer."""
        self.limit_seconds = min(_SLOW_SECONDS, _TIME_OUT_SHARE * timeout_seconds)
        self._last = deque[float](maxlen=_LAST)
        self.is_slow = False
        """Whether it counts as slow now."""

    def took(self, seconds: float) -> None:
        """Take in an answer that came after so long."""
        self._last.append(seconds)
        if len(self._last) < _LAST:
            return
        usual = median(self._last)
        self.is_slow = usual > (_WELL_SHARE * self.limit_seconds if self.is_slow else self.limit_seconds)
