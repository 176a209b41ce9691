"""HLS playlists of recorded footage (RFC 8216 and Apple's authoring rules). Pure.

In a recording, segments are named `<segment id>.ts` beside the playlist, and the master refers to `index.m3u8`.

A live playlist follows RFC 8216, 6.2.2, and RFC 8216bis for parts. A segment's media sequence number is its number in
its camera's chain. Its discontinuity sequence number is the count of interruptions before it. So neither number ever
goes back, whatever is deleted and however often the gateway starts. Segments are named `<number>.ts` beside the
playlist, and their parts `<number>.<index>.ts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise, takewhile

from drivers.rtsp.frames import Entry
from gateway.domain import footage
from gateway.runtime.clock import iso_utc
from gateway.store import Segment

MEDIA_NAME = "index.m3u8"
_MICROS = 1_000_000
_TARGET_SECONDS = 10
"""The target duration unless a segment is longer; it must not change during a playlist's life (RFC 8216, 6.2.1)."""

FEWEST_SEGMENTS = 6
MOST_SEGMENTS = 60
_TARGETS = 4
"""A playlist has at least this many target durations, because a player stays three behind the end."""
_LONGEST_HOLE = 10
_SHORTEST_TARGET = 2
"""In seconds. A camera's first segment is about as long at least, and nothing is known of longer ones yet."""

_PART_MICROS = 400_000
_PART_ROOM = 1.08
"""A part may be this much longer than wanted, because a camera's frames do not come at an even pace. No part but a
segment's last may be shorter than 0.85 of the part target duration."""
_HOLD_BACK = 3
"""The part target durations that a player of parts stays behind the end."""
CLASSIC_START = 1.75
"""The target durations before the end at which a player of whole segments begins, where the playlist says so."""
_MOST_AHEAD = 2


