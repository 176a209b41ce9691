"""Parts of the profiles of all gates, for any protocol: commands and limit switches.

A profile is refused when two of its commands have the same effect on the device, or when a write that is no command
would have the effect of one.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

from drivers.device import Abilities
from drivers.profile_file import Part, PartName

Command = TypeVar("Command", bound=Part)


class Commands(Part, Generic[Command]):
    """The commands of a gate. A gate lacks those that its profile does not name."""

    open: Command
    close: Command | None = None
    stop: Command | None = None

    def named(self) -> Iterator[tuple[str, Command]]:
        """Iterate over the commands that the profile names, each with its name."""
        for name, command in (("open", self.open), ("close", self.close), ("stop", self.stop)):
            if command is not None:
                yield name, command


class LimitPosition(Part):
    """The position of a gate whose device has limit switches: derived from two of the points."""

    closed_point: PartName
    open_point: PartName

    def check(self, points: Collection[str]) -> None:
        """Raise ValueError when a switch is not one of these points."""
        for name in (self.closed_point, self.open_point):
            if name not in points:
                raise ValueError(f"position names the point {name!r}, which is not in points")


def inputs_of(points: Mapping[str, Part]) -> dict[str, Hashable]:
    """Return the inputs of a profile by name. Two names of one input have equal values, whatever their age limits."""
    return {name: point.model_copy(update={"stale_ms": None}) for name, point in points.items()}


def gate_abilities(points: Mapping[str, Part], position: Part | None, commands: Commands[Command]) -> Abilities:
    """Return the abilities of a gate with this profile."""
    limits: dict[str, str] = {}
    if isinstance(position, LimitPosition):
        limits = {position.closed_point: "closed limit", position.open_point: "open limit"}
    return Abilities(inputs_of(points), limits, closes=commands.close is not None, has_position=position is not None)


@dataclass(frozen=True, slots=True)
class Output:
    """A command's effect on the device.

    Attributes:
        name: the command's name.
        writes: the place and the value that the command writes.
        releases: the place and the value that end its pulse; None where the device ends the pulse.
        is_step: whether giving it again does something else (a step-by-step input), so that it may be given only where
            its effect is known.
    """

    name: str
    writes: Hashable
    releases: Hashable | None = None
    is_step: bool = False


def why_equal(outputs: Iterable[Output]) -> str:
    """Return a sentence that names two commands with the same effect, and the remedy; "" when all differ."""
    for one, other in combinations(outputs, 2):
        if one.writes == other.writes and not (one.is_step and other.is_step):
            return (
                f"commands.{other.name} writes the same as commands.{one.name}: give each its own output or value,"
                " or write idempotent = false at both if it is one step-by-step input"
            )
        for released, given in ((one, other), (other, one)):
            if released.releases is not None and released.releases == given.writes:
                return (
                    f"the end of the pulse of commands.{released.name} writes the same as commands.{given.name}:"
                    " give each its own output"
                )
    return ""


def why_gives_command(outputs: Iterable[Output], others: Iterable[tuple[str, Hashable]]) -> str:
    """Return a sentence that names a write in `others` that has the effect of a command; "" when there is none."""
    names = {output.writes: output.name for output in outputs}
    for place, written in others:
        if written in names:
            return f"{place} writes the same as commands.{names[written]} and would move the gate: remove it"
    return ""
