"""Segments into one MP4 that starts at once (`moov` first): remuxed, never decoded. Blocking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import compress
from pathlib import Path

import av
import av.error
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.stream import Stream
from av.video.stream import VideoStream

from drivers.camera.frames import TICKS_PER_SECOND
from gateway.camera_worker.media_paths import BadRequest, MediaMissing, inside, written_whole
from gateway.camera_worker.sound_stream import announces_sound, shown_after_decoding, video_type
from gateway.domain.clip_codec import fits
from gateway.domain.footage import ClipCut, CutClip, parse_segment_path

_TIME_BASE = Fraction(1, TICKS_PER_SECOND)
_HEAD_BYTES = 4 * 188
_UNDECODED = {"codec_whitelist": "aac"}
_LONGEST_SOUND_TICKS = TICKS_PER_SECOND
_LEAST_SOUND_TICKS = 90
"""Pieces of sound are longer: two that begin closer together are one, told twice."""


def cut_clip(media: Path, request: CutClip) -> ClipCut:
    """Make the clip.

    Segments follow one another without a pause, each as long as its name says; where footage is missing between two,
    the clip goes on with what comes next, as it does where segments are left out because they are in another codec than
    fills most of it. Frames before time 0 are those that the edit list hides: players decode them
    to show what follows (ISO/IEC 14496-12, 8.6.6).

    Raises:
        BadRequest: a path leads out of the media folder, or is no segment's.
        MediaMissing: a segment is gone or unreadable.
        OSError: the output cannot be written.
    """
    sources = [_segment(media, path) for path in request.segments]
    output = inside(media, request.output)
    sources, skip, end = _in_one_codec(sources, skip=request.skip, leave_off=request.leave_off)
    with written_whole(output) as temporary:
        target = av.open(str(temporary), "w", format="mp4", options={"movflags": "+faststart"})
        try:
            _copy_all(sources, target, skip=skip, end=end)
            target.close()
        except av.error.FFmpegError as error:
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror) from error
            raise MediaMissing(f"the clip cannot be made from these segments ({type(error).__name__})") from error
    return ClipCut(output=request.output, size=output.stat().st_size, duration=end - skip)


@dataclass(frozen=True, slots=True)
class _Source:
    """A segment: its file, how many micros it lasts, and its first packets; of a file that is gone, none."""

    path: Path
    duration: int
    head: bytes

    @property
    def codec(self) -> str:
        """What its pictures are announced to be in, "" when that is not."""
        return str(video_type(self.head) or "")


def _segment(media: Path, path: str) -> _Source:
    parsed = parse_segment_path(path)
    if parsed is None:
        raise BadRequest("not the path of a segment")
    file = inside(media, path)
    try:
        with file.open("rb") as opened:
            return _Source(file, parsed[2], opened.read(_HEAD_BYTES))
    except OSError:  # told of when it is copied
        return _Source(file, parsed[2], b"")


def _in_one_codec(sources: list[_Source], *, skip: int, leave_off: int) -> tuple[list[_Source], int, int]:
    """The segments that one sample entry describes, and from where until where in them the clip is."""
    skip = min(skip, max(0, sources[0].duration - 1))
    end = max(skip + 1, sum(source.duration for source in sources) - leave_off)
    lasting: list[int] = []
    passed = 0
    for source in sources:
        lasting.append(min(passed + source.duration, end) - max(passed, skip))
        passed += source.duration
    held = fits((source.codec, lasts) for source, lasts in zip(sources, lasting, strict=True))
    kept = list(compress(sources, held))
    skipped = skip if held[0] else 0
    return kept, skipped, skipped + sum(lasts for lasts in compress(lasting, held) if lasts > 0)


def _copy_all(sources: list[_Source], target: OutputContainer, *, skip: int, end: int) -> None:
    tracks: _Tracks | None = None
    passed = 0
    ahead = max(shown_after_decoding(source.head) for source in sources)
    sounding = next((source.path for source in sources if announces_sound(source.head)), None)
    for segment in sources:
        path, duration = segment.path, segment.duration
        with _opened(path, known=tracks is not None) as source:
            if not source.streams.video:
                raise MediaMissing(f"segment {path.name} holds no video")
            if tracks is None:
                tracks = _Tracks(target, pictures=source.streams.video[0], sounding=sounding)
            span = _Span(
                begin=_ticks(passed - skip),
                end=_ticks(min(passed + duration, end) - skip),
                ahead=ahead,
                is_last=passed + duration >= end,
            )
            tracks.copy(source, span)
        passed += duration
        if passed >= end:
            return


def _opened(path: Path, *, known: bool = False) -> InputContainer:
    """A segment to read. `known`: what it holds is like another, so that no picture of it is decoded to learn more:
    that would take most of a clip's time.
    """
    try:
        return av.open(str(path), "r", format="mpegts", options=_UNDECODED if known else {})
    except (av.error.FFmpegError, OSError) as error:
        raise MediaMissing(f"segment {path.name} cannot be read ({type(error).__name__})") from error


@dataclass(frozen=True, slots=True)
class _Span:
    """A segment's place in the clip, in ticks.

    Attributes:
        begin: when its first picture is shown.
        end: until when its last one is.
        ahead: how much earlier the first is decoded: as much as in that of all segments that reorders most, so that
            each is decoded after those of the segment before.
        is_last: whether it is the clip's last.
    """

    begin: int
    end: int
    ahead: int
    is_last: bool

    def is_over(self, picture: Packet[Stream]) -> bool:
        """Whether neither this picture nor any after it belongs to the segment's place."""
        # After the clip's last segment nothing else is decoded, so that it may go on until what is shown is whole.
        return (picture.dts or 0) >= (self.end if self.is_last else self.end - self.ahead)

    def shows(self, picture: Packet[Stream]) -> bool:
        """Whether it is shown in the segment's place, and not only decoded there for the sake of others."""
        return not self.is_last or (picture.pts or 0) < self.end


