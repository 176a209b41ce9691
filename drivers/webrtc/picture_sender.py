"""The pictures of one viewer on their way: RTP over aiortc's ICE, DTLS and SRTP, in the place of aiortc's own sender.

aiortc's sender makes objects for each packet and sends it by itself, which costs several times as much as recording it.
So this module does with aiortc's transports what aiortc's sender does, private attributes included. Its version is
pinned to 1.16 for that.
"""
# ruff: noqa: SLF001  # see above: private attributes of aiortc's sender and transports are needed

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from aiortc import RTCRtpSender, clock
from aiortc.rtcrtpparameters import RTCRtpSendParameters
from aiortc.rtp import (
    RTCP_PSFB_FIR,
    RTCP_PSFB_PLI,
    RTCP_RTPFB_NACK,
    AnyRtcpPacket,
    HeaderExtensions,
    HeaderExtensionsMap,
    RtcpByePacket,
    RtcpPsfbPacket,
    RtcpRtpfbPacket,
    RtcpSdesPacket,
    RtcpSenderInfo,
    RtcpSourceInfo,
    RtcpSrPacket,
)

from drivers.webrtc.datagrams import DatagramSocket, SrtpRun
from drivers.webrtc.outgoing_rtp import OutgoingRtp, PicturePayloads

LARGEST_PAYLOAD = 1_300
"""Bytes of payload that pass every network that carries video, with all headers."""
_LONGEST_MID = 16
"""A longer name of the media section has no place in a packet; the viewer knows the stream by its SSRC too."""
_CNAME = 1
_BURST_SECONDS = 0.005
"""Lead that a sender may have over its pace: timers for less would cost more than they smooth."""
_RUN = SrtpRun(size=65_000)
"""The memory of all senders, since a run is sent as soon as it is encrypted. They belong to one event loop."""
_REPORT_SECONDS = 1.0


class PictureSender:
    """The sender of one stream of pictures. aiortc starts and stops it with its peer connection."""

    def __init__(self, *, replaces: RTCRtpSender, keyframe_wanted: Callable[[], None]) -> None:
        """Take the place of aiortc's sender. `keyframe_wanted` is called when the viewer asks for a keyframe."""
        self.started = asyncio.Event()
        """Set when pictures can be sent."""
        self._replaced = replaces
        self._keyframe_wanted = keyframe_wanted
        self._dtls: Any = None
        self._rtp: OutgoingRtp | None = None
        self._cname = ""
        self._protocol: Any = None
        self._socket: DatagramSocket | None = None
        self._free_at = self._report_at = 0.0
        replaces.send = self._start  # type: ignore[method-assign]
        replaces.stop = self._stop  # type: ignore[method-assign]
        replaces._handle_rtcp_packet = self._heed  # type: ignore[method-assign]

    async def send(self, picture: PicturePayloads, *, time: int, bytes_per_second: float) -> None:
        """Send a picture, run by run.

        Args:
            picture: the picture.
            time: its time in ticks, counted from any origin.
            bytes_per_second: the largest rate on average.

        Raises:
            ConnectionError: there is no connection, or none any more.
        """
        rtp = self._rtp
        if rtp is None:
            raise ConnectionError("the viewer is not connected")
        loop = asyncio.get_running_loop()
        sent = rtp.number(picture, time=time)
        for begin, end in picture.runs:
            if (wait := self._free_at - loop.time()) > _BURST_SECONDS:
                await asyncio.sleep(wait)
            octets = self._put(rtp.packets(sent, begin, end))
            self._free_at = max(self._free_at, loop.time()) + octets / bytes_per_second
        if loop.time() >= self._report_at:
            self._report_at = loop.time() + _REPORT_SECONDS
            await self._report(rtp)

    async def _start(self, parameters: RTCRtpSendParameters) -> None:
        self._dtls = self._replaced.transport
        self._dtls._register_rtp_sender(self._replaced, parameters)
        extensions = HeaderExtensionsMap()
        extensions.configure(parameters)
        mid = parameters.muxId if len(parameters.muxId) <= _LONGEST_MID else None
        self._cname = parameters.rtcp.cname or ""
        codec = parameters.codecs[0]
        resent = [
            each.payloadType
            for each in parameters.codecs
            if each.name.lower() == "rtx" and each.parameters.get("apt") == codec.payloadType
        ]
        self._rtp = OutgoingRtp(
            ssrc=self._replaced._ssrc,
            payload_type=codec.payloadType or 0,
            resent_ssrc=self._replaced._rtx_ssrc,
            resent_payload_type=resent[0] if resent else None,
            extensions=extensions.set(HeaderExtensions(mid=mid)),
        )
        self.started.set()

    async def _stop(self) -> None:
        if self._rtp is not None:
            self._rtp = None
            self._dtls._unregister_rtp_sender(self._replaced)
            await self._send_rtcp(RtcpByePacket(sources=[self._replaced._ssrc]))
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def _heed(self, packet: AnyRtcpPacket) -> None:
        """Take one of the viewer's RTCP packets."""
        if isinstance(packet, RtcpRtpfbPacket) and packet.fmt == RTCP_RTPFB_NACK and self._rtp is not None:
            for again in self._rtp.again(packet.lost):
                self._put([again])
        elif isinstance(packet, RtcpPsfbPacket) and packet.fmt in (RTCP_PSFB_FIR, RTCP_PSFB_PLI):
            self._keyframe_wanted()

    def _put(self, packets: Sequence[bytes]) -> int:
        """Encrypt and send a run of packets: equal ones, of which the last may be smaller. Return their bytes.

        Raises:
            ConnectionError: there is no connection any more.
        """
        pair = self._dtls.transport._connection._nominated.get(1)
        if pair is None or self._dtls.state != "connected":
            raise ConnectionError("the viewer is not connected any more")
        data, size = _RUN.encrypt(packets, self._dtls._tx_srtp)
        self._socket_of(pair.protocol).send(data, size=size, address=pair.remote_addr)
        return len(data)

    def _socket_of(self, protocol: Any) -> DatagramSocket:
        """Return a second handle of the socket that the ICE connection uses now."""
        if self._socket is None or protocol is not self._protocol:
            if self._socket is not None:
                self._socket.close()
            try:
                self._socket = DatagramSocket(protocol.transport.get_extra_info("socket").dup())
            except OSError as error:
                raise ConnectionError("the viewer's socket is closed") from error
            self._protocol = protocol
        return self._socket

    async def _report(self, rtp: OutgoingRtp) -> None:
        figures = RtcpSenderInfo(
            ntp_timestamp=clock.current_ntp_time(),
            rtp_timestamp=rtp.timestamp,
            packet_count=rtp.packets_sent & 0xFFFFFFFF,
            octet_count=rtp.octets_sent & 0xFFFFFFFF,
        )
        name = RtcpSourceInfo(ssrc=self._replaced._ssrc, items=[(_CNAME, self._cname.encode())])
        await self._send_rtcp(
            RtcpSrPacket(ssrc=self._replaced._ssrc, sender_info=figures), RtcpSdesPacket(chunks=[name])
        )

    async def _send_rtcp(self, *packets: AnyRtcpPacket) -> None:
        with contextlib.suppress(ConnectionError):  # the end of the session is noticed by its state
            await self._dtls._send_rtp(b"".join(map(bytes, packets)))
