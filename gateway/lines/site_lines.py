"""The polled lines of a site, and what can be asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from gateway.lines.frames import LineFrames
from gateway.lines.line import PolledLine
from gateway.lines.scans import LineScans
from gateway.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class SiteLines:
    """The lines by the id of their link, their scans and their frames."""

    polled: Mapping[str, PolledLine]
    scans: LineScans
    frames: LineFrames

    @classmethod
    def of(cls, polled: Mapping[str, PolledLine], *, clock: Clock) -> Self:
        """Return them for these lines."""
        return cls(polled, LineScans(lines=polled, clock=clock), LineFrames(lines=polled, clock=clock))
