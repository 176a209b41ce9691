"""A fault of a site file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a site file: its place, such as `lanes[1].gate` ("" for the whole file), and one sentence."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.place else self.message
