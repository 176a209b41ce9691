"""The media half of a WebRTC session: ICE, DTLS and SRTP by aiortc, up to its packets; what follows there, jitter
buffer and decoder, has no part in a recording. Belongs to one event loop.

Besides the public classes, what aiortc's own connection does with them is done here too; the version is held to 1.16.
"""
# ruff: noqa: SLF001  # see above: the classes were made for it, their names were not

from __future__ import annotations

import asyncio
import contextlib
import secrets
import struct
from collections.abc import Callable, Mapping

from aiortc import (
    RTCCertificate,
    RTCDtlsFingerprint,
    RTCDtlsParameters,
    RTCDtlsTransport,
    RTCIceGatherer,
    RTCIceParameters,
    RTCIceTransport,
    RTCRtpCodecParameters,
)
from aiortc.rtcrtpparameters import RTCRtpReceiveParameters
from aiortc.rtcrtpreceiver import NackGenerator, StreamStatistics
from aiortc.rtp import (
    RTCP_PSFB_PLI,
    RTCP_RTPFB_NACK,
    AnyRtcpPacket,
    RtcpByePacket,
    RtcpPsfbPacket,
    RtcpReceiverInfo,
    RtcpRrPacket,
    RtcpRtpfbPacket,
    RtcpSrPacket,
    RtpPacket,
    unwrap_rtx,
)
from aiortc.sdp import candidate_from_sdp, candidate_to_sdp

from drivers.camera.depacketizer import Reordering
from drivers.camera.errors import CameraEnded, CameraUnreachable
from drivers.camera.whep_dialogue import Answered, Fingerprint, IceAccount, offer

_HEAD = struct.Struct("!BBHII")
_REPORT_SECONDS = 1.0
_KEYFRAME_SECONDS = 0.5
_FIRST_KEYFRAME_SECONDS = 0.2
"""So long a camera has to begin with one by itself, as most do."""
_GATHERING_SECONDS = 0.01
"""What comes within it is handed on together: a picture's packets, mostly."""
_CLOSING_SECONDS = 1.0
_VIDEO_CLOCK = 90_000


class WebRtcLine:
    """One session: `offer`, `connect`, then `receive` until it raises; `close` in the end, whatever came before."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._gatherer = RTCIceGatherer(iceServers=[])  # none but the two sides: nobody else hears of a site's cameras
        self._ice = RTCIceTransport(self._gatherer)
        self._dtls = RTCDtlsTransport(self._ice, [RTCCertificate.generateCertificate()])
        self._packets = _Packets(monotonic=monotonic)
        self._monotonic = monotonic
        self._ssrc = secrets.randbits(32)
        self._reported_at = 0.0
        self._asked_at = 0.0

    async def offer(self) -> str:
        """Our offer, with all our addresses.

        Raises:
            CameraUnreachable: this machine has none.
        """
        await self._gatherer.gather()
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
            with contextlib.suppress(ValueError):  # one address that makes no sense; another may
                await self._ice.addRemoteCandidate(candidate_from_sdp(candidate))
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
        self._packets.expect(answered.retransmits)
        self._dtls._register_rtp_receiver(self._packets, _receiving(answered))
        await self._dtls.start(RTCDtlsParameters(fingerprints=prints))
        if self._dtls.state != "connected":
            raise CameraUnreachable("the camera's WebRTC encryption cannot be agreed on (DTLS)")
        self._reported_at = self._monotonic()
        self._asked_at = self._reported_at - _KEYFRAME_SECONDS + _FIRST_KEYFRAME_SECONDS

    async def receive(self, seconds: float, *, wants_keyframe: bool) -> list[bytes | memoryview]:
        """The packets that come next, in order; none when `seconds` pass in silence.

        Raises:
            CameraEnded: the camera ended the session.
        """
        now = self._monotonic()
        if wants_keyframe and self._packets.media and now - self._asked_at >= _KEYFRAME_SECONDS:
            self._asked_at = now
            await self._send(RtcpPsfbPacket(fmt=RTCP_PSFB_PLI, ssrc=self._ssrc, media_ssrc=self._packets.media))
        try:
            async with asyncio.timeout(seconds):
                await self._packets.came.wait()
            await asyncio.sleep(_GATHERING_SECONDS)
        except TimeoutError:
            pass
        if missing := self._packets.missing():
            report = RtcpRtpfbPacket(fmt=RTCP_RTPFB_NACK, ssrc=self._ssrc, media_ssrc=self._packets.media)
            report.lost = missing
            await self._send(report)
        if now - self._reported_at >= _REPORT_SECONDS and (told := self._packets.report()) is not None:
            self._reported_at = now
            await self._send(RtcpRrPacket(ssrc=self._ssrc, reports=[told]))
        return self._packets.take()

    async def close(self) -> None:
        """Leave; the camera is told by DTLS."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_SECONDS):
                await self._dtls.stop()
                await self._ice.stop()

    async def _send(self, packet: AnyRtcpPacket) -> None:
        with contextlib.suppress(ConnectionError):  # whether the session is over, its packets tell
            await self._dtls._send_rtp(bytes(packet))


