"""The closing of a gate, and its reopening when something comes into its way."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.inputs import NEVER
from gateway.texts import Words

_MOST_COUNTED = 10


@dataclass(frozen=True, slots=True)
class Closing:
    """The closing of the gate, beside the visit of the next vehicle.

    Attributes:
        since: when the closing was decided, or when its last close was sent.
        sent: whether a close is on its way, or the device closes by itself.
        tries: number of closes sent so far.
        not_before: no close is sent before then.
        hold_reported: whether an event has reported what delays the close.
        earlier: whether a close before the last one has reached the controller, and may still move the gate: another
            close followed it, or opens that were to undo it may not have worked.
        seen_moving: whether the gate was seen closing since the close was sent, or before it was opened again.
        ours: whether the gate moves, or stopped half-way, on a close that the gateway sent; then it is opened again if
            something comes into its way.
        lost: whether the controller was lost meanwhile, and the position has not been read since.
        reopened: how often in a row the gate was opened again while it closed.
        reopening: number of opens sent to undo the close that have not moved the gate yet.
        unsent_opens: number of these opens that did not go out while the close might still move the gate.
        reopen_at: when the next such open is due.
        reopen_unsent: whether the last such open did not go out.
        reopens_for: why the gate was asked to open again; "" once its controller has acknowledged that.
        reopens_since: when the gate was asked to open again, in wall micros.
        seen_closed: whether the gate was seen closed since it was asked to open again; then no other open is sent.
        of_person: whether its last close is a person's.
        before: the closing whose place that close took; it goes on if the close is not sent.
    """

    since: float
    sent: bool = False
    tries: int = 0
    not_before: float = NEVER
    hold_reported: bool = False
    earlier: bool = False
    seen_moving: bool = False
    ours: bool = False
    lost: bool = False
    reopened: int = 0
    reopening: int = 0
    unsent_opens: int = 0
    reopen_at: float = NEVER
    reopen_unsent: bool = False
    reopens_for: Words = ""
    reopens_since: int = 0
    seen_closed: bool = False
    of_person: bool = False
    before: Closing | None = None

    @property
    def is_on_its_way(self) -> bool:
        """True when a close that the gateway sent may still move the gate, or is being undone."""
        return (self.sent and self.ours) or self.reopening > 0 or self.earlier

    @classmethod
    def wanted(cls, at: float, *, by_device: bool) -> Closing:
        """Return a closing that has begun; `by_device`: the gate closes by itself."""
        return cls(since=at, sent=by_device)

    @classmethod
    def by_person(cls, at: float, *, tries: int, earlier: bool, before: Closing | None) -> Closing:
        """Return a closing that a person wants, whose close is on its way and counts as `tries` closes.

        `before`: the closing until now, None for none.
        """
        if before is not None and before.of_person:
            before = before.before
        return cls(since=at, sent=True, ours=True, tries=tries, earlier=earlier, of_person=True, before=before)

    def controller_lost(self) -> Closing:
        """Return the closing while the gate's controller is lost."""
        return replace(self, lost=True)

    def watched_again(self, at: float) -> Closing:
        """Return the closing after an open that replaced it was not sent, or was given up."""
        return replace(self, since=at, reopen_unsent=self.reopening > 0)

    def close_reached(self) -> Closing:
        """Return the closing after a superseded close turned out to have reached the controller."""
        return replace(self, earlier=True)

    def close_not_sent(self, at: float) -> Closing:
        """Return the closing after a close that was not sent: it is no try, and an earlier close is still watched."""
        goes_on = self.earlier
        return replace(self, since=at, sent=goes_on, ours=goes_on, tries=max(0, self.tries - 1))

    def without_close(self, at: float) -> Closing | None:
        """Return the closing after a close that was not sent, None if nothing is to be closed any more.

        A person's close that was not sent changes nothing: what was before it goes on.
        """
        if self.earlier or not self.of_person:
            return self.close_not_sent(at)
        if self.before is None:
            return None
        return self.before.close_not_sent(at) if self.before.is_on_its_way else self.before.watched_again(at)

    def after_failure(self, at: float, *, pause: float, stopped: bool) -> Closing:
        """Return the closing after a close that failed; `stopped`: the gate stands half-way."""
        return Closing(
            since=at,
            tries=self.tries,
            not_before=at + pause,
            hold_reported=self.hold_reported,
            ours=self.ours and stopped,
            reopened=self.reopened,
        )

    def opened_again(self, now: m.Now, reason: Words, *, pause: float, most_tries: int) -> Closing:
        """Return the closing once something came into the way; the next close waits for at least `pause` seconds."""
        return Closing(
            since=now.at,
            tries=max(0, min(self.tries, most_tries) - 1),
            not_before=now.at + pause,
            seen_moving=self.seen_moving,
            reopened=min(self.reopened + 1, _MOST_COUNTED),
            reopens_for=reason,
            reopens_since=now.stamp.micros,
        )

    @property
    def opens_tried(self) -> int:
        """Number of opens that count as tries to undo the close."""
        return self.reopening - self.unsent_opens

    def open_not_sent(self, *, soon: float, is_try: bool) -> Closing:
        """Return the closing after an open that was not sent. After the first open, the next is due at `soon`."""
        return replace(
            self,
            reopen_at=soon if self.reopening == 1 else self.reopen_at,
            reopen_unsent=True,
            unsent_opens=self.unsent_opens + (not is_try),
        )

    def reopening_over(self, *, goes_on: bool = False) -> Closing:
        """Return the closing with no open awaited; `goes_on`: a close that was sent may still move the gate."""
        return replace(self, reopening=0, unsent_opens=0, reopens_for="", ours=self.ours or goes_on, earlier=goes_on)
