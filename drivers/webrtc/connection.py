"""The media half of a WebRTC session: ICE, DTLS and SRTP by aiortc, up to its packets. Belongs to one event loop.

aiortc's jitter buffer and decoder are not used, because a recording needs neither. So this module does with aiortc's
transports what aiortc's own peer connection does, private attributes included. Its version is pinned to 1.16 for that.
"""
# ruff: noqa: SLF001  # see above: private attributes of aiortc's transports are needed

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
from drivers.webrtc.check_limits import limit_checks
from drivers.webrtc.whep_dialogue import Fingerprint, IceAccount, WhepAnswer, offer

_RECEIVE_BUFFER = 2_097_152
"""Bytes of the sockets' receive buffers: a keyframe comes in one burst of perhaps hundreds of packets."""
_REPORT_SECONDS = 1.0
_KEYFRAME_SECONDS = 0.5
_LONGEST_KEYFRAME_SECONDS = 8.0
"""The longest pause between two requests for a keyframe. Pauses double, because each keyframe is a burst of packets
on a network that may be losing packets because it is full."""
_FIRST_KEYFRAME_SECONDS = 0.2
"""The time for a camera to begin with a keyframe by itself, as most do, before one is requested."""
_GATHERING_SECONDS = 0.01
"""Packets that come within this time are returned together: mostly those of one picture."""
_CLOSING_SECONDS = 1.0
_RESOLVING_SECONDS = 2.0
_MEDIA = range(128, 192)
"""First bytes of RTP and RTCP packets; STUN and DTLS have others (RFC 7983)."""


class WebRtcLine:
    """One session: call `offer`, `connect`, `receive` until it raises, and in any case `close`."""

    def __init__(self, *, monotonic: Callable[[], float], local: tuple[str, ...] = ()) -> None:
        """Prepare a session. `local`: loopback addresses to offer too, for a camera on this machine."""
        limit_checks()
        self._local = local
        self._gatherer = RTCIceGatherer(iceServers=[])  # no STUN servers: no third party learns of a site's cameras
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
        """Return the offer (SDP), with all addresses of this machine.

        Raises:
            CameraUnreachable: this machine has no network address.
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

    async def connect(self, answered: WhepAnswer) -> None:
        """Connect to one of the camera's addresses (ICE) and agree on keys (DTLS).

        Raises:
            CameraUnreachable: none of the addresses answers, or the DTLS handshake fails.
        """
        self._ice._connection.ice_controlling = True
        self._dtls._set_role("server" if answered.calls else "client")
        for candidate in answered.candidates:
            for resolved in await _resolved(candidate):
                with contextlib.suppress(ValueError):  # skip an invalid address; another may be valid
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
        """Wait for the next packets and return them in order; none when `seconds` pass in silence.

        While `wants_keyframe`, the camera is asked for a keyframe again and again.

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
        """Notify the camera by DTLS and close the connection, within 1 s."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._dtls.stop()
                await self._ice.stop()

    async def _send(self, packet: AnyRtcpPacket) -> None:
        with contextlib.suppress(ConnectionError):  # the end of the session is noticed where packets arrive
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
        """Take media datagrams where they arrive, because aiortc's own queues would cost several times as much."""
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
        except (SrtpError, ValueError):  # a packet with a wrong key, a repeated or an invalid one
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
    """Return the candidate with its host name resolved, once for each address; empty when that fails."""
    fields = candidate.split(" ")
    host = fields[4]
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return [candidate]
    if host.lower().endswith(".local"):  # the library resolves these names by multicast DNS
        return [candidate]
    try:
        async with asyncio.timeout(_RESOLVING_SECONDS):
            found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_DGRAM)
    except (OSError, TimeoutError, UnicodeError):
        return []
    addresses = dict.fromkeys(str(each[4][0]) for each in found)
    return [" ".join([*fields[:4], address, *fields[5:]]) for address in addresses]