class _Packets:
    """Where the session's packets arrive; takes the place of aiortc's receiver."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._retransmits: Mapping[int, int] = {}
        self._order = Reordering()
        self._nack = NackGenerator()
        self._statistics: StreamStatistics | None = None
        self._ordered: list[bytes | memoryview] = []
        self._gone: list[int] = []
        self._sender_report = (0, 0.0)
        self._ended = False
        self.came = asyncio.Event()
        self.media = 0
        """The sender's number; 0 while nothing has come."""

    def expect(self, retransmits: Mapping[int, int]) -> None:
        """Which payload types repeat which."""
        self._retransmits = retransmits

    def take(self) -> list[bytes | memoryview]:
        """What has come, in order.

        Raises:
            CameraEnded: nothing more has, or will.
        """
        taken, self._ordered = self._ordered, []
        self.came.clear()
        if self._ended:
            self.came.set()
            if not taken:
                raise CameraEnded("the camera ended the stream")
        return taken

    def missing(self) -> list[int]:
        """Packets to ask for again; each once."""
        gone, self._gone = self._gone, []
        return [number for number in gone if number in self._nack.missing]

    def report(self) -> RtcpReceiverInfo | None:
        """What a receiver's report says (RFC 3550, 6.4.2)."""
        stream = self._statistics
        if stream is None or stream.max_seq is None:
            return None
        told, heard_at = self._sender_report
        return RtcpReceiverInfo(
            ssrc=self.media,
            fraction_lost=stream.fraction_lost,
            packets_lost=stream.packets_lost,
            highest_sequence=stream.max_seq,
            jitter=stream.jitter,
            lsr=told,
            dlsr=int((self._monotonic() - heard_at) * 65536) & 0xFFFFFFFF if told else 0,
        )

    async def _handle_rtp_packet(self, packet: RtpPacket, arrival_time_ms: int) -> None:  # noqa: ARG002  # aiortc's own
        repeated = self._retransmits.get(packet.payload_type)
        if repeated is not None:
            if len(packet.payload) < 2 or not self.media:
                return
            packet = unwrap_rtx(packet, payload_type=repeated, ssrc=self.media)
        elif packet.ssrc != self.media or self._statistics is None:
            self.media = packet.ssrc
            self._order, self._nack = Reordering(), NackGenerator()
            self._statistics = StreamStatistics(_VIDEO_CLOCK)
        if repeated is None and self._statistics is not None:
            self._statistics.add(packet)
        known = set(self._nack.missing)
        if self._nack.add(packet):
            self._gone += sorted(self._nack.missing - known)
        head = _HEAD.pack(
            0x80,
            packet.marker << 7 | packet.payload_type,
            packet.sequence_number,
            packet.timestamp,
            packet.ssrc,
        )
        self._ordered += self._order.push(head + packet.payload, self._monotonic())
        if self._ordered or self._gone:
            self.came.set()

    async def _handle_rtcp_packet(self, packet: AnyRtcpPacket) -> None:
        if isinstance(packet, RtcpSrPacket):
            self._sender_report = (packet.sender_info.ntp_timestamp >> 16 & 0xFFFFFFFF, self._monotonic())
        elif isinstance(packet, RtcpByePacket):
            self._handle_disconnect()

    def _handle_disconnect(self) -> None:
        self._ended = True
        self.came.set()


def _receiving(answered: Answered) -> RTCRtpReceiveParameters:
    """By payload types alone: that is all that the packets' way to their receiver is found by."""
    numbers = [*answered.encodings, *answered.retransmits]
    return RTCRtpReceiveParameters(
        codecs=[
            RTCRtpCodecParameters(mimeType="video/any", clockRate=_VIDEO_CLOCK, payloadType=number)
            for number in numbers
        ]
    )
