"""Readers that a change of the site file connected anew and that were not seen to work since. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from enum import StrEnum


class Proof(StrEnum):
    """The sign by which a reader shows that it works."""

    ANSWER = "answer"
    CARD = "card"
    PLATE = "plate"


@dataclass(frozen=True, slots=True)
class UnseenReader:
    """A reader that was connected anew and not seen to work since.

    Attributes:
        device_id: its id.
        name: its name in the site file.
        proof: the sign that is missing.
        is_regular: whether it was read regularly before the change.
        is_missed: whether vehicles waited at its lane since, and nothing was read there.
    """

    device_id: int
    name: str
    proof: Proof
    is_regular: bool
    is_missed: bool

    def sentence(self) -> str:
        """Say what is missing, and how to see it."""
        match self.proof:
            case Proof.ANSWER:
                return f"{self.name} has not answered since the change: check its line and its address"
            case Proof.CARD:
                return f"{self.name} is not yet seen to read: hold a card to it"
            case Proof.PLATE:
                return f"{self.name} is not yet seen to read: let a vehicle come before it"

    def why_back(self) -> str:
        """Say why the change is taken back because of it."""
        return f"{self.name} has read nothing while vehicles waited; before the change it was read regularly"


UnseenReaders = Callable[[], tuple[UnseenReader, ...]]
"""Returns the readers that are not seen to work yet. Never waits."""

WatchReaders = Callable[[Collection[int]], Awaitable[UnseenReaders]]
"""Begins to watch the readers among these devices, which were connected anew."""


async def unwatched(_devices: Collection[int]) -> UnseenReaders:
    """Watch no reader."""
    return tuple
