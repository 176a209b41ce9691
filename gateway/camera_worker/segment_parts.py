"""The parts of a segment for low-latency HLS: byte ranges of its file, cut while it is written. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from drivers.rtsp.frames import EncodedFrame, Entry


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a segment.

    Attributes:
        index: its number in the segment, counted from 0.
        offset: its first byte in the segment's file.
        length: its bytes.
        ticks: its duration.
        independent: whether a player can begin in it, because it holds an entry point.
    """

    index: int
    offset: int
    length: int
    ticks: int
    independent: bool


class Parts:
    """The frames of one segment with their places in its file, and the parts that they make.

    Frames are noted whether or not anybody watches, so that a first viewer gets parts from the present segment on.
    """

    def __init__(self) -> None:
        self._frames: list[tuple[int, int, bool]] = []
        self._from = 0
        self._made = 0

    def note(self, frame: EncodedFrame, *, at: int) -> None:
        """Note the next frame, whose bytes begin at this offset of the file."""
        self._frames.append((at, frame.dts, frame.keyframe and frame.entry is not Entry.NONE))

    def ended(self, ticks: int) -> Iterator[Part]:
        """Yield the parts that have ended since the last call, each as near to `ticks` as its frames allow.

        A part ends when the frame after it is known.
        """
        for place in range(self._from + 1, len(self._frames)):
            at, dts, _ = self._frames[place]
            step = dts - self._frames[place - 1][1]
            lasts = dts - self._frames[self._from][1]
            if 2 * lasts + step >= 2 * ticks:
                yield self._made_until(place, end=at, ticks=lasts)

    def rest(self, *, size: int, ticks: int) -> Part:
        """Return the last part of a segment that ends with `size` bytes after `ticks` in all."""
        lasts = ticks - (self._frames[self._from][1] - self._frames[0][1])
        return self._made_until(len(self._frames), end=size, ticks=max(1, lasts))

    def _made_until(self, place: int, *, end: int, ticks: int) -> Part:
        frames = self._frames[self._from : place]
        part = Part(
            index=self._made,
            offset=frames[0][0],
            length=end - frames[0][0],
            ticks=ticks,
            independent=any(entry for _, _, entry in frames),
        )
        self._from = place
        self._made += 1
        return part
