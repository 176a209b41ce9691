"""Conversion of one video stream's packets to frames that a recording can rely on. Pure.

Only complete pictures come out, with growing decoding times. The first is a keyframe with its parameter sets. Losses
are reported. When a stream has had no entry point for LONGEST_GROUP_SECONDS, its next picture counts as one
(Entry.NONE).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from drivers.contract import ProtocolViolation
from drivers.rtsp import formats, h264, h265
from drivers.rtsp.audio_clock import PictureTime, SenderReport
from drivers.rtsp.depacketizer import Depacketizer
from drivers.rtsp.errors import CameraRefused, CodecNotSupported
from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedFrame, Picture, VideoCodec, VideoFormat
from drivers.rtsp.rtp_packets import payload_offset
from drivers.rtsp.sdp import Encoding, Media
from drivers.rtsp.timestamps import Timestamps

_SILENCE_TIMES = 3
"""A camera may be silent for so many times its longest usual time between two pictures."""
_LONGEST_SILENCE_SECONDS = 120.0
_FADES = 0.9
"""The part of the longest time that still counts at the next picture, so that a single pause is soon forgotten."""
_CODECS = {"H264": VideoCodec.H264, "H265": VideoCodec.H265, "HEVC": VideoCodec.H265}
_ASSUMED_REORDERING = 2
_LOOKED_AT = 4
"""Number of pictures to hold back at the begin, where the camera does not say whether it reorders pictures."""
_LONGEST_HOLE_SECONDS = 1.0
LONGEST_DAMAGED_SECONDS = 30.0
"""A connection is given up when no complete picture came for this long."""
LONGEST_GROUP_SECONDS = 10.0
"""A stream without an entry point for this long is cut by time: damaged pictures are better than none."""


class Silence:
    """The arrivals of one connection's pictures. `now` is when it was made, in monotonic seconds."""

    def __init__(self, now: float) -> None:
        self.heard_at = now
        """When the last picture came."""
        self._arrivals = 0
        self._longest = 0.0

    def heard(self, now: float) -> None:
        """Note that pictures came. Those that come at one moment are a burst of what the camera had."""
        if now == self.heard_at and self._arrivals:
            return
        if self._arrivals:
            self._longest = max(now - self.heard_at, self._longest * _FADES)
        self._arrivals += 1
        self.heard_at = now

    def is_too_long(self, now: float, *, seconds: float) -> bool:
        """Return whether the camera is silent for longer than it may be: `seconds`, or more if it sends rarely.

        Until the second picture nobody knows how often it sends.
        """
        usual = seconds if self._arrivals == 1 else self._longest
        return now - self.heard_at > max(seconds, min(_SILENCE_TIMES * usual, _LONGEST_SILENCE_SECONDS))


@dataclass(frozen=True, slots=True)
class FootageLost:
    """A report that pictures are missing between the last frame and the keyframe that follows.

    Attributes:
        by_network: True when the network lost them, False when the camera never sent them.
    """

    by_network: bool


def recordable(media: Iterable[Media]) -> Media:
    """Return the first video medium that can be recorded, with only those of its encodings that can be.

    Raises:
        CameraRefused: there is no video, or none in a codec that is recorded.
    """
    videos = [medium for medium in media if medium.kind == "video" and medium.direction != "inactive"]
    if not videos:
        raise CameraRefused("the camera offers no video")
    for video in videos:
        encodings = {number: encoding for number, encoding in video.encodings.items() if encoding.name in _CODECS}
        if encodings:
            return Media(kind=video.kind, control=video.control, encodings=encodings)
    raise CodecNotSupported(f"the camera sends {_names(videos)}, neither H.264 nor H.265")


