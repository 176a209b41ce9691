"""Where decoding begins so that what is shown from a moment on is whole. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from drivers.rtsp.frames import Entry
from gateway.domain.footage import continues
from gateway.store import Segment

LONGEST_LEAD_IN = 60_000_000
"""Micros; footage that is not whole after so much decoding never is."""


def lead_in(earlier: Sequence[Segment], first: Segment, moment: int) -> tuple[Segment, ...]:
    """Choose the segments to decode before `first` so that its pictures are whole at `moment` (wall micros).

    `earlier` are its camera's segments before it, by start. There are none to decode where `first` begins with an entry
    point that gives whole pictures in time; where no segment does, as many as follow one another up to `first`.
    """
    chain = [first]
    for segment in (*reversed(earlier), None):
        oldest = chain[-1]
        if oldest.entry is not Entry.NONE and oldest.started_at + oldest.whole_after <= max(moment, first.started_at):
            break
        if segment is None or not continues(segment.edge, oldest.edge):
            break
        chain.append(segment)
    return tuple(reversed(chain[1:]))
