"""A video source over RTSP: packets as the camera encoded them, never decoded. Blocking; belongs in a thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Literal, Self

import av
import av.error
from av.container import InputContainer

from drivers.camera import h264
from drivers.camera.frames import TICKS_PER_SECOND, EncodedFrame, VideoFormat
from drivers.contract import DeviceFault, LinkError, ProtocolViolation

_ANALYSE_MICROS = 500_000
"""libavformat may look at this much of the stream for what the SDP left out; it delays the first frame."""
_LARGEST_PENDING = 1_000_000


class CameraUnreachable(LinkError):
    """No connection to the camera, or it broke."""


class CameraStalled(LinkError):
    """Connected, and no frame within the stall time."""


class CameraEnded(LinkError):
    """The camera ended the stream."""


class CameraRefused(DeviceFault):
    """The camera answered and refused: wrong account, no such stream, or a codec that is not recorded."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A picture or the first part of one. libavformat does not tell the time of a connection's first picture."""

    data: bytes
    pts: int | None
    dts: int | None
    lasts: int
    keyframe: bool
    arrived: float

    def joined(self, rest: _Piece) -> _Piece:
        pts, dts = (rest.pts, rest.dts) if self.pts is None else (self.pts, self.dts)
        return replace(self, data=h264.one_picture(self.data + rest.data), pts=pts, dts=dts)

    def frame(self, before: _Piece | None = None) -> EncodedFrame | None:
        """The whole picture; None when nothing tells its time, not even the piece that follows."""
        pts = self.pts
        if pts is None and before is not None and before.pts is not None:
            pts = before.pts - self.lasts
        if pts is None:
            return None
        return EncodedFrame(
            self.data, pts, pts if self.dts is None else min(self.dts, pts), self.keyframe, self.arrived
        )


class RtspSource:
    """One connection to one camera, to be opened once and read until it raises.

    `url` may hold credentials: it goes to the connection alone, and into no error and no log.
    """

    def __init__(
        self,
        *,
        url: str,
        transport: Literal["tcp", "udp"] = "tcp",
        open_seconds: float = 5.0,
        stall_seconds: float = 5.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._transport = transport
        self._open_seconds = open_seconds
        self._stall_seconds = stall_seconds
        self._monotonic = monotonic
        self._container: InputContainer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> VideoFormat | None:
        """Connect and start the stream; the format as the camera announced it, or None when it comes in-band only.

        Raises:
            CameraUnreachable: no connection, or no answer within `open_seconds`.
            CameraRefused: the camera refused, has no video, or sends another codec than H.264.
        """
        options = {
            "rtsp_transport": self._transport,
            "allowed_media_types": "video",
            "timeout": str(int(self._open_seconds * 1_000_000)),
            "analyzeduration": str(_ANALYSE_MICROS),
            "fpsprobesize": "0",
        }
        try:
            container = av.open(
                self._url, "r", format="rtsp", options=options, timeout=(self._open_seconds, self._stall_seconds)
            )
        except (av.error.FFmpegError, OSError, ValueError) as error:
            failure = _opening_failure(error)
            raise failure from None  # libav's text holds the whole URL, credentials included
        self._container = container
        if not container.streams.video:
            raise CameraRefused("the camera offers no video")
        context = container.streams.video[0].codec_context
        if context is None or context.name != "h264":
            raise CameraRefused(f"the camera sends {context.name if context else 'an unknown codec'}, not H.264")
        sps, pps = h264.parameter_sets(context.extradata or b"")
        return h264.video_format(sps, pps) if sps and pps else None

    def frames(self) -> Iterator[EncodedFrame]:
        """Frames as they arrive, whole access units in decoding order.

        Raises:
            CameraStalled: nothing came within `stall_seconds`.
            CameraEnded: the camera ended the stream.
            CameraUnreachable: the connection broke.
        """
        if self._container is None:
            raise CameraUnreachable("the source is not open")
        held: _Piece | None = None
        try:
            for piece in self._pieces(self._container):
                # a keyframe is held until the next piece shows that it is whole, and when it was if that was not told
                if held is not None and h264.continues_picture(piece.data):
                    held = held.joined(piece)
                    continue
                if held is not None and (frame := held.frame(before=piece)) is not None:
                    yield frame
                held = piece if piece.keyframe else None
                if held is None and (frame := piece.frame()) is not None:
                    yield frame
        except av.error.ExitError:
            raise CameraStalled(f"no video for {self._stall_seconds:g} s") from None
        except (av.error.FFmpegError, OSError) as error:
            raise CameraUnreachable(f"the connection broke ({_name(error)})") from None  # its text may hold the URL
        raise CameraEnded("the camera ended the stream")

    def _pieces(self, container: InputContainer) -> Iterator[_Piece]:
        """Packets as libavformat parses them: it also starts a new one at parameter sets inside a picture's data."""
        stream = container.streams.video[0]
        ticks = (stream.time_base or 0) * TICKS_PER_SECOND
        pending = b""
        for packet in container.demux(stream):
            data = h264.one_picture(pending + bytes(packet)) if pending else bytes(packet)
            pending = b""
            if not h264.has_slice(data):
                pending = data if len(data) < _LARGEST_PENDING else b""
                continue
            pts, dts = (None if moment is None else int(moment * ticks) for moment in (packet.pts, packet.dts))
            lasts = int((packet.duration or 0) * ticks) or TICKS_PER_SECOND // 25
            yield _Piece(data, pts, dts, lasts, packet.is_keyframe, self._monotonic())

    def close(self) -> None:
        """Leave the camera. Call it from the thread that reads."""
        if self._container is not None:
            self._container.close()
            self._container = None


def _opening_failure(error: Exception) -> LinkError | DeviceFault:
    if isinstance(error, av.error.HTTPUnauthorizedError | av.error.HTTPForbiddenError):
        return CameraRefused("the camera refused the account (user name or password)")
    if isinstance(error, av.error.HTTPNotFoundError):
        return CameraRefused("the camera has no stream at this path")
    if isinstance(error, av.error.HTTPClientError | av.error.HTTPServerError | av.error.HTTPError):
        return CameraRefused(f"the camera refused the stream ({_name(error)})")
    if isinstance(error, av.error.ExitError):
        return CameraUnreachable("the camera did not answer in time")
    if isinstance(error, ConnectionRefusedError):
        return CameraUnreachable("nothing listens at the camera's address")
    return CameraUnreachable(f"no stream from the camera ({_name(error)})")


def _name(error: Exception) -> str:
    return type(error).__name__.removesuffix("Error")


__all__ = [
    "CameraEnded",
    "CameraRefused",
    "CameraStalled",
    "CameraUnreachable",
    "ProtocolViolation",
    "RtspSource",
]
