"""The clock of a camera's sound: from its RTP times to the time line of the pictures. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from drivers.rtsp.frames import TICKS_PER_SECOND

_IN_STEP_TICKS = TICKS_PER_SECOND * 2 // 100
"""The largest error of sound against its pictures that is not corrected (ITU-R BT.1359 allows 45 ms of lead)."""
_ROUGH_TICKS = TICKS_PER_SECOND // 2
"""The largest difference between one arrival and the counted time; beyond it, the time of arrival counts at once."""
_WEIGHED = 25
"""The number of arrivals whose median corrects the counted time: those of half a second for most sound."""
LONGEST_LAG_TICKS = 3 * TICKS_PER_SECOND
"""Reports that place sound farther than this from the pictures that it arrived with are wrong and ignored."""


@dataclass(frozen=True, slots=True)
class SenderReport:
    """RTP time paired with the time of the camera's own clock (RFC 3550, 6.4.1).

    Attributes:
        clock: the camera's time in units of 2^-32 s.
        timestamp: the RTP time.
    """

    clock: int
    timestamp: int


@dataclass(frozen=True, slots=True)
class PictureTime:
    """The times of one picture.

    Attributes:
        timestamp: the RTP time, `rate` units a second.
        rate: the rate of the RTP clock, as it runs.
        pts: the presentation time in ticks.
        arrived: when the picture arrived, in monotonic seconds.
    """

    timestamp: int
    rate: float
    pts: int
    arrived: float


class AudioClock:
    """The conversion of the sound's RTP times to ticks on the pictures' time line.

    It uses the best source that there is:
    1. The camera's sender reports, where both streams have plausible ones.
    2. The times at which the camera says that it begins to play (RTP-Info).
    3. The picture with which the sound arrived. Single arrivals are inaccurate, because a camera sends its first
       pictures and sounds in one burst, and its count of sound drifts. So a median of arrivals counts.

    A pair of reports, one of each stream, is wrong when the camera paused between the two. So a pair counts when the
    next pair agrees with it; the very first counts at once while there is no other source. A pair that has once placed
    sound near its pictures is kept until two others agree, since delayed packets do not disprove it.
    """

    def __init__(self, *, rate: int) -> None:
        self._rate = rate
        self._raw: int | None = None
        self._count = 0
        self._base: int | None = None
        self._picture: SenderReport | None = None
        self._sound: SenderReport | None = None
        self._newest: tuple[SenderReport, SenderReport] | None = None
        self._used: tuple[SenderReport, SenderReport] | None = None
        self._is_proven = False
        self._apart: list[int] = []
        self._picture_is_new = self._sound_is_new = False

    @property
    def goes_by_arrival(self) -> bool:
        """True while neither reports nor RTP-Info place the sound, so that its arrival does."""
        return not self._is_proven

    def begun(self, *, picture: int, sound: int) -> None:
        """Note the RTP times of both streams at the moment when playing began (RTP-Info; RFC 2326, 12.33)."""
        self._used = SenderReport(0, picture), SenderReport(0, sound)

    def picture_reported(self, report: SenderReport) -> None:
        """Take a sender report of the pictures."""
        self._picture = report
        self._picture_is_new = True

    def sound_reported(self, report: SenderReport) -> None:
        """Take a sender report of the sound."""
        self._sound = report
        self._sound_is_new = True

    def pts(self, raw: int, arrived: float, picture: PictureTime) -> int:
        """Return the presentation time of sound with this RTP time.

        Args:
            raw: the RTP timestamp, 32 bits.
            arrived: when the sound arrived, in monotonic seconds.
            picture: the picture that came last.
        """
        by_arrival = picture.pts + int((arrived - picture.arrived) * TICKS_PER_SECOND)
        step = 0 if self._raw is None else difference(raw, self._raw)
        self._raw = raw
        self._count += step
        pts = by_arrival if self._base is None else self._counted(self._base)
        by_reports = self._by_reports(raw, picture)
        exact = by_reports is not None and (
            abs(by_reports - by_arrival) < LONGEST_LAG_TICKS
            or (self._is_proven and abs(step) < self._rate and abs(by_reports - pts) < _IN_STEP_TICKS)
        )
        self._is_proven = self._is_proven or exact
        if not self._is_proven:
            self._used = None
        wanted = by_reports if exact and by_reports is not None else by_arrival
        if self._base is None or abs(wanted - pts) > (_IN_STEP_TICKS if exact else _ROUGH_TICKS):
            pts, self._base = wanted, wanted - self._counted(0)
            self._apart.clear()
        elif not self._is_proven:
            pts = self._weighed(pts, by_arrival)
        return pts

    def _weighed(self, pts: int, by_arrival: int) -> int:
        """Return the time, corrected if the median of the last arrivals shows that the count is off."""
        self._apart.append(by_arrival - pts)
        if len(self._apart) < _WEIGHED or self._base is None:
            return pts
        off = int(median(self._apart))
        self._apart.clear()
        if abs(off) <= _IN_STEP_TICKS:
            return pts
        self._base += off
        return pts + off

    def _counted(self, base: int) -> int:
        return base + self._count * TICKS_PER_SECOND // self._rate

    def _by_reports(self, raw: int, picture: PictureTime) -> int | None:
        if self._picture is not None and self._sound is not None:
            self._weigh((self._picture, self._sound), picture.rate)
        if self._used is None:
            return None
        of_picture, of_sound = self._used
        since_sound = difference(raw, of_sound.timestamp) * TICKS_PER_SECOND // self._rate
        apart = (of_sound.clock - of_picture.clock) * TICKS_PER_SECOND >> 32
        since_picture = int(difference(picture.timestamp, of_picture.timestamp) * TICKS_PER_SECOND / picture.rate)
        return picture.pts + apart + since_sound - since_picture

    def _weigh(self, pair: tuple[SenderReport, SenderReport], picture_rate: float) -> None:
        """Use a new pair of reports if it agrees with the pair before it, or if no pair is in use."""
        if self._used is not None and not (self._picture_is_new and self._sound_is_new):
            return
        self._picture_is_new = self._sound_is_new = False
        before, self._newest = self._newest, pair
        agrees = before is not None and _apart(before, pair, picture_rate, self._rate) < _IN_STEP_TICKS
        if self._used is None or agrees:
            self._used = pair


def difference(later: int, earlier: int) -> int:
    """Return `later - earlier` for RTP times, which wrap at 32 bits."""
    return (later - earlier + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def _apart(
    before: tuple[SenderReport, SenderReport], after: tuple[SenderReport, SenderReport], picture_rate: float, rate: int
) -> int:
    """Return the ticks by which two pairs of reports differ in how they place sound against pictures."""
    moved = []
    for earlier, later, clock_rate in zip(before, after, (picture_rate, rate), strict=True):
        by_clock = (later.clock - earlier.clock) * TICKS_PER_SECOND >> 32
        moved.append(by_clock - difference(later.timestamp, earlier.timestamp) * TICKS_PER_SECOND / clock_rate)
    return int(abs(moved[1] - moved[0]))
