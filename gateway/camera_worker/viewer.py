"""One viewer over WebRTC: it gets the pictures as the camera encoded them.

Importing this module takes about 20 MB of memory, so it is imported only when a viewer comes.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Self
from weakref import WeakKeyDictionary

import aioice.ice
import structlog
from aiortc import RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.exceptions import InvalidStateError, OperationError
from aiortc.sdp import candidate_from_sdp

from drivers.rtsp.frames import TICKS_PER_SECOND, EncodedFrame, VideoCodec
from drivers.rtsp.packetizer import payloads
from drivers.webrtc.check_limits import is_at, limit_checks, without_candidates
from drivers.webrtc.outgoing_rtp import PicturePayloads
from drivers.webrtc.picture_sender import LARGEST_PAYLOAD, PictureSender
from gateway.camera_worker.live_feed import LiveView
from gateway.camera_worker.sdp import SdpRefused, Trickle

log = structlog.get_logger(__name__)

_CATCH_UP_TICKS = TICKS_PER_SECOND // 1_000
_LONGEST_STEP_TICKS = TICKS_PER_SECOND

CONNECT_SECONDS = 15.0
_BYTES_PER_SECOND = 16_000_000
"""The pace of a picture's bursts, so that a large picture does not overrun the buffers on its way."""
_CATCH_UP_BYTES_PER_SECOND = 5_000_000
_RESTART_SECONDS = 0.5
_CLOSE_SECONDS = 1.0
_HOST_ADDRESSES = aioice.ice.get_host_addresses
# A viewer whose machine or network vanished must free its place within 10 s (RFC 7675). One check takes at most
# 1.2 + 0.5 s. With the library's defaults it would take half a minute, and they can only be changed here.
aioice.ice.CONSENT_INTERVAL, aioice.ice.CONSENT_FAILURES = 1, 5


class ViewTimes:
    """The times of one viewer's frames, in ticks.

    A frame keeps its distance to the frame before. After a jump or a restart, the distance is that of the arrivals.
    Older pictures that are sent to catch up are a millisecond apart. So the viewer decodes them at once and goes on
    live, instead of staying behind by a group of pictures.
    """

    def __init__(self) -> None:
        self._at = 0
        self._before: EncodedFrame | None = None

    def time(self, frame: EncodedFrame, *, behind: bool) -> int:
        """Return the frame's time in ticks since the viewer's first frame. It always grows.

        `behind` is True for a picture that is sent to catch up.
        """
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


def offer_addresses(addresses: tuple[str, ...]) -> None:
    """Offer viewers of this process only these addresses of the machine.

    The library has no setting for this, so a function of it is replaced. Cameras that are read by WebRTC may be on any
    of the machine's networks. They are read in other threads, for which nothing changes.
    """
    viewers = threading.main_thread()

    def offered(use_ipv4: bool, use_ipv6: bool) -> list[str]:  # noqa: FBT001  # the library's own signature
        if threading.current_thread() is viewers:
            return list(addresses)
        return _HOST_ADDRESSES(use_ipv4, use_ipv6)

    aioice.ice.get_host_addresses = offered


_PACKETIZED: WeakKeyDictionary[EncodedFrame, PicturePayloads] = WeakKeyDictionary()
"""The payloads of frames that are still kept. Viewers who get the same frame share them."""


def _payloads(frame: EncodedFrame) -> PicturePayloads:
    """Return the payloads of a frame's packets."""
    found = _PACKETIZED.get(frame)
    if found is None:
        found = _PACKETIZED[frame] = PicturePayloads.of(payloads(frame, largest=LARGEST_PAYLOAD))
    return found


