"""One connection's sound on the time line of its pictures. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from drivers.contract import ProtocolViolation
from drivers.rtsp.audio_packets import AudioPackets, packets_of
from drivers.rtsp.frames import TICKS_PER_SECOND, AudioFormat, EncodedAudio
from drivers.rtsp.sdp import Encoding, Media

_IN_STEP_TICKS = TICKS_PER_SECOND * 2 // 100
"""So far sound may be from its pictures before it is put right (ITU-R BT.1359 allows 45 ms of lead)."""
_ROUGH_TICKS = TICKS_PER_SECOND // 2
"""So far the time of one arrival may differ from the count before it is believed instead."""
_WEIGHED = 25
"""So many arrivals are weighed together: of half a second, as most sound comes."""
_LONGEST_LAG_TICKS = 3 * TICKS_PER_SECOND
"""A camera whose reports put sound farther from the pictures it comes with tells a time that cannot be true."""


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
    """A picture's times: RTP's, at `rate` a second; in ticks; and when it arrived, monotonic seconds."""

    timestamp: int
    rate: int
    pts: int
    arrived: float


class AudioClock:
    """RTP times of sound into ticks of the pictures' time line.

    By the camera's sender reports where both streams have them and they can be true; until then by the times that the
    camera said when it began to play (RTP-Info); otherwise sound belongs to the picture it arrived with. Of that the
    median of some counts: a camera sends its first pictures and sounds in one go, and its count of sound drifts.

    Two reports made at different moments contradict each other where the camera paused in between, so a pair counts
    when the pair after it says the same; the first counts at once where there is nothing else to go by. A pair that has
    put sound next to its pictures once is kept until another is agreed on: packets that wait somewhere tell nothing
    against it.
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
        """True while nothing that the camera said places sound among the pictures."""
        return not self._is_proven

    def begun(self, *, picture: int, sound: int) -> None:
        """Note which RTP times of both streams are the same moment (RFC 2326, 12.33)."""
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
            raw: RTP's timestamp, 32 bits.
            arrived: monotonic seconds.
            picture: the picture that came last.
        """
        by_arrival = picture.pts + int((arrived - picture.arrived) * TICKS_PER_SECOND)
        step = 0 if self._raw is None else _difference(raw, self._raw)
        self._raw = raw
        self._count += step
        pts = by_arrival if self._base is None else self._counted(self._base)
        by_reports = self._by_reports(raw, picture)
        exact = by_reports is not None and (
            abs(by_reports - by_arrival) < _LONGEST_LAG_TICKS
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
        """Return the time, put right if the last arrivals say that sound has been off for a while."""
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
        since_sound = _difference(raw, of_sound.timestamp) * TICKS_PER_SECOND // self._rate
        apart = (of_sound.clock - of_picture.clock) * TICKS_PER_SECOND >> 32
        since_picture = _difference(picture.timestamp, of_picture.timestamp) * TICKS_PER_SECOND // picture.rate
        return picture.pts + apart + since_sound - since_picture

    def _weigh(self, pair: tuple[SenderReport, SenderReport], picture_rate: int) -> None:
        """Use a new pair of reports if it says the same as the pair before it, or is all there is."""
        if self._used is not None and not (self._picture_is_new and self._sound_is_new):
            return
        self._picture_is_new = self._sound_is_new = False
        before, self._newest = self._newest, pair
        agrees = before is not None and _apart(before, pair, picture_rate, self._rate) < _IN_STEP_TICKS
        if self._used is None or agrees:
            self._used = pair


class AudioTrack:
    """One connection's sound. `packets` takes it apart; its RTP clock runs at `rate`."""

    def __init__(self, *, packets: AudioPackets, payload_type: int, rate: int) -> None:
        self._packets = packets
        self._payload_type = payload_type
        self._last: int | None = None
        self.clock = AudioClock(rate=rate)

    @property
    def format(self) -> AudioFormat:
        """Format of the sound."""
        return self._packets.format

    def sounds(
        self, packets: Iterable[bytes | memoryview], now: float, picture: PictureTime | None
    ) -> Iterator[EncodedAudio]:
        """Return the pieces of sound that these packets complete; empty before the first picture."""
        for packet in packets:
            if len(packet) < 2 or packet[1] & 0x7F != self._payload_type:
                continue
            for raw, data in self._packets.push(packet):
                if picture is None:
                    continue
                pts = self.clock.pts(raw, now, picture)
                if self._last is not None and pts <= self._last and self._last - pts < _LONGEST_LAG_TICKS:
                    continue  # the clock was set back a little: sound is not repeated
                self._last = pts
                yield EncodedAudio(data, pts, now, self._packets.format)


@dataclass(frozen=True, slots=True)
class Sound:
    """A camera's sound that can be recorded."""

    media: Media
    payload_type: int
    encoding: Encoding
    packets: AudioPackets

    def track(self) -> AudioTrack:
        """Make its track for one connection."""
        return AudioTrack(packets=self.packets, payload_type=self.payload_type, rate=self.encoding.clock)


def audible(media: Iterable[Media]) -> Sound | str:
    """Find the first sound track that can be recorded; otherwise explain in one sentence why there is none."""
    why = "the camera offers no audio"
    for medium in media:
        if medium.kind != "audio":
            continue
        for number, encoding in medium.encodings.items():
            try:
                packets = packets_of(encoding)
            except ProtocolViolation as error:
                why = str(error)
                continue
            if packets is not None:
                return Sound(medium, number, encoding, packets)
            why = f"the camera's audio is {encoding.name}, neither AAC nor G.711 nor Opus"
    return why


def _difference(later: int, earlier: int) -> int:
    """Subtract RTP times, which wrap."""
    return (later - earlier + 0x80000000 & 0xFFFFFFFF) - 0x80000000


def _apart(
    before: tuple[SenderReport, SenderReport], after: tuple[SenderReport, SenderReport], picture_rate: int, rate: int
) -> int:
    """Return by how many ticks two pairs of reports differ in placing sound against pictures."""
    moved = []
    for earlier, later, clock_rate in zip(before, after, (picture_rate, rate), strict=True):
        by_clock = (later.clock - earlier.clock) * TICKS_PER_SECOND >> 32
        moved.append(by_clock - _difference(later.timestamp, earlier.timestamp) * TICKS_PER_SECOND // clock_rate)
    return abs(moved[1] - moved[0])
