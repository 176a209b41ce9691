"""The clock of one viewer's pictures: RTP timestamps that only grow, whatever the camera's do. Pure."""

from __future__ import annotations

from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedFrame

_CATCH_UP_TICKS = TICKS_PER_SECOND // 1_000
_LONGEST_STEP_TICKS = TICKS_PER_SECOND


class ViewTimes:
    """Gives each frame its time in ticks.

    A frame that follows the one before keeps its distance to it. One that does not (a jump, a restart) comes as much
    later as it arrived later. Pictures of the past, sent to catch up, follow each other by a millisecond: so a viewer
    decodes them at once and goes on with the live one, instead of staying behind by a group of pictures.
    """

    def __init__(self) -> None:
        self._at = 0
        self._before: EncodedFrame | None = None

    def time(self, frame: EncodedFrame, *, behind: bool) -> int:
        """The frame's time, in ticks from the viewer's first frame on; always after the one before."""
        before, self._before = self._before, frame
        if before is None:
            return self._at
        step = frame.pts - before.pts
        if behind:
            step = _CATCH_UP_TICKS
        elif not 0 < step <= _LONGEST_STEP_TICKS:
            step = max(_CATCH_UP_TICKS, int((frame.arrived - before.arrived) * TICKS_PER_SECOND))
        self._at += step
        return self._at
