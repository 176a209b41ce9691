"""Checks of the places of a clip's segments in their camera's chain. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from gateway.domain.errors import GatewayError
from gateway.domain.footage_chain import leaf_of, link_of, walked
from gateway.proof_package.manifest import ClipEntry, SegmentEntry


class ProofBroken(GatewayError):
    """The package does not prove its contents; `faults` has a sentence for each reason."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def link_faults(clip: ClipEntry) -> Iterator[str]:
    """Yield a sentence for each link that is wrong."""
    for segment in clip.segments:
        parts = (segment.number, segment.previous, segment.link)
        if all(part is None for part in parts):
            continue
        if segment.previous is None or segment.link is None or segment.number is None:
            yield f"{clip.file}: the place of {segment.path} in the chain is not whole"
        elif link_of(segment.previous, leaf_of(path=segment.path, sha256=segment.sha256)) != segment.link:
            yield f"{clip.file}: {segment.path} is not what was recorded, or its link was changed"
    for before, after in pairwise(_linked(clip.segments)):
        if not _follows(before, after):
            yield f"{clip.file}: the chain does not lead from {before.path} to {after.path}"


def link_notes(clip: ClipEntry) -> Iterator[str]:
    """Yield a sentence for each part of a clip's chain that cannot be proven, though it is not wrong."""
    unlinked = sum(segment.link is None for segment in clip.segments)
    if unlinked:
        yield f"{clip.file}: {unlinked} of {len(clip.segments)} segments were not linked to the camera's chain yet"
    unknown = sum(segment.between is None for segment in clip.segments)
    if unknown:
        yield f"{clip.file}: {unknown} stretches of the camera's chain between its segments are not in the package"


def _linked(segments: Sequence[SegmentEntry]) -> list[SegmentEntry]:
    return sorted((one for one in segments if one.link is not None), key=lambda one: one.number or 0)


def _follows(before: SegmentEntry, after: SegmentEntry) -> bool:
    if after.between is None:
        return (after.number or 0) > (before.number or 0) + 1
    steps = (after.number or 0) - (before.number or 0) - 1
    return len(after.between) == steps and walked(before.link or "", after.between) == after.previous


def chain_ends(old: ClipEntry, new: ClipEntry) -> tuple[SegmentEntry, SegmentEntry]:
    """Return the last linked segment of the older clip, and the first of the newer clip at or after it in the chain.

    Raises ProofBroken if there are no such segments.
    """
    known, sought = _linked(old.segments), _linked(new.segments)
    if not known or not sought:
        raise ProofBroken((f"{new.camera}: one of the packages holds no link of this camera's chain",))
    last = known[-1]
    behind = [one for one in sought if (one.number or 0) >= (last.number or 0)]
    if not behind:
        raise ProofBroken((f"{new.camera}: the second package's footage was linked before the first one's",))
    return last, behind[0]


def check_chain(old: SegmentEntry, new: SegmentEntry, leaves: Iterable[str]) -> None:
    """Check that the chain leads from segment `old` over these leaves to segment `new`. Raises ProofBroken."""
    is_same = old.number == new.number and old.link == new.link
    if not is_same and walked(old.link or "", leaves) != new.previous:
        raise ProofBroken(
            (f"the chain does not lead from {old.path} to {new.path}: what was between them was changed or left out",)
        )
