"""Checks of viewers' SDP: what is longer than any viewer's is refused before a pattern reads it."""

from __future__ import annotations

import pytest

from gateway.camera_worker.sdp import SdpRefused, checked_offer, trickle

OFFER = (
    "v=0\r\no=- 1 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
    "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=ice-ufrag:abcd\r\na=ice-pwd:aaaaaaaaaaaaaaaaaaaaaaaa\r\n"
    f"a=fingerprint:sha-256 {':'.join(['AA'] * 32)}\r\na=setup:actpass\r\na=mid:0\r\na=recvonly\r\n"
    "a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1\r\n"
)


@pytest.mark.parametrize(
    "more",
    [
        "a=candidate:1 1 udp 1 1.2.3.4 5 typ " + " " * 60_000 + "x\r\n",
        "a=candidate:1 1 udp 1 1.2.3.4 5 typ " + " " * 2_000 + "x\r\n",
        "a=x\r\n" * 2_000,
        "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" * 100,
        "a=x:" + "y" * 70_000,
    ],
)
def test_an_offer_longer_than_a_viewer_sends_is_refused(more):
    assert checked_offer(OFFER)
    with pytest.raises(SdpRefused):
        checked_offer(OFFER + more)
    with pytest.raises(SdpRefused):
        trickle(more)


def test_blanks_behind_a_candidate_are_no_part_of_it():
    read = trickle("a=mid:0\r\na=candidate:1 1 udp 1 192.0.2.1 5000 typ host   \r\n")
    assert read.candidates == (("0", "1 1 udp 1 192.0.2.1 5000 typ host"),)
