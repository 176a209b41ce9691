"""HLS playlists of recorded footage (RFC 8216 and Apple's authoring rules). Pure.

Segments are named `<segment id>.ts` beside the playlist, and the master refers to `index.m3u8`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from drivers.rtsp.frames import Entry
from gateway.domain import footage
from gateway.runtime.clock import iso_utc
from gateway.store import Segment

MEDIA_NAME = "index.m3u8"
_MICROS = 1_000_000
_TARGET_SECONDS = 10
"""The target duration unless a segment is longer; it must not change during a playlist's life (RFC 8216, 6.2.1)."""


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
