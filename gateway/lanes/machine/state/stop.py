"""A person's stop: asked for, acknowledged, ended."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gateway.texts import Words


@dataclass(frozen=True, slots=True)
class StopAsked:
    """A person's stop that is not known to have been acknowledged.

    Attributes:
        command_id: its command.
        by: who wants it.
        given_up: whether no answer will come any more; then the gate's next position shows whether it worked.
    """

    command_id: str
    by: str
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class StopLifted:
    """A stop that a command ends, while nobody knows yet whether that command reaches the device.

    Attributes:
        by: who stopped the gate.
        since: when the stop took effect.
        command_id: the command.
        why: why the stop ends, for people.
    """

    by: str
    since: float
    command_id: str
    why: Words


@dataclass(frozen=True, slots=True)
class Stop:
    """The last stop.

    Attributes:
        asked: a stop under way, or of unknown outcome.
        earlier: stops without an answer that `asked` replaced, oldest first; the last counts again if `asked` fails.
        by: who stopped the gate, which stays stopped; "" for nobody.
        since: when that stop took effect.
        lifted: the stop that the command under way ends; if that command is not sent, the stop holds the gate again.
        overtaken_open: the deadline of an open that was not sent because a stop took its place.
        fire_over_at: when the last fire ended; infinite while a fire from before the start may go on.
    """

    asked: StopAsked | None = None
    earlier: tuple[StopAsked, ...] = ()
    by: str = ""
    since: float = float("-inf")
    lifted: StopLifted | None = None
    overtaken_open: float | None = None
    fire_over_at: float = float("-inf")

    @property
    def is_in_force(self) -> bool:
        """True when a person's stop holds the gate, or is under way."""
        return bool(self.by) or (self.asked is not None and not self.asked.given_up)

    def asked_for(self, command_id: str, by: str) -> Stop:
        """Return the stop once a person wants it."""
        earlier = self.earlier if self.asked is None else (*self.earlier, self.asked)
        return replace(self, asked=StopAsked(command_id, by), earlier=earlier)

    def dropped(self) -> Stop:
        """Return the stop without the one asked for. The last one before it without an answer counts again."""
        return replace(self, asked=self.earlier[-1] if self.earlier else None, earlier=self.earlier[:-1])

    def without(self, command_id: str) -> Stop:
        """Return the stop without this one, which failed."""
        if self.asked is not None and self.asked.command_id == command_id:
            return self.dropped()
        return replace(self, earlier=tuple(one for one in self.earlier if one.command_id != command_id))

    def acknowledged(self) -> Stop:
        """Return the stop once the device acknowledged the one asked for."""
        return replace(self, asked=None, earlier=(), overtaken_open=None)

    def took_effect(self, by: str, at: float, *, during_old_fire: bool = False) -> Stop:
        """Return the stop once it holds the gate; `during_old_fire`: it was given before the start, during a fire."""
        fire_over_at = float("inf") if during_old_fire else self.fire_over_at
        return replace(self, by=by, since=at, lifted=None, fire_over_at=fire_over_at)

    def ended(self) -> Stop:
        """Return the stop once the gate may move again."""
        return replace(self, asked=None, earlier=(), by="", lifted=None)

    def lifted_by(self, command_id: str, why: Words) -> Stop:
        """Return the stop while a command that ends it is under way."""
        lifted = StopLifted(self.by, self.since, command_id, why) if self.by else self.lifted
        if lifted is not None:
            lifted = replace(lifted, command_id=command_id, why=why)
        return replace(self, asked=None, earlier=(), by="", lifted=lifted)

    def holding_again(self) -> Stop:
        """Return the stop after the command that was to end it was not sent."""
        lifted = self.lifted
        return self if lifted is None else replace(self, by=lifted.by, since=lifted.since, lifted=None)

    def fire_over(self, at: float) -> Stop:
        """Return the stop after the end of a fire."""
        return replace(self, fire_over_at=at)

    def overtook_open(self, deadline: float) -> Stop:
        """Return the stop that took the place of an open with this deadline."""
        return replace(self, overtaken_open=deadline)
