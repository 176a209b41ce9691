"""The pictures of one viewer on their way: RTP over aiortc's ICE, DTLS and SRTP, in the place of aiortc's own sender.

aiortc's sender makes objects for each packet and sends it by itself, which costs several times as much as recording it.
So this module does with aiortc's transports what aiortc's sender does, private attributes included. Its version is
pinned to 1.16 for that.

pylibsrtp's own call makes several objects for each packet, which costs as much as the encryption. So its binding of
libsrtp is called directly. Linux cuts what it is sent into datagrams (UDP generic segmentation offload).
"""
# ruff: noqa: SLF001  # see above: private attributes of aiortc's sender and transports, and of pylibsrtp, are needed

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import struct
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
from pylibsrtp import Session
from pylibsrtp._binding import ffi, lib  # type: ignore[import-not-found]  # a compiled module

from drivers.webrtc.outgoing_rtp import OutgoingRtp, PicturePayloads

LARGEST_TRAILER = 16 + 128
"""The bytes that libsrtp may write behind a packet (SRTP_MAX_TRAILER_LEN)."""
_UDP_SEGMENT = 103
"""Option of udp(7): the size of the datagrams into which a larger one is cut. Python does not name it."""
_SEGMENT_SIZE = struct.Struct("=H")
_REFUSALS = frozenset({errno.EIO, errno.EINVAL, errno.EMSGSIZE, errno.ENOPROTOOPT, errno.EOPNOTSUPP})
"""Errors for data that the kernel or the network device cannot cut to size."""


class SrtpRun:
    """The memory for a run of encrypted packets. Each run replaces the one before."""

    def __init__(self, *, size: int) -> None:
        """Reserve `size` bytes for the packets of a run."""
        self._memory = ffi.new("unsigned char[]", size + LARGEST_TRAILER)
        self._view = memoryview(ffi.buffer(self._memory))
        self._length = ffi.new("int *")

    def encrypt(self, packets: Sequence[bytes], session: Session) -> tuple[memoryview, int]:
        """Return the packets encrypted, and the size of the first. Raises ValueError for invalid packets."""
        view, memory, length, handle, protect = (
            self._view,
            self._memory,
            self._length,
            session._srtp[0],
            lib.srtp_protect,
        )
        at, size, room = 0, 0, len(view) - LARGEST_TRAILER
        for packet in packets:
            end = at + len(packet)
            if end > room:
                raise ValueError("the packets are too large for one run")
            view[at:end] = packet
            length[0] = end - at
            if status := protect(handle, memory + at, length):
                raise ValueError(f"a packet cannot be encrypted: status {status} of libsrtp")
            size = size or length[0]
            at += length[0]
        return view[:at], size


class DatagramSocket:
    """A non-blocking UDP socket of its own, which it closes at the end.

    Datagrams that cannot be sent now, because the network is full or the address is out of reach, are lost.
    """

    def __init__(self, own: socket.socket) -> None:
        self._socket = own
        self.cuts = _can_cut(own)
        """True while the kernel cuts data to size."""

    def send(self, data: memoryview, *, size: int, address: tuple[str, int]) -> None:
        """Send data in datagrams of `size` bytes, of which the last may be smaller.

        The kernel takes at most 64 of them at once, and together at most 65,000 bytes.
        """
        if self.cuts and len(data) > size:
            try:
                self._socket.sendmsg(
                    (data,), ((socket.IPPROTO_UDP, _UDP_SEGMENT, _SEGMENT_SIZE.pack(size)),), 0, address
                )
            except OSError as error:
                self.cuts = error.errno not in _REFUSALS
            if self.cuts:
                return
        for at in range(0, len(data), size):
            with contextlib.suppress(OSError):  # lost: see above
                self._socket.sendto(data[at : at + size], address)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def _can_cut(own: socket.socket) -> bool:
    try:
        own.getsockopt(socket.IPPROTO_UDP, _UDP_SEGMENT)
    except OSError:  # before Linux 4.18, which would send what it must cut as one large datagram
        return False
    return True


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
