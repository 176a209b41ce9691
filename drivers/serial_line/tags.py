"""Tags in a reader's frames, pure, and how long one counts as the same reading."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from drivers.contract import MonotonicSeconds, ProtocolViolation
from drivers.profile_file import Part

LONGEST_TAG = 64
_MOST_REMEMBERED = 1_000


class Tags(Part):
    """The places of tags in a frame.

    Attributes:
        first: where the first one begins.
        length: bytes of each; `prefixed` when a byte with its length goes before each; `rest` for one tag that takes
            all up to the tail.
        count_at: where the number of tags stands; one tag if left out.
        after_each: bytes behind each tag that are none of it, such as the signal's strength.
        tail: bytes at the frame's end that are no tags: checks and the like.
        text: the tag is characters.
    """

    first: int = Field(ge=0, le=511)
    length: int | Literal["prefixed", "rest"]
    count_at: int | None = Field(default=None, ge=0, le=511)
    after_each: int = Field(default=0, ge=0, le=8)
    tail: int = Field(default=0, ge=0, le=16)
    text: bool = False

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if isinstance(self.length, int) and not 1 <= self.length <= LONGEST_TAG:
            raise ValueError(f"a tag has 1 to {LONGEST_TAG} bytes")
        if self.length == "rest" and self.count_at is not None:
            raise ValueError("of tags that take the rest of the frame there is one")
        return self

    def of(self, frame: bytes) -> tuple[bytes, ...]:
        """Read the tags of a frame. Raises ProtocolViolation when they do not fill it exactly."""
        end = len(frame) - self.tail
        if self.count_at is not None and self.count_at >= end:
            raise ProtocolViolation(f"a frame of {len(frame)} bytes without the number of its tags")
        count = 1 if self.count_at is None else frame[self.count_at]
        tags: list[bytes] = []
        place = self.first
        for _ in range(count):
            length, place = self._length_at(place, frame, end)
            if not 1 <= length <= LONGEST_TAG or place + length > end:
                raise ProtocolViolation(f"a frame of {len(frame)} bytes whose tags do not fit into it")
            tags.append(frame[place : place + length])
            place += length + self.after_each
        if place != end:
            raise ProtocolViolation(f"a frame of {len(frame)} bytes with something behind its tags")
        return tuple(tags)

    def _length_at(self, place: int, frame: bytes, end: int) -> tuple[int, int]:
        """Return the length of the tag at `place`, and where its own bytes begin."""
        match self.length:
            case "prefixed":
                return (frame[place] if place < end else 0), place + 1
            case "rest":
                return end - self.after_each - place, place
            case int():
                return self.length, place


class TagHold:
    """The filter of repeated readings: a tag is new at first, and again `seconds` after it was new last.

    So a tag that stays before the reader is presented again from time to time: a reading from before the vehicle stood
    on the arming loop is repeated.
    """

    def __init__(self, *, seconds: float) -> None:
        self._seconds = seconds
        self._presented: dict[bytes, MonotonicSeconds] = {}

    def is_news(self, tag: bytes, *, at: MonotonicSeconds) -> bool:
        """Return whether this reading is to be presented."""
        presented_at = self._presented.get(tag)
        if presented_at is not None and at - presented_at < self._seconds:
            return False
        if len(self._presented) >= _MOST_REMEMBERED:
            self._presented = {known: since for known, since in self._presented.items() if at - since < self._seconds}
            if len(self._presented) >= _MOST_REMEMBERED:
                del self._presented[next(iter(self._presented))]
        self._presented.pop(tag, None)
        self._presented[tag] = at
        return True
