"""The RTSP server of recorded cameras: other equipment takes pictures from here, so that a camera has one client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager

import structlog

from drivers.contract import ProtocolViolation
from drivers.listening.places import Crowd
from drivers.rtsp import formats
from drivers.rtsp.frames import AudioFormat, EncodedAudio, EncodedFrame, VideoFormat
from drivers.rtsp.server.messages import Credentials
from drivers.rtsp.server.server import RtspServer, ServedStream
from gateway.camera_worker.live_feed import LiveFeed, LiveView
from gateway.domain.footage import RtspServing

log = structlog.get_logger(__name__)

_PREFIX = "/camera/"
_LOOK_SECONDS = 0.2
_LONGEST_ID = 20


class _Frames:
    """The frames of a view in the form that an RTSP session needs."""

    def __init__(self, view: LiveView) -> None:
        self._view = view

    async def frames(self) -> AsyncIterator[EncodedFrame | EncodedAudio]:
        """Iterate over frames in order, and the sound between them, until the camera is no longer read."""
        while (item := await self._view.next_of_both()) is not None:
            yield item


class _CameraFeed:
    """A camera's live feed in the form that an RTSP server needs (`drivers.rtsp.server.session.Feed`)."""

    def __init__(self, live: LiveFeed) -> None:
        self._live = live

    @property
    def viewers(self) -> int:
        return self._live.viewers

    @property
    def sound(self) -> AudioFormat | None:
        return self._live.sound

    async def format(self) -> VideoFormat:
        """Wait for the camera's first keyframe and return the format."""
        while True:
            for _, frame in self._live.group():
                try:
                    found = formats.told_by(frame, known=None)
                except ProtocolViolation:
                    break  # invalid parameter sets; valid ones may follow
                if found is not None:
                    return found
                break
            await asyncio.sleep(_LOOK_SECONDS)

    @contextmanager
    def subscribe(self) -> Iterator[_Frames]:
        """Add a viewer for the length of the block."""
        with self._live.watch(sound=True) as view:
            yield _Frames(view)


class _Streams(Mapping[str, ServedStream]):
    """The streams by path, `/camera/<id>`. It can only be looked up, and iterates over nothing."""

    def __init__(self, *, feed_of: Callable[[int], LiveFeed | None], credentials: Credentials) -> None:
        self._feed_of = feed_of
        self._credentials = credentials

    def __getitem__(self, path: str) -> ServedStream:
        number = path.removeprefix(_PREFIX)
        named = path.startswith(_PREFIX) and number.isascii() and number.isdecimal() and len(number) < _LONGEST_ID
        feed = self._feed_of(int(number)) if named else None
        if feed is None:
            raise KeyError(path)
        return ServedStream(feed=_CameraFeed(feed), credentials=self._credentials)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


class CameraRtspServer:
    """The RTSP server of this process's cameras. `feed_of` returns a camera's feed, None for an unknown camera."""

    def __init__(self, *, feed_of: Callable[[int], LiveFeed | None]) -> None:
        self._feed_of = feed_of
        self._asked: RtspServing | None = None
        self._server: RtspServer | None = None

    @property
    def crowd(self) -> Crowd | None:
        """The callers for whom there was no room in the last minute, None for none."""
        return None if self._server is None else self._server.crowd

    async def serve(self, asked: RtspServing | None) -> None:
        """Serve with these settings from now on; None ends the server.

        If the port cannot be opened, that is logged, and the next call tries again.
        """
        if asked == self._asked:
            return
        await self.end()
        if asked is None:
            return
        streams = _Streams(feed_of=self._feed_of, credentials=Credentials(asked.username, asked.password))
        server = RtspServer(streams=streams, host=asked.host, port=asked.port)
        try:
            await server.__aenter__()
        except OSError as error:
            log.error("rtsp_not_served", host=asked.host, port=asked.port, error=error.strerror)  # noqa: TRY400
            return
        self._asked, self._server = asked, server
        log.info("rtsp_served", host=asked.host, port=server.port)

    async def end(self) -> None:
        """End the server and its viewers' connections."""
        server, self._server, self._asked = self._server, None, None
        if server is not None:
            await server.__aexit__(None, None, None)
