"""Readers that a change of the site file connected anew and that were not seen to work since. Pure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from enum import StrEnum

from gateway.texts import Text, text


class ReaderProof(StrEnum):
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
    proof: ReaderProof
    is_regular: bool
    is_missed: bool

    @property
    def words(self) -> Text:
        """The sign that is missing, and how to see it."""
        return text(f"unseen.{self.proof}", reader=self.name)

    @property
    def why_back(self) -> Text:
        """The reason to take the change back because of it."""
        return text("unseen.missed", reader=self.name)


UnseenReaders = Callable[[], tuple[UnseenReader, ...]]
"""Returns the readers that are not seen to work yet. Never waits."""

WatchReaders = Callable[[Collection[int]], Awaitable[UnseenReaders]]
"""Begins to watch the readers among these devices, which were connected anew."""


async def unwatched(_devices: Collection[int]) -> UnseenReaders:
    """Watch no reader."""
    return tuple
