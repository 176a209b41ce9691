"""Commands of a gate that would do the same at the device, and other writes that would give one.

A profile with such commands or writes is refused.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class Output:
    """What a command does to the device.

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
    """Say in one sentence which two commands do the same, and what to do about it; "" when none do."""
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
    """Say which of the other writes, each with its place in the profile, would give a command; "" when none would."""
    names = {output.writes: output.name for output in outputs}
    for place, written in others:
        if written in names:
            return f"{place} writes the same as commands.{names[written]} and would move the gate: remove it"
    return ""
