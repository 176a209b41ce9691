"""Tags in a reader's frames. Pure."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from drivers.contract import ProtocolViolation
from drivers.profile_file import Part

LONGEST_TAG = 64


class Tags(Part):
    """The places of tags in a frame.

    Attributes:
        first: the place where the first tag begins.
        length: the length of each tag in bytes; `prefixed` when a byte before each tag gives its length; `rest` for a
            single tag that takes all bytes up to the tail.
        count_at: the place of the byte that gives the number of tags; left out for one tag.
        after_each: how many bytes follow each tag that are no part of it, such as the signal's strength.
        tail: how many bytes at the frame's end are no tags, such as checks.
        text: whether a tag is characters instead of bits.
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
        """Return the tags of a frame. Raises ProtocolViolation when they do not fill it exactly."""
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
        """Return the length of the tag at `place`, and the place where its own bytes begin."""
        match self.length:
            case "prefixed":
                return (frame[place] if place < end else 0), place + 1
            case "rest":
                return end - self.after_each - place, place
            case int():
                return self.length, place
