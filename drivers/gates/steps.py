"""Guards of step commands.

A step-by-step input answers a second pulse with the opposite movement. So a step is sent only where its effect is
known.
"""

from __future__ import annotations

from collections.abc import Callable

from drivers.contract import Forbidden, GatePosition, MonotonicSeconds


class Steps:
    """The last step that was sent to a gate.

    Attributes:
        last: where the gate was when the step was sent, and the instant; None when no step was sent.

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
        self.last: tuple[GatePosition, MonotonicSeconds] | None = None

    def why_not(self) -> str:
        """Return why no step may be sent now; "" when one may."""
        if self.last is not None:
            position, at = self.last
            if position is self._position() and self._monotonic() - at < self._settle_seconds:
                return f"{self._name} has not been seen to move since the last step command"
        return ""

    def begin(self, *forbidden: Forbidden | None) -> StepAttempt:
        """Begin to send a step. `forbidden`: what may stand against it, besides the last step, in order."""
        return StepAttempt(self, tuple(one for one in forbidden if one is not None))

    def now(self) -> tuple[GatePosition, MonotonicSeconds]:
        """Return where the gate is, and the instant."""
        return self._position(), self._monotonic()


class StepAttempt:
    """One command that is a step, from its first question until the device has it."""

    def __init__(self, steps: Steps, forbidden: tuple[Forbidden, ...]) -> None:
        self._steps = steps
        self._forbidden = (*forbidden, steps.why_not)
        self._sent: tuple[GatePosition, MonotonicSeconds] | None = None

    def stands_against(self) -> str:
        """Return what forbids the step. If nothing does, note the step, which is sent right after this call."""
        self.not_taken()  # of an attempt before
        reason = next((reason for forbidden in self._forbidden if (reason := forbidden())), "")
        if not reason:
            self._steps.last = self._sent = self._steps.now()
        return reason

    def not_taken(self) -> None:
        """Forget the step, since the device has not got it."""
        if self._sent is not None and self._steps.last is self._sent:
            self._steps.last = None
