"""Choice of a clip's codec: if the camera changed it, the one that fills most of the time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gateway.domain.footage import TOUCHING_MICROS, Edge, GapReason, Missing


def fits(pieces: Iterable[tuple[str, int]]) -> list[bool]:
    """Return for each piece of footage whether the clip contains it. A piece is a codec and a duration in the clip.

    An unknown codec ("") counts as that of the piece before. If two codecs fill the same time, the first is chosen.
    """
    kinds: list[str] = []
    filled: dict[str, int] = {}
    told = list(pieces)
    kind = next((codec for codec, _ in told if codec), "")
    for codec, lasts in told:
        kind = codec or kind
        kinds.append(kind)
        filled[kind] = filled.get(kind, 0) + max(0, lasts)
    held = max(filled, key=filled.__getitem__, default="")
    return [kind == held for kind in kinds]


def of_clip(edges: Sequence[Edge], begin: int, end: int) -> list[bool]:
    """Return for each segment, in order of start, whether the clip of `[begin, end)` (wall micros) contains it."""
    return fits(
        (edge.format[0].partition(".")[0], min(edge.ended_at, end) - max(edge.started_at, begin)) for edge in edges
    )


def left_out(edges: Sequence[Edge], begin: int, end: int) -> list[Missing]:
    """Return the spans of `[begin, end)` (wall micros) whose footage is not in the clip, oldest first."""
    found: list[Missing] = []
    for edge, is_held in zip(edges, of_clip(edges, begin, end), strict=True):
        since, until = max(edge.started_at, begin), min(edge.ended_at, end)
        if is_held or until <= since:
            continue
        if found and abs(since - found[-1].end) <= TOUCHING_MICROS:
            since = found.pop().begin
        found.append(Missing(since, until, GapReason.CODEC))
    return found
