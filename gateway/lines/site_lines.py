"""The polled lines of a site, with the technicians' tools for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from gateway.lines.frames import LineFrames
from gateway.lines.line import PolledLine
from gateway.lines.scans import LineScans
from gateway.lines.values import LineValues
from gateway.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class SiteLines:
    """The polled lines by the id of their link, with their scans, their frames and the values of their devices."""

    polled: Mapping[str, PolledLine]
    scans: LineScans
    frames: LineFrames
    values: LineValues

    @classmethod
    def of(cls, polled: Mapping[str, PolledLine], *, clock: Clock) -> Self:
        """Build the tools for these lines."""
        return cls(
            polled=polled,
            scans=LineScans(lines=polled, clock=clock),
            frames=LineFrames(lines=polled, clock=clock),
            values=LineValues(polled),
        )
