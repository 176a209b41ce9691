"""A video source over WebRTC: pictures as the camera encoded them, never decoded. Blocking; belongs in a thread.

The session has an event loop of its own, which runs only while the thread waits for packets.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, TypeVar

from drivers.contract import ProtocolViolation
from drivers.rtsp.errors import CameraStalled, CameraUnreachable
from drivers.rtsp.frames import AudioFormat, EncodedFrame, VideoFormat
from drivers.rtsp.sdp import Media
from drivers.rtsp.video_track import LONGEST_DAMAGED_SECONDS, FootageLost, VideoTrack, recordable
from drivers.webrtc.connection import WebRtcLine
from drivers.webrtc.whep_dialogue import parse_answer
from drivers.webrtc.whep_session import WhepSession

_POLL_SECONDS = 0.25
"""The longest wait for packets in one `receive`; after it, time limits and requests for keyframes are checked."""

T = TypeVar("T")


class WhepSource:
    """One session with one camera, to be opened once and read until it raises (`drivers.video_sources.Source`).

    `url` may hold credentials, which are sent to the camera only and appear in no error and no log. Only `interrupt`
    may be called from another thread.
    """

    def __init__(
        self,
        *,
        url: str,
        open_seconds: float = 10.0,
        stall_seconds: float = 5.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._open_seconds = open_seconds
        self._stall_seconds = stall_seconds
        self._monotonic = monotonic
        self._session = WhepSession(url=url, seconds=open_seconds)
        self._runner = asyncio.Runner()
        self._line: WebRtcLine | None = None
        self._track: VideoTrack | None = None
        self._waiting: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._interrupted = False
        self.sound: AudioFormat | None = None
        """Always None: the offer asks for video only."""
        self.why_silent = "sound is recorded from cameras that are read by RTSP alone"

    def open(self) -> VideoFormat | None:
        """Connect and start the stream; return the announced format, or None when it comes with the first keyframe.

        Raises:
            CameraUnreachable: no answer, no connection for packets, or not within `open_seconds`.
            CameraRefused: the camera refused, has no video, or sends a codec that is not recorded.
        """
        self._loop = self._runner.get_loop()
        offer = self._wait_for(self._begin_line(), "no addresses for WebRTC were found in time")
        answer = self._session.begin(offer)
        try:
            answered = parse_answer(answer)
        except ProtocolViolation as error:
            raise CameraUnreachable(str(error)) from error
        video = recordable([Media("video", "", answered.encodings)] if answered.encodings else [])
        line = self._open_line()
        self._wait_for(
            line.connect(answered), "the camera's WebRTC ports did not answer in time: its UDP must be open to us"
        )
        self._track = VideoTrack(encodings=video.encodings, lossy=True, now=self._monotonic())
        return self._track.format

    def batches(self) -> Iterator[Sequence[EncodedFrame | FootageLost]]:
        """Iterate over complete access units that arrive together, in decoding order from a keyframe on.

        A keyframe is requested whenever a picture was lost.

        Raises:
            CameraStalled: no picture came within `stall_seconds`, or no complete one within half a minute.
            CameraEnded: the camera ended the session.
            CameraUnreachable: `interrupt` was called.
        """
        line, track = self._open_line(), self._track
        if track is None:
            raise CameraUnreachable("the source is not open")
        damaged = 0
        wants_keyframe = True
        while True:
            packets = self._wait_for(
                line.receive(_POLL_SECONDS, wants_keyframe=wants_keyframe), "the event loop of the session hangs"
            )
            now = self._monotonic()
            if frames := track.frames(packets, now):
                if any(isinstance(frame, EncodedFrame) and frame.keyframe for frame in frames):
                    wants_keyframe = False
                yield frames
            wants_keyframe = wants_keyframe or track.damaged > damaged
            damaged = track.damaged
            if track.silence.is_too_long(now, seconds=self._stall_seconds):
                raise CameraStalled(f"no video for {now - track.silence.heard_at:.0f} s")
            if track.silence.heard_at - track.came_through_at > LONGEST_DAMAGED_SECONDS:
                raise CameraStalled("no picture came through whole: the network loses too many packets")

    def gather(self, size: int) -> None:
        """Do nothing: WebRTC's library reads each packet as it comes."""

    def interrupt(self) -> None:
        """End `open` or `batches` in the thread that waits in them; callable from any thread."""
        self._interrupted = True
        self._session.interrupt()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop was closed just now
                self._loop.call_soon_threadsafe(self._stop_waiting)

    def close(self) -> None:
        """End the session and close the connection. Call it from the thread that reads."""
        line, self._line = self._line, None
        if line is not None:
            self._runner.run(line.close())
        self._session.end()
        self._runner.close()

    async def _begin_line(self) -> str:
        local = await _local_addresses(self._session.host)
        self._line = WebRtcLine(monotonic=self._monotonic, local=local)
        return await self._line.offer()

    def _open_line(self) -> WebRtcLine:
        if self._line is None:
            raise CameraUnreachable("the source is not open")
        return self._line

    def _wait_for(self, work: Coroutine[Any, Any, T], too_long: str) -> T:
        async def bounded() -> T:
            self._waiting = asyncio.current_task()
            try:
                if self._interrupted:
                    work.close()
                    raise CameraUnreachable("reading was ended")
                async with asyncio.timeout(self._open_seconds):
                    return await work
            finally:
                self._waiting = None

        try:
            return self._runner.run(bounded())
        except TimeoutError:
            raise CameraUnreachable(too_long) from None
        except asyncio.CancelledError:
            raise CameraUnreachable("reading was ended") from None

    def _stop_waiting(self) -> None:
        if self._interrupted and self._waiting is not None:
            self._waiting.cancel()


async def _local_addresses(host: str) -> tuple[str, ...]:
    """Return the loopback addresses of a camera's host; none for a camera on another machine."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # reported when connecting
        return ()
    addresses = dict.fromkeys(str(each[4][0]) for each in found)
    return tuple(address for address in addresses if ipaddress.ip_address(address.partition("%")[0]).is_loopback)
