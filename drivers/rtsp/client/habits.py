"""The habits of one camera: how it departs from the standards. They are learned on its connections.

A camera may list GET_PARAMETER and never answer it, or hang up at it; it may count one of the two methods only; it may
end a session sooner than it said. Each of these is learned, and kept for the camera's next connections.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

Method = Literal["OPTIONS", "GET_PARAMETER", "SET_PARAMETER"]

_METHODS: tuple[Method, ...] = ("OPTIONS", "GET_PARAMETER", "SET_PARAMETER")
"""RFC 2326, 10.1 and 10.8; the last one is that of ONVIF's streaming specification, 5.2.2.2."""
_SHARE = 0.4
"""The part of the time-out after which the next request goes out, so that one may be lost."""
_LONGEST_SECONDS = 25.0
_SHORTEST_SECONDS = 2.0
_ANSWER_SECONDS = 5.0
_AT_ONCE_SECONDS = 1.0
"""A connection that ends this soon after a request without an answer was ended because of it."""
_EARLY, _LATE, _LATE_SECONDS = 0.9, 1.2, 10.0
"""A session that ends between these parts of its time-out, or that many seconds later, was not kept alive."""
_SAME_AGE, _LEAST_AGE_SECONDS = 0.15, 10.0
"""Two sessions that end at the same age, give or take this part of it, end by a time-out that was not named."""


@dataclass(frozen=True, slots=True)
class KeepAliveHabits:
    """Lessons about keeping a camera's sessions alive.

    Attributes:
        unfit: the methods that the camera refuses or leaves unanswered.
        hangs_up: the methods at which the camera hangs up.
        ends_after: the age at which a session ended that was not kept alive; 0.0 for none.
        lasted: the age at which the camera ended the session before; 0.0 for none.
    """

    unfit: frozenset[Method] = frozenset()
    hangs_up: frozenset[Method] = frozenset()
    ends_after: float = 0.0
    lasted: float = 0.0


class KeepAlive:
    """The keep-alive requests of one session.

    Args:
        listed: whether the camera lists GET_PARAMETER.
        timeout: the session's time-out, in seconds.
        habits: what earlier sessions taught.
        now: when the session began to play, in monotonic seconds.
    """

    def __init__(self, *, listed: bool, timeout: float, habits: KeepAliveHabits, now: float) -> None:
        self._methods: tuple[Method, ...] = (
            ("GET_PARAMETER", "OPTIONS", "SET_PARAMETER") if listed else ("OPTIONS", "GET_PARAMETER", "SET_PARAMETER")
        )
        self._timeout = timeout
        self._habits = habits
        self._began = now
        self._next_at = now + self._interval()
        self._asked: Method | None = None
        self._asked_at = now
        self._last: Method | None = None
        self._sent_at: dict[Method, float] = {}

    @property
    def habits(self) -> KeepAliveHabits:
        """The lessons until now."""
        return self._habits

    def due(self, now: float) -> Method | None:
        """Return the request to send now; None for none."""
        if self._asked is not None and now - self._asked_at >= min(_ANSWER_SECONDS, self._interval() / 2):
            self._give_up(self._asked, now)
        if now < self._next_at:
            return None
        self._asked = self._last = self._method()
        self._asked_at = self._sent_at[self._asked] = now
        self._next_at = now + self._interval()
        return self._asked

    def answered(self, status: int, now: float) -> None:
        """Take an answer's status."""
        asked, self._asked = self._asked, None
        if asked is not None and status >= 400 and status != 401:
            self._give_up(asked, now)

    def again(self, now: float) -> None:
        """Send the next request at once: the last one lacked the proof of the account."""
        self._next_at = now

    def ended(self, now: float, *, hung_up: bool) -> KeepAliveHabits:
        """Return what the end of the session teaches. `hung_up`: the camera closed it, and did not just fall silent."""
        age = now - self._began
        before = self._habits
        if hung_up and self._asked is not None and now - self._asked_at <= _AT_ONCE_SECONDS:
            hangs_up = before.hangs_up | {self._asked}
            # where it hung up at both usual ones, the newest experience counts: one may have been a power cut
            both = hangs_up.issuperset(self._methods[:2])
            return replace(before, hangs_up=frozenset({self._asked}) if both else hangs_up)
        # it may have counted a method that was given up
        since = (now - counted for counted in (self._began, *self._sent_at.values()))
        timed_out = any(_EARLY * self._timeout <= one <= _LATE * self._timeout + _LATE_SECONDS for one in since)
        repeated = age >= _LEAST_AGE_SECONDS and abs(age - before.lasted) <= _SAME_AGE * age
        ends_after = before.ends_after
        if timed_out or repeated:
            ends_after = min(age, ends_after or age)
        return replace(before, lasted=age, ends_after=ends_after)

    def _interval(self) -> float:
        ends_after = self._habits.ends_after
        if not ends_after:
            return min(_LONGEST_SECONDS, self._timeout * _SHARE)
        # one request of each kind within the time that such a session lasts
        return max(_SHORTEST_SECONDS, min(ends_after, self._timeout) * _SHARE / len(_METHODS))

    def _method(self) -> Method:
        """Return the method to send.

        It is the preferred one, or the other one where that does not work. Where a session was not kept alive, each is
        sent in turn, also one that is not answered: it may count all the same.
        """
        usual = self._methods if self._habits.ends_after else self._methods[:2]
        safe = [method for method in usual if method not in self._habits.hangs_up] or list(usual)
        fit = [method for method in safe if method not in self._habits.unfit]
        if fit and not self._habits.ends_after:
            return fit[0]
        before = safe.index(self._last) if self._last in safe else 0
        return safe[(before + 1) % len(safe)]

    def _give_up(self, method: Method, now: float) -> None:
        """Note that a method does not work; send the other one at once, unless that failed already."""
        self._asked = None
        if not self._habits.ends_after and not (self._habits.unfit | self._habits.hangs_up) - {method}:
            self._next_at = now
        self._habits = replace(self._habits, unfit=self._habits.unfit | {method})


@dataclass(slots=True)
class CameraHabits:
    """Lessons of the connections to one camera, for the next ones. Belongs to the thread that reads it."""

    keepalive: KeepAliveHabits = field(default_factory=KeepAliveHabits)
    older_tls: bool = False
    """It refuses today's TLS, and takes that of older cameras."""
    ends_at_options: bool = False
    """It hangs up at OPTIONS before DESCRIBE, or right after its answer, or leaves it unanswered."""
    ends_at_sound: bool = False
    """It hangs up when its sound is set up, or leaves that unanswered; its pictures are worth more."""
    pace: float = 1.0
    """The real time that passes while it counts one second, as its last connection showed."""
    udp_fails: bool = False
    """No picture of it came through over UDP."""
    refuses_account: bool = False
    """It refused the account. Many lock it after a few attempts, so none is repeated."""