def target_duration(segments: Sequence[Segment]) -> int:
    """Return the target duration in whole seconds, which no segment's rounded duration may exceed."""
    longest = max((segment.duration for segment in segments), default=0)
    return max(_TARGET_SECONDS, (longest + _MICROS // 2) // _MICROS)


def master(segments: Sequence[Segment], *, target: int | None = None) -> str:
    """Write the master playlist of some footage, with one variant. `segments` (at least one) are by start.

    `target`: the target duration of its media playlist in seconds; None: as `target_duration` returns it.
    """
    attributes = [
        f"BANDWIDTH={peak_bits_per_second(segments, target=target or target_duration(segments))}",
        f"AVERAGE-BANDWIDTH={_rate(segments)}",
    ]
    codecs = sorted({name for segment in segments for name in segment.codec.split(",") if name})
    if codecs:
        attributes.append(f'CODECS="{",".join(codecs)}"')
    pictures = [(segment.width, segment.height) for segment in segments if segment.width and segment.height]
    if pictures:
        width, height = max(pictures, key=lambda picture: picture[0] * picture[1])
        attributes.append(f"RESOLUTION={width}x{height}")
    rates = [segment.frames * _MICROS / segment.duration for segment in segments if segment.frames and segment.duration]
    if rates:
        attributes.append(f"FRAME-RATE={max(rates):.3f}")
    lines = (
        "#EXTM3U",
        "#EXT-X-VERSION:3",
        *independence(segments),
        f"#EXT-X-STREAM-INF:{','.join(attributes)}",
        MEDIA_NAME,
    )
    return "\n".join(lines) + "\n"


def media(segments: Sequence[Segment], *, complete: bool) -> str:
    """Write the media playlist of some footage, given by start.

    `complete`: no more footage will come, so the playlist has an end (VOD); otherwise it may still grow (EVENT).
    """
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:3",
        f"#EXT-X-TARGETDURATION:{target_duration(segments)}",
        "#EXT-X-MEDIA-SEQUENCE:0",
        f"#EXT-X-PLAYLIST-TYPE:{'VOD' if complete else 'EVENT'}",
        *independence(segments),
    ]
    before: Segment | None = None
    for segment in segments:
        breaks = before is not None and not continues(before, segment)
        if breaks:
            lines.append("#EXT-X-DISCONTINUITY")
        if breaks or before is None:
            lines.append(f"#EXT-X-PROGRAM-DATE-TIME:{iso_utc(segment.started_at)}")
        seconds, micros = divmod(segment.duration, _MICROS)
        lines += [f"#EXTINF:{seconds}.{micros:06d},", f"{segment.id}.ts"]
        before = segment
    if complete:
        lines.append("#EXT-X-ENDLIST")
    return "\n".join(lines) + "\n"


def independence(segments: Sequence[Segment]) -> tuple[str, ...]:
    """Return the tag that each segment can be decoded by itself; empty if one cannot."""
    return ("#EXT-X-INDEPENDENT-SEGMENTS",) if all(item.entry is Entry.IDR for item in segments) else ()


def continues(before: Segment, after: Segment) -> bool:
    """Return whether a player can go from one segment to the other without a discontinuity."""
    return footage.continues(before.edge, after.edge)


def peak_bits_per_second(segments: Sequence[Segment], *, target: int) -> int:
    """Return the peak rate as RFC 8216 defines it: of any run of segments of 0.5 to 1.5 target durations.

    If there is no such run, return the average rate.
    """
    return max(_run_rates(segments, target=target * _MICROS), default=_rate(segments))


def _run_rates(segments: Sequence[Segment], *, target: int) -> Iterator[int]:
    for start in range(len(segments)):
        size = duration = 0
        for segment in segments[start:]:
            size += segment.size
            duration += segment.duration
            if 2 * duration > 3 * target:
                break
            if 2 * duration >= target:
                yield _bits_per_second(size, duration)


def _rate(segments: Sequence[Segment]) -> int:
    return _bits_per_second(sum(item.size for item in segments), sum(item.duration for item in segments))


def _bits_per_second(size: int, duration: int) -> int:
    return -(-size * 8 * _MICROS // max(duration, 1))


@dataclass(frozen=True, slots=True)
class PlaylistPart:
    """A part of a segment: its duration (micros), and whether a player can begin in it."""

    duration: int
    independent: bool


@dataclass(frozen=True, slots=True)
class PlaylistReload:
    """A request for a playlist that has this segment, or this part of it or a later one (RFC 8216bis, 6.2.5.2)."""

    number: int
    part: int | None = None


@dataclass(frozen=True, slots=True)
class LowLatency:
    """The parts of a live playlist.

    Attributes:
        target: the part target duration in micros.
        finished: the parts of finished segments, by their numbers.
        growing: the parts of the segment after the last finished one.
        goes_on: whether more parts of that segment are expected.
    """

    target: int
    finished: Mapping[int, tuple[PlaylistPart, ...]] = field(default_factory=dict)
    growing: tuple[PlaylistPart, ...] = ()
    goes_on: bool = False

    def has(self, wanted: PlaylistReload, *, last: int) -> bool:
        """Return whether a playlist whose last finished segment is number `last` has what a client waits for."""
        number, part = wanted.number, wanted.part
        if part is None:
            return number <= last
        if number == last and number in self.finished and part >= len(self.finished[number]):
            number, part = number + 1, 0
        return number <= last or (number == last + 1 and part < len(self.growing))


def is_too_far(wanted: PlaylistReload, *, last: int, target: int, part_target: int) -> bool:
    """Return whether a client asks for what cannot come soon: more than two segments ahead, or far beyond a segment."""
    most_parts = 2 * -(-target * _MICROS // part_target) if part_target else 0
    return wanted.number > last + _MOST_AHEAD or (wanted.part or 0) > most_parts


def part_length(segments: Sequence[Segment]) -> int:
    """Return the duration in micros that parts should have: about 0.4 s, and a whole number of the camera's frames."""
    for segment in reversed(segments):
        if segment.frames and segment.duration:
            step = segment.duration / segment.frames
            return round(max(1, round(_PART_MICROS / step)) * step)
    return _PART_MICROS


def part_target(length: int) -> int:
    """Return the part target duration in micros, in whole milliseconds, for parts of this length."""
    return -(-round(length * _PART_ROOM) // 1000) * 1000


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


def live_media(
    segments: Sequence[Segment],
    *,
    target: int,
    ended: bool = False,
    parts: LowLatency | None = None,
    start: float | None = None,
) -> str:
    """Write the playlist of these segments, at least one, as chosen by `listed`.

    Args:
        segments: the segments.
        target: the target duration in seconds.
        ended: whether no segments follow.
        parts: the parts of the segments; None for a playlist without parts.
        start: the number of target durations before the end at which players should begin; None: as they like.
    """
    first = segments[0]
    parts = None if ended else parts
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:8",  # EXT-X-GAP
        f"#EXT-X-TARGETDURATION:{target}",
        *_control(parts),
        *(() if start is None else (f"#EXT-X-START:TIME-OFFSET=-{start * target:.3f}",)),
        f"#EXT-X-MEDIA-SEQUENCE:{number_of(first)}",
        f"#EXT-X-DISCONTINUITY-SEQUENCE:{first.breaks}",
        *independence(segments),
        *_entry(first, dated=True, parts=parts),
    ]
    for before, after in pairwise(segments):
        lines += _between(before, after, target=target)
        breaks = after.breaks != before.breaks
        lines += ["#EXT-X-DISCONTINUITY"] if _breaks_off(before, after) else []
        lines += _entry(after, dated=breaks, parts=parts)
    if ended:
        lines.append("#EXT-X-ENDLIST")
    if parts is not None:
        lines += _growing(parts, number=number_of(segments[-1]) + 1, most=target * _MICROS + _MICROS // 2)
    return "\n".join(lines) + "\n"


def number_of(segment: Segment) -> int:
    """Return a segment's media sequence number, 0 before it is linked."""
    return segment.place.number if segment.place else 0


def _control(parts: LowLatency | None) -> Iterator[str]:
    if parts is None:
        yield "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES"
        return
    yield f"#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK={_HOLD_BACK * parts.target / _MICROS:.3f}"
    yield f"#EXT-X-PART-INF:PART-TARGET={parts.target / _MICROS:.3f}"


def _parts(parts: Sequence[PlaylistPart], *, number: int, target: int) -> Iterator[str]:
    """Yield the parts of a segment. One that is longer than the target passes its excess on to the next."""
    excess = 0
    for index, part in enumerate(parts):
        shown = min(part.duration + excess, target)
        excess += part.duration - shown
        independent = ",INDEPENDENT=YES" if part.independent else ""
        yield f'#EXT-X-PART:DURATION={shown / _MICROS:.6f},URI="{number}.{index}.ts"{independent}'


def _growing(parts: LowLatency, *, number: int, most: int) -> Iterator[str]:
    """Yield the parts of a segment that is still written, up to the longest that a segment may be (micros)."""
    lasts = chain((0,), accumulate(part.duration for part in parts.growing))
    fit = [part for part, before in zip(parts.growing, lasts, strict=False) if before + part.duration < most]
    yield from _parts(fit, number=number, target=parts.target)
    if parts.goes_on and len(fit) == len(parts.growing):
        yield f'#EXT-X-PRELOAD-HINT:TYPE=PART,URI="{number}.{len(fit)}.ts"'


def _entry(segment: Segment, *, dated: bool, parts: LowLatency | None) -> Iterator[str]:
    if dated:
        yield f"#EXT-X-PROGRAM-DATE-TIME:{iso_utc(segment.started_at)}"
    if parts is not None:
        number = number_of(segment)
        yield from _parts(parts.finished.get(number, ()), number=number, target=parts.target)
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