class VideoTrack:
    """The video of one connection.

    Args:
        encodings: the encodings of its payload types, at least one, all of codecs that can be recorded.
        lossy: whether the network may lose packets; over TCP only the camera itself can leave pictures out.
        now: when the connection was made, in monotonic seconds.
        factor: the factor of the camera's pace that an earlier connection showed.
    """

    def __init__(self, *, encodings: Mapping[int, Encoding], lossy: bool, now: float, factor: float = 1.0) -> None:
        self._encodings = encodings
        self._lossy = lossy
        self._payload_type = -1
        self._packets = Depacketizer(codec=VideoCodec.H264)
        self._format: VideoFormat | None = None
        self._sets: dict[int, bytes] = {}
        self._times: Timestamps | None = None
        self._reordering: int | None = None
        self._clock = TICKS_PER_SECOND
        self._waits_for_keyframe = True
        self._misses_some = False
        self._entered_at = now
        self._entered_pts = 0
        self._looked_at: list[tuple[Picture, float]] | None = []
        self._latest: tuple[int, int, int, float] | None = None
        self._factor = factor
        self._pace = 1.0
        self.has_output = False
        """True once a frame came out."""
        self.silence = Silence(now)
        """The silence since the last picture, complete or not."""
        self.came_through_at = now
        """When the last frame came out."""
        self.keeps_time = True
        """True while all timestamps were plausible."""
        self.damaged = 0
        """The number of pictures dropped because they or their references were damaged, and of losses between them."""
        self._turn_to(next(iter(encodings)))

    @property
    def format(self) -> VideoFormat | None:
        """The format as announced, or as last sent in-band; None when neither came yet."""
        return self._format

    @property
    def latest(self) -> PictureTime | None:
        """The times of the last frame that came out."""
        if self._latest is None or self._times is None:
            return None
        timestamp, rate, pts, arrived = self._latest
        return PictureTime(timestamp, rate / self._times.pace.factor, pts, arrived)

    def factor(self, now: float) -> float:
        """Return the factor of the camera's pace: the last that has held for a while."""
        if self._times is not None and self._times.pace.has_held(now):
            self._factor = self._times.pace.factor
        return self._factor

    def reported(self, report: SenderReport) -> None:
        """Take a sender report of the pictures."""
        if self._times is not None:
            self._times.reported(report, clock=self._clock)

    def frames(self, packets: list[bytes | memoryview], now: float) -> list[EncodedFrame | FootageLost]:
        """Return the frames that these packets complete. `now` is when they arrived, in monotonic seconds."""
        found: list[EncodedFrame | FootageLost] = []
        at, count, came = 0, len(packets), False
        while (at := self._packets.take(packets, at)) < count:
            pictures, at = self._packets.wholes(packets, at)
            if pictures:
                came = True
                self._take_pictures(pictures, now, found)
            if at < count:
                if pictures := self._push(packets[at]):
                    came = True
                    self._take_pictures(pictures, now, found)
                at += 1
        if came:
            self.silence.heard(now)
        return found

    def _push(self, packet: bytes | memoryview) -> list[Picture]:
        if len(packet) > 1 and packet[1] & 0x7F != self._payload_type and payload_offset(packet) is not None:
            if packet[1] & 0x7F not in self._encodings:
                return []
            self._turn_to(packet[1] & 0x7F)
        return self._packets.push(packet)

    def _take_pictures(self, pictures: list[Picture], now: float, found: list[EncodedFrame | FootageLost]) -> None:
        """Add the frames of these pictures to those found."""
        for picture in pictures:
            if self._looked_at is None:
                self._take_picture(picture, now, found)
                continue
            self._looked_at.append((picture, now))
            if self._knows_order(self._looked_at):
                looked_at, self._looked_at = self._looked_at, None
                for earlier, at in looked_at:
                    self._take_picture(earlier, at, found)

    def _turn_to(self, payload_type: int) -> None:
        """Begin the stream, or continue it in another encoding, for which a keyframe is needed."""
        self._payload_type = payload_type
        encoding = self._encodings[payload_type]
        codec = _CODECS[encoding.name]
        self._clock = encoding.clock
        self._packets = Depacketizer(codec=codec)
        self._waits_for_keyframe = True
        self._sets = {}
        self._format = None
        names = ("sprop-vps", "sprop-sps", "sprop-pps") if codec is VideoCodec.H265 else ("sprop-parameter-sets",)
        announced = h264.START_CODE.join([b"", *(unit for name in names for unit in encoding.sets(name))])
        self._take_sets(list(h264.nal_units(announced)))  # which splits sets that were announced as one unit

    def _take_sets(self, units: list[bytes] | tuple[bytes, ...]) -> bool:
        """Keep the parameter sets among these units; return whether all that a keyframe needs are among them."""
        if not units:
            return False
        codec = self._packets.codec
        kind_of = h265.nal_type if codec is VideoCodec.H265 else h264.nal_type
        wanted = (h265.VPS, h265.SPS, h265.PPS) if codec is VideoCodec.H265 else (h264.SPS, h264.PPS)
        found = {kind_of(unit): unit for unit in units if kind_of(unit) in wanted}
        if found and any(self._sets.get(kind) != unit for kind, unit in found.items()):
            sets = {**self._sets, **found}
            data = h264.START_CODE + h264.START_CODE.join(sets[kind] for kind in wanted if kind in sets)
            try:
                in_band = formats.of_units(codec, data)
            except ProtocolViolation:
                return False  # an invalid parameter set: the ones known before stay in use
            self._sets = sets
            if in_band is not None:
                self._format = in_band
                if in_band.reordering is not None and in_band.reordering > (self._reordering or 0):
                    self._reorder_by(in_band.reordering)
                elif self._reordering is None:
                    self._reordering = in_band.reordering
        return all(kind in found for kind in wanted)

    def _reorder_by(self, pictures: int) -> None:
        self._reordering = pictures
        if self._times is not None:
            self._times = None
            self._waits_for_keyframe = True

    def _knows_order(self, looked_at: list[tuple[Picture, float]]) -> bool:
        """Return whether these pictures show how far the camera reorders its pictures, or enough were examined."""
        for picture, _ in looked_at:
            self._take_sets(picture.others)
        if self._reordering is None and any(picture.bidirectional for picture, _ in looked_at):
            self._reordering = _ASSUMED_REORDERING
        return self._reordering is not None or len(looked_at) >= _LOOKED_AT

    def _take_picture(self, picture: Picture, arrived: float, found: list[EncodedFrame | FootageLost]) -> None:
        whole_sets = bool(picture.others) and self._take_sets(picture.others)
        if picture.bidirectional and not self._reordering:
            self._reorder_by(_ASSUMED_REORDERING)
        if picture.damaged or picture.after_loss or self._waits_for_keyframe or self._misses_some:
            if not self._can_follow(picture, arrived):
                return
            if self._misses_some and self.has_output:
                found.append(FootageLost(by_network=self._lossy))
        begins, self._waits_for_keyframe = self._waits_for_keyframe, False
        self._misses_some = False
        self.has_output = True
        self.came_through_at = arrived
        if self._times is None:
            self._times = Timestamps(reordering=self._reordering or 0, factor=self._factor)
        repaired = self._times.repaired
        pts, dts = self._times.times(picture.timestamp, arrived, clock=self._clock)
        jumped = self._times.repaired > repaired
        if jumped:
            self.keeps_time = False
        self._latest = (picture.timestamp, self._clock, pts, arrived)
        overlong = pts - self._entered_pts >= LONGEST_GROUP_SECONDS * TICKS_PER_SECOND and not picture.bidirectional
        keyframe = picture.keyframe or begins or overlong
        data = picture.data
        if keyframe:
            self._entered_at, self._entered_pts = arrived, pts
            self._pace = self._times.pace.told(arrived)
            if not whole_sets and self._format is not None:
                data = self._format.head + data
        codec = self._packets.codec
        entry, recovery = picture.entry, picture.recovery
        found.append(EncodedFrame(data, pts, dts, keyframe, arrived, codec, entry, recovery, jumped, self._pace))

    def _can_follow(self, picture: Picture, arrived: float) -> bool:
        """Return whether a picture can follow the last frame, although something was lost or a keyframe is awaited."""
        hole = self.has_output and arrived - self.came_through_at > _LONGEST_HOLE_SECONDS
        self.damaged += picture.damaged or picture.after_loss
        if picture.damaged:
            self._waits_for_keyframe = self._waits_for_keyframe or picture.keyframe or hole
            self._misses_some = self._waits_for_keyframe
            return False
        if picture.after_loss and hole:
            self._waits_for_keyframe = self._misses_some = True
        waited_long = arrived - self._entered_at >= LONGEST_GROUP_SECONDS
        if self._waits_for_keyframe and not (self._format and (picture.keyframe or waited_long)):
            self.damaged += self.has_output
            self._misses_some = True
            return False
        return True


def _names(videos: Iterable[Media]) -> str:
    names = {encoding.name for video in videos for encoding in video.encodings.values()}
    return ", ".join(sorted(names)) or "an unknown codec"
