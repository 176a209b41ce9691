"""The lane's commands to its gate: the one under way, and those whose place it took."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.domain.commands import Command, GateAction
from gateway.lanes.machine.state.closing import Closing


@dataclass(frozen=True, slots=True)
class InFlight:
    """The command under way.

    Attributes:
        command: what was sent.
        sent_at: when it was handed to the driver.
        deadline: until when it may go out.
        give_up_at: when its outcome counts as unknown.
        acknowledged_at: when the device acknowledged it, None before.
        doubt: why nobody knows whether the device heard it, "" while there is no doubt.
        doubted_at: when the doubt began; a movement seen after that settles it.
        instead_of: the closing whose place this open took; if the open is not sent or not answered, it goes on.
        earlier_open: whether an open whose place this one took may have reached the device.
    """

    command: Command
    sent_at: float
    deadline: float
    give_up_at: float
    acknowledged_at: float | None = None
    doubt: str = ""
    doubted_at: float | None = None
    instead_of: Closing | None = None
    earlier_open: bool = False

    @property
    def is_reported(self) -> bool:
        """True once the driver has reported that the device has, or may have, heard the command."""
        return self.acknowledged_at is not None or self.doubted_at is not None


@dataclass(frozen=True, slots=True)
class Superseded:
    """A command whose place a later one took before its driver reported the outcome.

    Attributes:
        command: what was handed to the driver.
        by: what took its place.
        deadline: until when it may go out.
        give_up_at: when its outcome counts as unknown.
        instead_of: the closing whose place this open took.
    """

    command: Command
    by: GateAction
    deadline: float
    give_up_at: float
    instead_of: Closing | None = None


@dataclass(frozen=True, slots=True)
class Commands:
    """The commands of a lane.

    Attributes:
        made: how many commands of its own the lane has made.
        flight: the one under way.
        superseded: those whose driver has yet to report the outcome.
        unanswered_open_at: when the last open was given up without a movement.
    """

    made: int = 0
    flight: InFlight | None = None
    superseded: tuple[Superseded, ...] = ()
    unanswered_open_at: float = float("-inf")

    def under_way(self, command_id: str) -> Command | None:
        """Return the command of that id, None once its outcome is known."""
        flight = () if self.flight is None else (self.flight.command,)
        commands = (*flight, *(one.command for one in self.superseded))
        return next((command for command in commands if command.command_id == command_id), None)

    def is_newest(self, command_id: str) -> bool:
        """Return whether this command is under way and no other has taken its place."""
        return self.flight is not None and self.flight.command.command_id == command_id

    def is_unreported(self, command_id: str) -> bool:
        """Return whether nobody knows yet whether this command reaches the device."""
        if self.flight is not None and self.is_newest(command_id):
            return not self.flight.is_reported
        return self.under_way(command_id) is not None

    def may_still_open(self) -> bool:
        """Return whether an open that the one under way replaced may still open the gate."""
        earlier = self.flight is not None and self.flight.earlier_open
        return earlier or any(one.command.action is GateAction.OPEN for one in self.superseded)

    def numbered(self) -> Commands:
        """Return the commands with one more made."""
        return replace(self, made=self.made + 1)

    def sent(self, flight: InFlight) -> Commands:
        """Return the commands with this one under way, in the place of any other."""
        return replace(self, flight=flight)

    def superseding(self, flight: InFlight, by: GateAction) -> Commands:
        """Return the commands with the one under way among the superseded."""
        one = Superseded(flight.command, by, flight.deadline, flight.give_up_at, flight.instead_of)
        return replace(self, superseded=(*self.superseded, one))

    def undoing_nothing(self) -> Commands:
        """Return the commands once the close that they were to undo no longer moves the gate."""
        superseded = tuple(replace(one, instead_of=None) for one in self.superseded)
        flight = self.flight if self.flight is None else replace(self.flight, instead_of=None)
        return replace(self, flight=flight, superseded=superseded)

    def close_never_left(self, at: float) -> Commands:
        """Return the commands once a close turned out not to have been sent; they still undo an earlier close."""

        def kept(close: Closing | None) -> Closing | None:
            return close if close is None or close.earlier or not close.is_on_its_way else close.without_close(at)

        superseded = tuple(replace(one, instead_of=kept(one.instead_of)) for one in self.superseded)
        flight = self.flight if self.flight is None else replace(self.flight, instead_of=kept(self.flight.instead_of))
        return replace(self, flight=flight, superseded=superseded)

    def acknowledged(self, flight: InFlight, at: float) -> Commands:
        """Return the commands once the device acknowledged the one under way."""
        return replace(self, flight=replace(flight, acknowledged_at=at))

    def doubted(self, flight: InFlight, doubt: str, at: float) -> Commands:
        """Return the commands while nobody knows whether the device heard the one under way, which undoes no close."""
        return replace(self, flight=replace(flight, doubt=doubt, doubted_at=at, instead_of=None))

    def ended(self) -> Commands:
        """Return the commands with none under way."""
        return replace(self, flight=None)

    def without(self, one: Superseded) -> Commands:
        """Return the commands once the outcome of this superseded one is known."""
        return replace(self, superseded=tuple(other for other in self.superseded if other is not one))

    def open_took_effect(self) -> Commands:
        """Return the commands after the late effect of an open that was given up."""
        return replace(self, unanswered_open_at=float("-inf"))
