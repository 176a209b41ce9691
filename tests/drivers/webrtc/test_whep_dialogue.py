from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.contract import ProtocolViolation
from drivers.webrtc.whep_dialogue import Fingerprint, IceAccount, offer, parse_answer

ANSWER = """v=0
o=- 1 1 IN IP4 192.0.2.9
s=-
t=0 0
a=group:BUNDLE 0
a=ice-lite
a=fingerprint:SHA-256 AA:BB
m=video 9 UDP/TLS/RTP/SAVPF 102 103 100
c=IN IP4 192.0.2.9
a=ice-ufrag:user
a=ice-pwd:word
a=setup:passive
a=mid:0
a=sendonly
a=rtcp-mux
a=rtpmap:102 H265/90000
a=rtpmap:103 rtx/90000
a=fmtp:103 apt=102
a=rtpmap:100 rtx/90000
a=fmtp:100 apt=99
a=candidate:1 1 udp 2130706431 192.0.2.9 50000 typ host
a=candidate:1 2 udp 2130706431 192.0.2.9 50001 typ host
a=candidate:2 1 tcp 1671430143 192.0.2.9 443 typ host tcptype passive
a=candidate:3 1 udp x 192.0.2.9 y typ host
a=end-of-candidates
"""


def test_an_answer():
    told = parse_answer(ANSWER.replace("\n", "\r\n").encode())
    assert [(number, each.name) for number, each in told.encodings.items()] == [(102, "H265")]
    assert told.retransmits == {103: 102}
    assert told.ice == IceAccount("user", "word")
    assert told.is_lite
    assert not told.calls
    assert told.fingerprints == (Fingerprint("sha-256", "AA:BB"),)
    assert told.candidates == ("1 1 udp 2130706431 192.0.2.9 50000 typ host",)


def test_an_offer_holds_all_that_a_camera_needs_and_no_more_than_video():
    text = offer(
        ice=IceAccount("u", "p"), fingerprints=[Fingerprint("sha-256", "AA")], candidates=["1 1 udp"], session=7
    )
    lines = text.split("\r\n")
    assert [line for line in lines if line.startswith("m=")] == [
        "m=video 9 UDP/TLS/RTP/SAVPF 96 97 98 99 100 101 102 103"
    ]
    for wanted in (
        "a=recvonly",
        "a=rtcp-mux",
        "a=candidate:1 1 udp",
        "a=rtpmap:102 H265/90000",
        "a=rtcp-fb:96 nack pli",
    ):
        assert wanted in lines


@given(st.binary(max_size=200), st.integers(0, len(ANSWER)), st.integers(0, 60))
def test_an_answer_that_is_rubbish_is_refused_or_read(junk, at, cut):
    data = ANSWER.encode()
    with contextlib.suppress(ProtocolViolation):
        parse_answer(data[:at] + junk + data[at + cut :])


@pytest.mark.parametrize("without", ["a=ice-ufrag", "a=ice-pwd", "a=fingerprint"])
def test_what_an_answer_must_tell(without):
    with pytest.raises(ProtocolViolation):
        parse_answer(ANSWER.replace(without, "a=none").encode())
