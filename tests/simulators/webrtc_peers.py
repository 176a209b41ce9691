"""Things that happen to peers of WebRTC, and that aiortc has no public way for; its pin is exact."""

from __future__ import annotations

from aiortc import RTCPeerConnection


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
