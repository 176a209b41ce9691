"""Presentation and decoding times of a clip's pictures, from the times in its segments. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

_CONTINUES_TICKS = 4_500
_WRAP = 1 << 33


@dataclass(frozen=True, slots=True)
class Footage:
    """A segment of a clip: its duration in microseconds, and its pictures' presentation times in decoding order."""

    duration: int
    times: Sequence[int]


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture's place in the clip, in ticks: when it is shown, when it is decoded, and how long it is shown."""

    pts: int
    dts: int
    lasts: int


@dataclass(frozen=True, slots=True)
class Placed:
    """A segment's place in the clip.

    Attributes:
        pictures: those of its pictures that the clip holds, in decoding order.
        shift: the ticks to add to a time in the segment for the time in the clip.
        sound_end: the clip's time, in ticks, at which the segment's sound ends.
    """

    pictures: tuple[Picture, ...]
    shift: int
    sound_end: int


@dataclass(frozen=True, slots=True)
class ClipPlan:
    """A clip: the places of its segments, and its duration in ticks."""

    places: tuple[Placed, ...]
    lasts: int

    @property
    def shows_after_end(self) -> bool:
        """True when it holds pictures that would be shown after its end, because others refer to them."""
        return any(picture.pts >= self.lasts for place in self.places for picture in place.pictures)


def plan(segments: Sequence[Footage], *, skip: int, end: int) -> ClipPlan:
    """Place segments one after the other; the clip shows `[skip, end)` of them, in microseconds.

    The clip begins with the picture that is shown at `skip`. Otherwise players, which begin at a picture, would shift
    the pictures against the sound. In decoding order, all pictures are kept up to the last one that is shown before the
    end. Decoding times are the presentation times in rising order, moved ahead as far as reordering needs.
    """
    begins = [ticks_of(micros) for micros in _begins(segments)]
    shifts = [begin - segment.times[0] if segment.times else 0 for begin, segment in zip(begins, segments, strict=True)]
    shown = [
        [time + shift for time in _unwrapped(segment.times)] for segment, shift in zip(segments, shifts, strict=True)
    ]
    first = max((at for times in shown for at in times if at <= ticks_of(skip)), default=ticks_of(skip))
    until = max(1, ticks_of(end) - first)
    pictures = _timed(_needed([at - first for times in shown for at in times], until), until)
    found: list[Placed] = []
    passed = 0
    for number, times in enumerate(shown):
        placed = pictures[passed : passed + len(times)]
        passed += len(times)
        runs_on = number + 1 < len(shown) and _runs_on(segments[number], segments[number + 1])
        sound_end = until if number + 1 == len(shown) or runs_on else min(begins[number + 1] - first, until)
        found.append(Placed(tuple(placed), shifts[number] - first, sound_end))
    return ClipPlan(tuple(found), until)


def ticks_of(micros: int) -> int:
    """Convert microseconds to ticks."""
    return round(micros * 9 / 100)


def _begins(segments: Sequence[Footage]) -> list[int]:
    """Return the start of each segment from the first one's start, in microseconds."""
    begins, passed = [], 0
    for segment in segments:
        begins.append(passed)
        passed += segment.duration
    return begins


def _unwrapped(times: Sequence[int]) -> list[int]:
    """Unwrap times around the first one: a transport stream's clock may have wrapped between them."""
    return [times[0] + (time - times[0] + _WRAP // 2) % _WRAP - _WRAP // 2 for time in times] if times else []


def _runs_on(before: Footage, after: Footage) -> bool:
    """Return whether two segments follow each other without a break, so that one may hold sound of the other."""
    if not before.times or not after.times:
        return False
    apart = (after.times[0] - before.times[0]) % _WRAP
    return abs(apart - ticks_of(before.duration)) <= _CONTINUES_TICKS


def _needed(shown: list[int], until: int) -> list[int]:
    last = max((number for number, pts in enumerate(shown) if pts < until), default=-1)
    return shown[: last + 1]


def _timed(shown: list[int], until: int) -> list[Picture]:
    if not shown:
        return []
    ascending = sorted(shown)
    for number in range(1, len(ascending)):
        ascending[number] = max(ascending[number], ascending[number - 1] + 1)
    ahead = max(at - pts for at, pts in zip(ascending, shown, strict=True))
    in_order = sorted(range(len(shown)), key=shown.__getitem__)
    lasts = [0] * len(shown)
    for number, following in pairwise(in_order):
        next_shown = shown[following] if shown[number] >= until else min(shown[following], until)
        lasts[number] = max(1, next_shown - shown[number])
    lasts[in_order[-1]] = max(1, until - shown[in_order[-1]])
    return [Picture(pts, at - ahead, each) for pts, at, each in zip(shown, ascending, lasts, strict=True)]