class Viewer:
    """A WebRTC connection to one viewer, closed at the end of its context. Call `answer` once, then `run`.

    Of the candidates that a viewer names, only those at its own `address` are checked: others may be anybody's. A
    viewer that has further addresses is reached by its own checks, which come from them.
    """

    def __init__(self, *, camera_id: int, view: LiveView, address: str) -> None:
        limit_checks()
        self._camera_id = camera_id
        self._address = address
        # with no list given, the library would ask a STUN server on the Internet
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        transceiver = self._connection.addTransceiver("video", "sendonly")
        h264 = [codec for codec in RTCRtpSender.getCapabilities("video").codecs if codec.mimeType != "video/VP8"]
        transceiver.setCodecPreferences(h264)
        self._sender = PictureSender(replaces=transceiver.sender, keyframe_wanted=self._begin_again)
        self._view = view
        self._restarted_at = 0.0
        self._changed = asyncio.Event()
        self._connection.on("connectionstatechange", self._changed.set)
        self.connected = False
        """True once the viewer was reached."""
        self._left = self._ended = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        async with asyncio.timeout(_CLOSE_SECONDS):
            await self._connection.close()

    async def answer(self, offer: str) -> str:
        """Return the answer to an offer, with all of the gateway's candidates. Raises SdpRefused."""
        asked, candidates = without_candidates(offer)
        try:
            await self._connection.setRemoteDescription(RTCSessionDescription(asked, "offer"))
            await self._connection.setLocalDescription(await self._connection.createAnswer())
        except (OperationError, InvalidStateError) as error:
            raise SdpRefused(f"the offer cannot be answered: {error}") from error
        except (ValueError, KeyError, IndexError, AssertionError, AttributeError, TypeError) as error:
            # the library parses SDP without checks, so any of these errors means an invalid offer
            raise SdpRefused("the offer makes no sense") from error
        await self._add(candidates)
        return self._connection.localDescription.sdp

    async def add(self, trickle: Trickle) -> None:
        """Add more of the viewer's candidates. Raises SdpRefused."""
        await self._add(trickle.candidates)

    async def _add(self, candidates: Iterable[tuple[str, str]]) -> None:
        for mid, text in candidates:
            if not is_at(text, self._address):
                continue
            try:
                candidate = candidate_from_sdp(text)
                if mid:
                    candidate.sdpMid = mid
                else:
                    candidate.sdpMLineIndex = 0
                await self._connection.addIceCandidate(candidate)
            except (ValueError, AssertionError) as error:
                raise SdpRefused("a candidate makes no sense") from error

    async def run(self) -> str:
        """Serve the viewer until it leaves, is lost or never reached, or the pictures end; return the reason."""
        async with asyncio.TaskGroup() as tasks:
            showing = tasks.create_task(self._show(), name=f"pictures of camera {self._camera_id}")
            why = await self._end()
            showing.cancel()
        return why

    async def _show(self) -> None:
        """Send the view's pictures until they end, or one is not H.264."""
        times = ViewTimes()
        await self._sender.started.wait()
        try:
            while (picture := await self._view.next()) and picture.frame.codec is VideoCodec.H264:
                await self._sender.send(
                    _payloads(picture.frame),
                    time=times.time(picture.frame, behind=picture.behind),
                    bytes_per_second=_CATCH_UP_BYTES_PER_SECOND if picture.behind else _BYTES_PER_SECOND,
                )
        except ConnectionError:  # the connection's state tells why
            return
        self._ended = True
        self._changed.set()

    async def _end(self) -> str:
        """Wait for the end; return the reason."""
        deadline = asyncio.get_running_loop().time() + CONNECT_SECONDS
        while True:
            state = self._connection.connectionState
            self.connected = self.connected or state == "connected"
            if self._left:
                return "it left"
            if self._ended:
                return "the camera's pictures ended, or cannot be shown live any more"
            if state in ("failed", "closed"):
                return "it went away" if self.connected else self._unreached()
            self._changed.clear()
            try:
                async with asyncio.timeout_at(None if self.connected else deadline):
                    await self._changed.wait()
            except TimeoutError:
                return self._unreached()

    def leave(self) -> None:
        """End the session at the viewer's request."""
        self._left = True
        self._changed.set()

    def _begin_again(self) -> None:
        """Restart at the newest keyframe, because the viewer lost pictures and asked for one. At most every 0.5 s."""
        now = asyncio.get_running_loop().time()
        if now - self._restarted_at >= _RESTART_SECONDS:
            self._restarted_at = now
            self._view.restart()

    def _unreached(self) -> str:
        """Return why there is no connection, and what to do, for people."""
        offered = [
            line.split()[4] + ":" + line.split()[5]
            for line in self._connection.localDescription.sdp.splitlines()
            if line.startswith("a=candidate:")
        ]
        where = ", ".join(sorted(set(offered))) or "any address"
        return (
            f"no UDP came through to {where} in {CONNECT_SECONDS:g} s: let UDP of viewers through to the gateway, "
            "or name an address that they reach in [live] addresses"
        )
