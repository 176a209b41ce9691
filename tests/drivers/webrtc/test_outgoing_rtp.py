"""A stream's packets, their runs, and those that are sent again."""

from __future__ import annotations

from itertools import pairwise

from aiortc.rtp import RtpPacket, unwrap_rtx
from hypothesis import given
from hypothesis import strategies as st

from drivers.webrtc.outgoing_rtp import OutgoingRtp, PicturePayloads

SSRC, KIND, RESENT_SSRC, RESENT_KIND = 7, 97, 8, 98


def stream(*, resent: int | None = RESENT_KIND, extensions: tuple[int, bytes] = (0, b"")) -> OutgoingRtp:
    return OutgoingRtp(
        ssrc=SSRC, payload_type=KIND, resent_ssrc=RESENT_SSRC, resent_payload_type=resent, extensions=extensions
    )


def sent(rtp: OutgoingRtp, payloads: list[bytes], time: int = 0) -> list[bytes]:
    picture = PicturePayloads.of(payloads)
    numbered = rtp.number(picture, time=time)
    return [packet for begin, end in picture.runs for packet in rtp.packets(numbered, begin, end)]


@given(st.lists(st.integers(1, 4), max_size=100))
def test_runs_are_equal_but_for_a_smaller_end_and_cover_the_picture(sizes):
    picture = PicturePayloads.of([bytes(size) for size in sizes])
    assert [at for begin, end in picture.runs for at in range(begin, end)] == list(range(len(sizes)))
    for begin, end in picture.runs:
        assert 1 <= end - begin <= 32
        assert set(sizes[begin : end - 1]) <= {sizes[begin]}
        assert sizes[end - 1] <= sizes[begin]
    assert picture.octets == sum(sizes)


def test_a_fragmented_picture_is_few_runs():
    fragments = [bytes(1_300)] * 40 + [bytes(200)]
    assert PicturePayloads.of([b"sps-sps", b"pps", *fragments]).runs == [(0, 2), (2, 34), (34, 43)]


def test_packets_are_numbered_timed_and_the_last_of_a_picture_is_marked():
    rtp = stream(extensions=(0xBEDE, b"\x10\x30\x00\x00"))
    packets = [RtpPacket.parse(data) for time in (0, 3_600) for data in sent(rtp, [b"one", b"two", b"three"], time)]
    first = packets[0]
    assert [packet.sequence_number - first.sequence_number for packet in packets] == list(range(6))
    assert first.sequence_number < 2**15, "the first wrap is far"
    assert [(packet.timestamp - first.timestamp) & 0xFFFFFFFF for packet in packets] == [0] * 3 + [3_600] * 3
    assert [packet.marker for packet in packets] == [0, 0, 1] * 2
    assert {(packet.ssrc, packet.payload_type) for packet in packets} == {(SSRC, KIND)}
    assert [packet.payload for packet in packets] == [b"one", b"two", b"three"] * 2
    assert (rtp.packets_sent, rtp.octets_sent) == (6, 22)


def test_a_lost_packet_is_sent_again_in_a_stream_of_its_own():
    rtp = stream(extensions=(0xBEDE, b"\x10\x30\x00\x00"))
    packets = sent(rtp, [b"one", b"two"])
    lost = [RtpPacket.parse(packet).sequence_number for packet in packets]
    again = [RtpPacket.parse(packet) for packet in rtp.again(lost)]
    assert {(packet.ssrc, packet.payload_type) for packet in again} == {(RESENT_SSRC, RESENT_KIND)}
    assert again[1].sequence_number == again[0].sequence_number + 1
    assert [unwrap_rtx(packet, KIND, SSRC).payload for packet in again] == [b"one", b"two"]
    assert [unwrap_rtx(packet, KIND, SSRC).sequence_number for packet in again] == lost
    assert [packet.marker for packet in again] == [0, 1]


def test_a_lost_packet_is_sent_again_as_it_was_where_there_is_no_such_stream():
    rtp = stream(resent=None)
    packets = sent(rtp, [b"one", b"two"])
    assert rtp.again([RtpPacket.parse(packet).sequence_number for packet in packets]) == packets


def test_numbers_wrap_and_what_is_kept_is_bounded():
    rtp = stream(resent=None)
    kept = [packet for _ in range(700) for packet in sent(rtp, [b"x"] * 100)]
    numbers = [RtpPacket.parse(packet).sequence_number for packet in kept]
    assert {(after - before) & 0xFFFF for before, after in pairwise(numbers)} == {1}
    assert rtp.again(numbers[-1_024:-1_000]) == kept[-1_024:-1_000]
    assert rtp.again(numbers[-1_200:-1_150]) == []
    assert rtp.again([(numbers[-1] + 1) & 0xFFFF]) == []


def test_a_request_for_very_many_is_served_in_part():
    rtp = stream(resent=None)
    packets = sent(rtp, [b"x"] * 1_000)
    assert len(rtp.again([RtpPacket.parse(packet).sequence_number for packet in packets])) == 256
