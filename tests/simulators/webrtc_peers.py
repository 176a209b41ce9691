"""Things that happen to peers of WebRTC, and that aiortc has no public way for; its pin is exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from aiortc import RTCPeerConnection
from aiortc.rtp import AnyRtcpPacket, RtcpPacket, RtpPacket


@dataclass
class Heard:
    """The packets and reports that reach a watching peer, and the losses on the way."""

    packets: list[RtpPacket] = field(default_factory=list)
    reports: list[AnyRtcpPacket] = field(default_factory=list)
    lost: list[RtpPacket] = field(default_factory=list)


def listen(peer: RTCPeerConnection, *, loses: Callable[[RtpPacket], bool] = lambda _packet: False) -> Heard:
    """Listen to what reaches a peer before it connects; a packet that `loses` names does not reach it."""
    heard = Heard()
    transport = peer.getReceivers()[0].transport
    take, take_report = transport._handle_rtp_data, transport._handle_rtcp_data

    async def took(data: bytes, arrival_time_ms: int) -> None:
        packet = RtpPacket.parse(data)
        if loses(packet):
            heard.lost.append(packet)
            return
        heard.packets.append(packet)
        await take(data, arrival_time_ms=arrival_time_ms)

    async def took_report(data: bytes) -> None:
        heard.reports += RtcpPacket.parse(data)
        await take_report(data)

    transport._handle_rtp_data, transport._handle_rtcp_data = took, took_report
    return heard


def vanish(peer: RTCPeerConnection) -> None:
    """Switch the peer's machine off: nobody says good-bye."""
    for transceiver in peer.getTransceivers():
        for protocol in transceiver.sender.transport.transport._connection._protocols:
            protocol.transport.abort()


async def ask_for_keyframe(peer: RTCPeerConnection) -> None:
    """Ask as a viewer does that lost a picture."""
    receiver = peer.getReceivers()[0]
    (source,) = receiver._RTCRtpReceiver__remote_streams
    await receiver._send_rtcp_pli(source)
