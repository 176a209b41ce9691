"""A video source over RTSP: pictures as the camera encoded them, never decoded. Blocking; belongs in a thread.

RTP is parsed here and not by libavformat, which reads a socket byte by byte at great cost, and does not tell what was
lost and why.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

from drivers.rtsp.audio_clock import SenderReport
from drivers.rtsp.audio_track import AudioTrack, audible
from drivers.rtsp.client.connection import ReadBuffers
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.client.viewing import RtspViewing, Transport
from drivers.rtsp.errors import CameraMoved, CameraStalled, CameraUnreachable
from drivers.rtsp.frames import AudioFormat, EncodedAudio, EncodedFrame, VideoFormat
from drivers.rtsp.video_track import LONGEST_DAMAGED_SECONDS, FootageLost, VideoTrack, recordable

_SOON_SECONDS = 0.1
_GATHER_SECONDS = 0.5
_LITTLE = 65_536


class RtspSource:
    """One connection to one camera, to be opened once and read until it raises (`drivers.video_sources.Source`).

    `url` may hold credentials, which are sent to the camera only and appear in no error and no log. Only `interrupt`
    may be called from another thread.
    """

    def __init__(
        self,
        *,
        url: str,
        transport: Transport = "tcp",
        audio: bool = False,
        open_seconds: float = 10.0,
        stall_seconds: float = 5.0,
        habits: CameraHabits | None = None,
        buffers: ReadBuffers | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up the source.

        `habits` are what earlier connections to this camera taught, None for nothing. `buffers` are those that it
        shares with others, None for its own.
        """
        self._stall_seconds = stall_seconds
        self._monotonic = monotonic
        self._habits = habits or CameraHabits()
        self._viewing = RtspViewing(
            url=url,
            transport=transport,
            habits=self._habits,
            seconds=open_seconds,
            buffers=buffers or ReadBuffers(),
            monotonic=monotonic,
        )
        self._audio = audio
        self._track: VideoTrack | None = None
        self._sound: AudioTrack | None = None
        self._at_once = False
        self._wanted = 1
        self.why_silent = ""
        """The reason, in one sentence, why no sound comes; "" when it does, and before `open`."""

    def open(self) -> VideoFormat | None:
        """Connect and start the stream; return the announced format, or None when it comes in-band only.

        Raises:
            CameraUnreachable: no connection, or no answer within `open_seconds`.
            CameraRefused: the camera refused, has no video, or sends a codec that is not recorded.
            CameraEnded: the camera hung up.
        """
        while True:
            media = self._viewing.describe()
            video = recordable(media)
            sounds, why = audible(media) if self._audio else ([], "nobody asked for audio")
            with contextlib.suppress(CameraMoved):
                playing = self._viewing.play(video, [sound.media for sound in sounds])
                break
        self._track = VideoTrack(
            encodings=video.encodings,
            lossy=self._viewing.over == "udp",
            now=self._monotonic(),
            factor=self._habits.pace,
        )
        if playing is None:
            self.why_silent = "the camera refused to send its audio" if sounds else why
        else:
            self._sound = sounds[playing].track()
            picture_begins, sound_begins = self._viewing.begins
            if picture_begins is not None and sound_begins is not None:
                self._sound.clock.begun(picture=picture_begins, sound=sound_begins)
        return self._track.format

    @property
    def sound(self) -> AudioFormat | None:
        """The format of the sound that comes with the frames; None without sound, and before `open`."""
        return None if self._sound is None else self._sound.format

    def batches(self) -> Iterator[Sequence[EncodedFrame | EncodedAudio | FootageLost]]:
        """Iterate over what arrives together: complete access units in decoding order from a keyframe on, and sound.

        Raises:
            CameraStalled: no picture came within `stall_seconds`, or longer where the camera sends rarely, or no
                complete one within half a minute.
            CameraEnded: the camera ended the stream.
            CameraUnreachable: the connection broke.
        """
        track = self._track
        if track is None:
            raise CameraUnreachable("the source is not open")
        while True:
            arrived = self._viewing.receive()
            now = self._monotonic()
            self._read_at_once(track)
            batch: list[EncodedFrame | EncodedAudio | FootageLost] = []
            for came in arrived:
                if came.report is not None:
                    self._heed(came.report, of_sound=bool(came.medium), track=track)
                if not came.medium:
                    batch += track.frames(came.packets, now)
                elif self._sound is not None:
                    batch += self._sound.sounds(came.packets, now, track.latest)
            if batch:
                yield batch
            if track.silence.is_too_long(now, seconds=self._stall_seconds):
                self._viewing.fell_silent(had_pictures=track.has_output)
                hint = "" if track.has_output else self._viewing.why_nothing_came
                raise CameraStalled(f"no video for {now - track.silence.heard_at:.0f} s{hint}")
            if track.silence.heard_at - track.came_through_at > LONGEST_DAMAGED_SECONDS:
                self._viewing.fell_silent(had_pictures=track.has_output)
                raise CameraStalled("no picture came through whole for half a minute")

    def _heed(self, report: SenderReport, *, of_sound: bool, track: VideoTrack) -> None:
        """Take a sender report of the camera."""
        if not of_sound:
            track.reported(report)
        if self._sound is not None:
            (self._sound.clock.sound_reported if of_sound else self._sound.clock.picture_reported)(report)

    def gather(self, size: int) -> None:
        """Deliver frames in batches of `size` bytes, at most half a second late; 1 delivers each at once.

        With sound, batches are small. While only times of arrival can be trusted, there are none.
        """
        self._wanted = size
        if self._at_once:
            self._viewing.gather(1, _SOON_SECONDS)
            return
        gathers = size > 1 and self._sound is None
        self._viewing.gather(size if gathers else min(size, _LITTLE), _GATHER_SECONDS if gathers else _SOON_SECONDS)

    def _read_at_once(self, track: VideoTrack) -> None:
        """Switch batches off while times of arrival count, because a batch would falsify them.

        They count for pictures with implausible timestamps, and for sound that the camera's reports do not place.
        """
        at_once = not track.keeps_time or (self._sound is not None and self._sound.clock.goes_by_arrival)
        if at_once is not self._at_once:
            self._at_once = at_once
            self.gather(self._wanted)

    def interrupt(self) -> None:
        """End `open` or `batches` in the thread that waits in them; callable from any thread."""
        self._viewing.interrupt()

    def close(self) -> None:
        """End the session and close the connection. Call it from the thread that reads."""
        if self._track is not None:
            self._habits.pace = self._track.factor(self._monotonic())
        self._viewing.close()
