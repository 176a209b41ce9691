"""The live HLS playlist of a camera (RFC 8216, 6.2.2, and Apple's authoring rules). Pure.

A segment's media sequence number is its number in its camera's chain. Its discontinuity sequence number is the count of
interruptions before it. So neither number ever goes back, whatever is deleted and however often the gateway starts.
Segments are named `<number>.ts` beside the playlist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile

from gateway.recording.playlists import independence
from gateway.runtime.clock import iso_utc
from gateway.store import Segment

FEWEST_SEGMENTS = 6
MOST_SEGMENTS = 60
_TARGETS = 4
"""A playlist has at least this many target durations, because a player stays three behind the end."""
_LONGEST_HOLE = 10
_MICROS = 1_000_000
_SHORTEST_TARGET = 2
"""In seconds. A camera's first segment is about as long at least, and nothing is known of longer ones yet."""


def live_target(longest: int) -> int:
    """Return the target duration in whole seconds for a camera's longest segment ever (micros).

    It is no longer than it must be, since players stay three target durations behind (RFC 8216bis, 4.4.3.8).
    """
    return max(_SHORTEST_TARGET, (longest + _MICROS // 2) // _MICROS)


def listed(segments: Sequence[Segment], *, target: int) -> tuple[Segment, ...]:
    """Choose the segments of the live playlist from a camera's newest ones (by number). `target`: in seconds."""
    found: list[Segment] = []
    seconds = 0.0
    for segment in reversed([item for item in segments if item.place is not None]):
        if found and number_of(found[-1]) - number_of(segment) > _LONGEST_HOLE:
            break
        enough = len(found) >= FEWEST_SEGMENTS and seconds >= _TARGETS * target
        if enough or len(found) >= MOST_SEGMENTS:
            break
        found.append(segment)
        seconds += segment.duration / _MICROS
    return tuple(reversed(found))


def fitting(segments: Sequence[Segment], *, target: int) -> tuple[Segment, ...]:
    """Return a playlist's segments before the first that is too long for the target duration (seconds)."""
    fit = (segment.duration + _MICROS // 2 < (target + 1) * _MICROS for segment in segments)
    return tuple(segment for segment, _ in takewhile(lambda pair: pair[1], zip(segments, fit, strict=True)))


def live_media(segments: Sequence[Segment], *, target: int, ended: bool = False) -> str:
    """Write the playlist of these segments, at least one, as chosen by `listed`. `ended`: no segments follow."""
    first = segments[0]
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:8",  # EXT-X-GAP
        f"#EXT-X-TARGETDURATION:{target}",
        f"#EXT-X-MEDIA-SEQUENCE:{number_of(first)}",
        f"#EXT-X-DISCONTINUITY-SEQUENCE:{first.breaks}",
        *independence(segments),
        *_entry(first, dated=True),
    ]
    for before, after in pairwise(segments):
        lines += _between(before, after, target=target)
        breaks = after.breaks != before.breaks
        lines += ["#EXT-X-DISCONTINUITY"] if _breaks_off(before, after) else []
        lines += _entry(after, dated=breaks)
    if ended:
        lines.append("#EXT-X-ENDLIST")
    return "\n".join(lines) + "\n"


def number_of(segment: Segment) -> int:
    """Return a segment's media sequence number, 0 before it is linked."""
    return segment.place.number if segment.place else 0


def _entry(segment: Segment, *, dated: bool) -> Iterator[str]:
    if dated:
        yield f"#EXT-X-PROGRAM-DATE-TIME:{iso_utc(segment.started_at)}"
    seconds, micros = divmod(segment.duration, _MICROS)
    yield f"#EXTINF:{seconds}.{micros:06d},"
    yield f"{number_of(segment)}.ts"


def _breaks_off(before: Segment, after: Segment) -> bool:
    """Return whether the entry of `after` has a discontinuity tag of its own, beyond those of missing segments."""
    missing = number_of(after) - number_of(before) - 1
    return after.breaks - before.breaks > missing


def _between(before: Segment, after: Segment, *, target: int) -> Iterator[str]:
    """Yield the entries of recorded segments that are gone, because their numbers must not go to others."""
    missing = range(number_of(before) + 1, number_of(after))
    hole = max(after.started_at - before.ended_at, 1)
    each = min(hole / _MICROS / max(len(missing), 1), float(target))
    for place, number in enumerate(missing):
        if place < after.breaks - before.breaks:
            yield "#EXT-X-DISCONTINUITY"
        yield "#EXT-X-GAP"
        yield f"#EXTINF:{each:.6f},"
        yield f"{number}.ts"
