"""The media half of a WebRTC session: ICE, DTLS and SRTP by aiortc, up to its packets; what follows there, jitter
buffer and decoder, has no part in a recording. Belongs to one event loop.

Besides the public classes, what aiortc's own connection does with them is done here too; the version is held to 1.16.
"""
# ruff: noqa: SLF001  # see above: the classes were made for it, their names were not

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import secrets
import socket
from collections.abc import Callable
from typing import Any

from aioice import Candidate
from aiortc import (
    RTCCertificate,
    RTCDtlsFingerprint,
    RTCDtlsParameters,
    RTCDtlsTransport,
    RTCIceGatherer,
    RTCIceParameters,
    RTCIceTransport,
)
from aiortc.rtp import (
    RTCP_PSFB_PLI,
    RTCP_RTPFB_NACK,
    AnyRtcpPacket,
    RtcpByePacket,
    RtcpPacket,
    RtcpPsfbPacket,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtcpRtpfbPacket,
    RtcpSrPacket,
    is_rtcp,
)
from aiortc.sdp import candidate_from_sdp, candidate_to_sdp
from pylibsrtp import Error as SrtpError

from drivers.rtsp.errors import CameraEnded, CameraUnreachable
from drivers.rtsp.rtp_reception import RtpReception
from drivers.webrtc.whep_dialogue import Answered, Fingerprint, IceAccount, offer

_RECEIVE_BUFFER = 2_097_152
"""A keyframe comes at once, and may be hundreds of packets."""
_REPORT_SECONDS = 1.0
_KEYFRAME_SECONDS = 0.5
_LONGEST_KEYFRAME_SECONDS = 8.0
"""Between two requests for a keyframe, as long as none comes through: each one more is a burst on a network that may
be losing packets for being full."""
_FIRST_KEYFRAME_SECONDS = 0.2
"""So long a camera has to begin with one by itself, as most do."""
_GATHERING_SECONDS = 0.01
"""What comes within it is handed on together: a picture's packets, mostly."""
_CLOSING_SECONDS = 1.0
_RESOLVING_SECONDS = 2.0
_MEDIA = range(128, 192)
"""The first byte of what is neither STUN nor DTLS (RFC 7983)."""


