"""The parts that the profiles of all gates have, whatever they speak: commands and limit switches.

A profile is refused when two of its commands do the same at the device, or when another write would give a command.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Generic, TypeVar

from drivers.profile_file import Part, PartName

Command = TypeVar("Command", bound=Part)


class Commands(Part, Generic[Command]):
    """The commands of a gate. A gate has only those that its profile names."""

    open: Command
    close: Command | None = None
    stop: Command | None = None

    def named(self) -> Iterator[tuple[str, Command]]:
        """Iterate over those that there are, by name."""
        for name, command in (("open", self.open), ("close", self.close), ("stop", self.stop)):
            if command is not None:
                yield name, command


class LimitPosition(Part):
    """The device has limit switches: the position is derived from two of the points."""

    closed_point: PartName
    open_point: PartName

    def check(self, points: Collection[str]) -> None:
        """Raise ValueError when a switch is not one of these points."""
        for name in (self.closed_point, self.open_point):
            if name not in points:
                raise ValueError(f"position names the point {name!r}, which is not in points")


@dataclass(frozen=True, slots=True)
class Output:
    """A command's effect on the device.

    Attributes:
        name: of the command.
        writes: the place and the value that it writes.
        releases: the same of the write that ends its pulse; None where the device ends it.
        is_step: giving it again does something else, so that it is given only where its effect is known.
    """

    name: str
    writes: Hashable
    releases: Hashable | None = None
    is_step: bool = False


def why_equal(outputs: Iterable[Output]) -> str:
    """Return a sentence that names two equal commands and the remedy; "" when all differ."""
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
    """Return a sentence that names another write that equals a command; "" when there is none."""
    names = {output.writes: output.name for output in outputs}
    for place, written in others:
        if written in names:
            return f"{place} writes the same as commands.{names[written]} and would move the gate: remove it"
    return ""
