"""Guards of step commands.

A step-by-step input answers a second pulse with the opposite movement. So a step is sent only where its effect is
known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drivers.contract import Forbidden, GatePosition, MonotonicSeconds


@dataclass(frozen=True, slots=True, eq=False)
class _Sent:
    """A step that was sent: where the gate was, and when."""

    position: GatePosition
    at: MonotonicSeconds


class Steps:
    """The last step that was sent to a gate.

    Args:
        name: the gate's name, for people.
        settle_seconds: for so long, a gate whose position has not changed since the last step gets no other one.
        position: returns the gate's present position.
        monotonic: the clock.
    """

    def __init__(
        self,
        *,
        name: str,
        settle_seconds: float,
        position: Callable[[], GatePosition],
        monotonic: Callable[[], MonotonicSeconds],
    ) -> None:
        self._name = name
        self._settle_seconds = settle_seconds
        self._position = position
        self._monotonic = monotonic
        self._last: _Sent | None = None

    def why_not(self) -> str:
        """Return why no step may be sent now; "" when one may."""
        last = self._last
        if (
            last is not None
            and last.position is self._position()
            and self._monotonic() - last.at < self._settle_seconds
        ):
            return f"{self._name} has not been seen to move since the last step command"
        return ""

    def begin(self, *forbidden: Forbidden | None) -> StepAttempt:
        """Begin to send a step. `forbidden`: what may stand against it, besides the last step, in order."""
        return StepAttempt(self, tuple(one for one in forbidden if one is not None))

    def note(self) -> _Sent:
        """Note that a step is sent now."""
        self._last = sent = _Sent(self._position(), self._monotonic())
        return sent

    def forget(self, sent: _Sent | None) -> None:
        """Forget this step if it is the last one, since the device has not got it."""
        if sent is not None and self._last is sent:
            self._last = None


class StepAttempt:
    """One command that is a step, from its first question until the device has it."""

    def __init__(self, steps: Steps, forbidden: tuple[Forbidden, ...]) -> None:
        self._steps = steps
        self._forbidden = (*forbidden, steps.why_not)
        self._sent: _Sent | None = None

    def stands_against(self) -> str:
        """Return what forbids the step. If nothing does, note the step, which is sent right after this call."""
        self.not_taken()  # of an attempt before
        reason = next((reason for forbidden in self._forbidden if (reason := forbidden())), "")
        if not reason:
            self._sent = self._steps.note()
        return reason

    def not_taken(self) -> None:
        """Forget the step, since the device has not got it."""
        self._steps.forget(self._sent)
        self._sent = None