class WebRtcLine:
    """One session: `offer`, `connect`, then `receive` until it raises; `close` in the end, whatever came before."""

    def __init__(self, *, monotonic: Callable[[], float], local: tuple[str, ...] = ()) -> None:
        """`local`: loopback addresses to use too, for a camera on this machine; the library leaves them out."""
        self._local = local
        self._gatherer = RTCIceGatherer(iceServers=[])  # none but the two sides: nobody else hears of a site's cameras
        self._ice = RTCIceTransport(self._gatherer)
        self._dtls = RTCDtlsTransport(self._ice, [RTCCertificate.generateCertificate()])
        self._packets = RtpReception(payload_types=())
        self._came = asyncio.Event()
        self._ended = False
        self._sender_report = (0, 0.0)
        self._monotonic = monotonic
        self._ssrc = secrets.randbits(32)
        self._reported_at = 0.0
        self._asked_at = 0.0
        self._ask_again_seconds = _KEYFRAME_SECONDS

    async def offer(self) -> str:
        """Make the offer, with all addresses of this end.

        Raises:
            CameraUnreachable: this machine has none.
        """
        connection = self._gatherer._connection
        gather = connection.get_component_candidates

        async def gather_local(component: int, addresses: list[str], timeout: int = 5) -> list[Candidate]:
            return await gather(component=component, addresses=[*addresses, *self._local], timeout=timeout)

        connection.get_component_candidates = gather_local  # type: ignore[method-assign]
        await self._gatherer.gather()
        for protocol in self._ice._connection._protocols:
            own = protocol.transport.get_extra_info("socket")
            own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        candidates = [candidate_to_sdp(each) for each in self._gatherer.getLocalCandidates()]
        if not candidates:
            raise CameraUnreachable("this machine has no network address for WebRTC")
        ours = self._gatherer.getLocalParameters()
        prints = [Fingerprint(each.algorithm, each.value) for each in self._dtls.getLocalParameters().fingerprints]
        return offer(
            ice=IceAccount(ours.usernameFragment or "", ours.password or ""),
            fingerprints=prints,
            candidates=candidates,
            session=secrets.randbits(62),
        )

    async def connect(self, answered: Answered) -> None:
        """Find a way to the camera and agree on keys.

        Raises:
            CameraUnreachable: there is none, or they do not agree.
        """
        self._ice._connection.ice_controlling = True
        self._dtls._set_role("server" if answered.calls else "client")
        for candidate in answered.candidates:
            for resolved in await _resolved(candidate):
                with contextlib.suppress(ValueError):  # one address that makes no sense; another may
                    await self._ice.addRemoteCandidate(candidate_from_sdp(resolved))
        await self._ice.addRemoteCandidate(None)
        await self._ice.start(
            RTCIceParameters(
                usernameFragment=answered.ice.user, password=answered.ice.password, iceLite=answered.is_lite
            )
        )
        if self._ice.state != "completed":
            raise CameraUnreachable(
                f"none of the {len(answered.candidates)} addresses that the camera gave for WebRTC answers: "
                "its UDP ports must be open to this machine"
            )
        prints = [RTCDtlsFingerprint(each.algorithm, each.value) for each in answered.fingerprints]
        self._packets = RtpReception(payload_types=[*answered.encodings], retransmits=answered.retransmits)
        self._dtls.on("statechange", self._state_changed)
        await self._dtls.start(RTCDtlsParameters(fingerprints=prints))
        if self._dtls.state != "connected":
            raise CameraUnreachable("the camera's WebRTC encryption cannot be agreed on (DTLS)")
        for protocol in self._ice._connection._protocols:
            self._take_from(protocol)
        self._reported_at = self._monotonic()
        self._asked_at = self._reported_at - _KEYFRAME_SECONDS + _FIRST_KEYFRAME_SECONDS

    async def receive(self, seconds: float, *, wants_keyframe: bool) -> list[bytes | memoryview]:
        """Wait for the next packets, in order; none when `seconds` pass in silence.

        Raises:
            CameraEnded: the camera ended the session.
        """
        await self._ask_for_keyframe(wanted=wants_keyframe)
        try:
            async with asyncio.timeout(seconds):
                await self._came.wait()
            await asyncio.sleep(_GATHERING_SECONDS)
        except TimeoutError:
            pass
        self._came.clear()
        now = self._monotonic()
        if missing := self._packets.missing(now):
            request = RtcpRtpfbPacket(fmt=RTCP_RTPFB_NACK, ssrc=self._ssrc, media_ssrc=self._packets.sender)
            request.lost = missing
            await self._send(request)
        if now - self._reported_at >= _REPORT_SECONDS:
            self._reported_at = now
            await self._report(now)
        packets = self._packets.take()
        if self._ended:
            self._came.set()
            if not packets:
                raise CameraEnded("the camera ended the stream")
        return packets

    async def close(self) -> None:
        """Close the connection and notify the camera by DTLS."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._dtls.stop()
                await self._ice.stop()

    async def _send(self, packet: AnyRtcpPacket) -> None:
        with contextlib.suppress(ConnectionError):  # whether the session is over, its packets tell
            await self._dtls._send_rtp(bytes(packet))

    async def _ask_for_keyframe(self, *, wanted: bool) -> None:
        now = self._monotonic()
        if not wanted:
            self._ask_again_seconds = _KEYFRAME_SECONDS
        elif self._packets.sender and now - self._asked_at >= self._ask_again_seconds:
            self._asked_at = now
            self._ask_again_seconds = min(_LONGEST_KEYFRAME_SECONDS, 2 * self._ask_again_seconds)
            await self._send(RtcpPsfbPacket(fmt=RTCP_PSFB_PLI, ssrc=self._ssrc, media_ssrc=self._packets.sender))

    async def _report(self, now: float) -> None:
        figures = self._packets.report()
        if figures is None:
            return
        clock, received_at = self._sender_report
        report = RtcpReceiverInfo(
            ssrc=self._packets.sender,
            fraction_lost=figures.fraction,
            packets_lost=figures.lost,
            highest_sequence=figures.highest,
            jitter=figures.jitter,
            lsr=clock,
            dlsr=int((now - received_at) * 65536) & 0xFFFFFFFF if clock else 0,
        )
        await self._send(RtcpRrPacket(ssrc=self._ssrc, reports=[report]))

    def _take_from(self, protocol: Any) -> None:
        """Take media where its datagrams arrive: the way through aiortc's queues would cost several times as much."""
        others = protocol.datagram_received

        def received(data: bytes, address: tuple[Any, ...]) -> None:
            if data and data[0] in _MEDIA:
                self._take(data)
            else:
                others(data, address)

        protocol.datagram_received = received

    def _take(self, data: bytes) -> None:
        keys = self._dtls._rx_srtp
        try:
            if is_rtcp(data):
                for packet in RtcpPacket.parse(keys.unprotect_rtcp(data)):
                    self._heed(packet)
                return
            self._packets.push(keys.unprotect(data), self._monotonic())
        except (SrtpError, ValueError):  # a stranger's, a repetition, or rubbish
            return
        self._came.set()

    def _heed(self, packet: AnyRtcpPacket) -> None:
        if isinstance(packet, RtcpSrPacket):
            self._sender_report = (packet.sender_info.ntp_timestamp >> 16 & 0xFFFFFFFF, self._monotonic())
        elif isinstance(packet, RtcpByePacket) and self._packets.sender in packet.sources:
            self._end()

    def _state_changed(self) -> None:
        if self._dtls.state in ("closed", "failed"):
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._came.set()


async def _resolved(candidate: str) -> list[str]:
    """Resolve the candidate's host: one candidate for each address of a host given by its name."""
    fields = candidate.split(" ")
    host = fields[4]
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return [candidate]
    if host.lower().endswith(".local"):  # by multicast DNS, which the library does itself
        return [candidate]
    try:
        async with asyncio.timeout(_RESOLVING_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, TimeoutError, UnicodeError):
        return []
    addresses = dict.fromkeys(str(each[4][0]) for each in found)
    return [" ".join([*fields[:4], address, *fields[5:]]) for address in addresses]
