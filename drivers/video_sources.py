"""The contract of video sources, and the choice of the one that reads an address."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from drivers.rtsp.client.connection import ReadBuffers
from drivers.rtsp.client.habits import CameraHabits
from drivers.rtsp.client.source import RtspSource
from drivers.rtsp.client.viewing import Transport
from drivers.rtsp.frames import AudioFormat, EncodedAudio, EncodedFrame, VideoFormat
from drivers.rtsp.video_track import FootageLost


class Source(Protocol):
    """One connection to one camera, opened once, read until it raises, and closed.

    Blocking; only `interrupt` may be called from another thread. Errors are those of `drivers.rtsp.errors`.
    """

    why_silent: str
    """The reason why a camera that was asked for audio sends none, in one sentence."""

    @property
    def sound(self) -> AudioFormat | None:
        """The format of the sound that comes with the frames; None without sound, and before `open`."""
        ...

    def open(self) -> VideoFormat | None:
        """Connect and start the stream; return the format as announced, or None when it comes in-band only."""
        ...

    def batches(self) -> Iterator[Sequence[EncodedFrame | EncodedAudio | FootageLost]]:
        """Iterate over what arrives together: access units in decoding order from a keyframe on, and sound."""
        ...

    def gather(self, size: int) -> None:
        """Deliver frames in batches of `size` bytes, at most half a second late; 1 delivers each at once.

        A hint that saves work while nobody watches; a source may ignore it.
        """
        ...

    def interrupt(self) -> None:
        """End `open` or `batches` in the thread that waits in them."""
        ...

    def close(self) -> None:
        """End the stream and close the connection to the camera."""
        ...


def source_at(
    url: str,
    *,
    transport: Transport = "tcp",
    audio: bool = False,
    stall_seconds: float = 5.0,
    habits: CameraHabits | None = None,
    buffers: ReadBuffers | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Source:
    """Make the source that reads `url`: `rtsp://`, `rtsps://`, `whep://` (HTTP) or `wheps://` (HTTPS).

    `audio` asks an RTSP camera for its sound too, where that is AAC, G.711 or Opus. `habits` are what earlier
    connections to an RTSP camera taught. `buffers` are those that RTSP sources share, None for its own.
    """
    if urlsplit(url).scheme.lower() in ("whep", "wheps"):
        # WebRTC's libraries take more memory than all else here, so they are imported only for a camera that needs them
        from drivers.webrtc.whep_source import WhepSource  # noqa: PLC0415

        return WhepSource(url=url, stall_seconds=stall_seconds, monotonic=monotonic)
    return RtspSource(
        url=url,
        transport=transport,
        audio=audio,
        stall_seconds=stall_seconds,
        habits=habits,
        buffers=buffers,
        monotonic=monotonic,
    )
