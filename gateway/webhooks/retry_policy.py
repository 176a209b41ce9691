"""The retry policy: whether a message is done, retried or given up after an attempt, and the pause of its queue. Pure.

Only 2xx is success; a redirect is a failure, and 410 disables the webhook. 429, 502, 504 and any Retry-After mean
overload: then the whole queue pauses.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import Enum

WAITS = (5.0, 300.0, 1800.0, 7200.0, 18_000.0, 36_000.0, 36_000.0)
"""Seconds from each failed attempt to the next; after the last one, a message is given up."""

LONGEST_WAIT = 36_000.0
_JITTER = 0.2
_SLOW = frozenset({429, 502, 504})
_FIRST_PAUSE = 5.0
_LONGEST_PAUSE = 300.0


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """Result of an attempt: the answer's status and Retry-After; or status 0 and `fault`, why there was no answer."""

    status: int = 0
    retry_after: str = ""
    fault: str = ""

    @property
    def succeeded(self) -> bool:
        """True if the receiver accepted the message."""
        return 200 <= self.status < 300

    def sentence(self) -> str:
        """Return what went wrong, as a sentence for people."""
        if self.fault:
            return self.fault
        moved = " (redirections are not followed)" if 300 <= self.status < 400 else ""
        return f"the receiver answered {self.status}{moved}"


class MessageFate(Enum):
    """Fate of a message after an attempt."""

    DELIVERED = "delivered"
    AGAIN = "again"
    GIVEN_UP = "given up"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class AttemptVerdict:
    """Fate of a message. `wait`: seconds to its next attempt; `pause`: seconds until the queue sends any message."""

    fate: MessageFate
    wait: float = 0.0
    pause: float = 0.0


def judge(answer: AttemptResult, *, tries: int, slow: int, now: datetime, chance: float) -> AttemptVerdict:
    """Decide the message's fate by an answer.

    Args:
        answer: the result of the attempt.
        tries: the number of failed attempts before this one.
        slow: the number of answers in a row before this one that meant overload.
        now: the present time with a time zone, for a Retry-After that names a date.
        chance: a random number from 0 to 1 for jitter, so that retries spread.
    """
    if answer.succeeded:
        return AttemptVerdict(MessageFate.DELIVERED)
    if answer.status == 410:
        return AttemptVerdict(MessageFate.GONE)
    wished = retry_after(answer.retry_after, now=now)
    pause = 0.0
    if wished is not None:
        pause = wished
    elif answer.status in _SLOW:
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** min(slow, 16)) * (1 + _JITTER * chance)
    if tries >= len(WAITS):
        return AttemptVerdict(MessageFate.GIVEN_UP, pause=pause)
    return AttemptVerdict(MessageFate.AGAIN, wait=max(WAITS[tries] * (1 + _JITTER * chance), pause), pause=pause)


def retry_after(text: str, *, now: datetime) -> float | None:
    """Return the seconds of a Retry-After, limited to 1 s to 10 h; None when it is missing or unreadable."""
    text = text.strip()
    if text.isascii() and text.isdecimal():
        seconds = float(text[:9])
    else:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return None
        seconds = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now).total_seconds()
    return min(max(seconds, 1.0), LONGEST_WAIT)