class _Pictures:
    """Those of one segment that are needed, in the order of decoding, each with how long it lasts."""

    def __init__(self, span: _Span, *, show: Callable[[Packet[Stream], int], None]) -> None:
        self._span = span
        self._show = show
        self._held: Packet[Stream] | None = None
        self._pending: list[Packet[Stream]] = []

    def take(self, picture: Packet[Stream]) -> None:
        """The next one; whether it is needed may be known only with one of those after it."""
        self._pending.append(picture)
        if not self._span.shows(picture):
            return
        for needed in self._pending:
            if self._held is not None:
                self._show(self._held, (needed.dts or 0) - (self._held.dts or 0))
            self._held = needed
        self._pending.clear()

    def end(self) -> None:
        """There are no more: the last one lasts until the segment's end."""
        if self._held is not None:
            self._show(self._held, max(1, self._span.end - (self._held.pts or 0)))


class _Tracks:
    """The clip's pictures, and its sound where there is any."""

    def __init__(self, target: OutputContainer, *, pictures: VideoStream, sounding: Path | None) -> None:
        self._target = target
        self._pictures: Stream = target.add_stream_from_template(pictures)
        if pictures.codec_context.name == "hevc":
            self._pictures.codec_context.codec_tag = "hvc1"  # hev1, the other, is not played by Apple's players
        self._sound: Stream | None = None
        self._heard_until = -_LONGEST_SOUND_TICKS
        if sounding is not None:
            with _opened(sounding) as source:
                if source.streams.audio and source.streams.audio[0].codec_context.sample_rate:
                    self._sound = target.add_stream_from_template(source.streams.audio[0])

    def copy(self, source: InputContainer, span: _Span) -> None:
        """Copy a segment: its first picture is shown at the span's begin, and the last before its end lasts until then.

        Pictures that are shown after the end are copied where others, shown before it, are decoded from them.
        """
        shift: int | None = None
        decoded_shift = 0
        pictures = _Pictures(span, show=self._show)
        early: list[Packet[Stream]] = []
        streams: list[Stream] = [source.streams.video[0]]
        if self._sound is not None and source.streams.audio:
            streams.append(source.streams.audio[0])
        for packet in source.demux(streams):
            if not packet.size or packet.dts is None or packet.pts is None:
                continue
            if packet.stream.type == "audio":
                if shift is None:
                    early.append(packet)
                else:
                    self._hear(packet, shift, span.end)
                continue
            if shift is None:
                shift = span.begin - packet.pts
                decoded_shift = span.begin - span.ahead - packet.dts
                # a file begins with a picture, but its packet is whole only when the next one begins
                for piece in early:
                    self._hear(piece, shift, span.end)
            packet.dts += decoded_shift
            packet.pts += shift
            if span.is_over(packet):
                break
            pictures.take(packet)
        pictures.end()

    def _show(self, picture: Packet[Stream], lasts: int) -> None:
        picture.time_base = _TIME_BASE
        picture.stream = self._pictures
        picture.duration = lasts
        self._target.mux_one(picture)

    def _hear(self, packet: Packet[Stream], shift: int, end: int) -> None:
        """Copy a piece of sound that is heard within the clip, and begins after the one before."""
        if self._sound is None or packet.pts is None:
            return
        pts = packet.pts + shift
        if pts + (packet.duration or 0) <= 0 or pts < self._heard_until or pts >= end:
            return
        packet.pts = packet.dts = pts
        packet.time_base = _TIME_BASE
        packet.stream = self._sound
        self._heard_until = pts + _LEAST_SOUND_TICKS
        self._target.mux_one(packet)


def _ticks(micros: int) -> int:
    return round(micros * 9 / 100)
