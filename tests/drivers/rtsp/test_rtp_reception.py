from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from drivers.rtsp.rtp_reception import ReceptionReport, RtpReception


def packet(sequence: int, *, kind: int = 96, sender: int = 7, payload: bytes = b"", timestamp: int = 0) -> bytes:
    return struct.pack("!BBHII", 0x80, kind, sequence & 0xFFFF, timestamp, sender) + payload


def repeated(sequence: int, at: int, payload: bytes = b"") -> bytes:
    """A retransmission: a stream of its own, with the number of what it repeats before the payload."""
    return packet(at, kind=97, sender=8, payload=sequence.to_bytes(2, "big") + payload)


def reception() -> RtpReception:
    return RtpReception(payload_types=[96], retransmits={97: 96})


def numbers(taken) -> list[int]:
    return [each[2] << 8 | each[3] for each in taken]


def all_missing(coming: RtpReception, now: float) -> list[int]:
    """Return what is asked for at once, in as many requests as it takes."""
    asked: list[int] = []
    while wanted := coming.missing(now):
        asked += wanted
    return asked


def test_what_is_missing_is_asked_for_some_times_and_then_given_up():
    coming = reception()
    for number in (65_534, 65_535, 2, 3):
        coming.push(packet(number), 10.0)
    assert numbers(coming.take()) == [65_534, 65_535]
    assert coming.missing(10.0) == [0, 1]
    assert coming.missing(10.05) == []
    assert coming.missing(10.1) == [0, 1]
    coming.push(repeated(0, 1, b"zero"), 10.12)
    assert coming.take() == [packet(0, payload=b"zero")]
    coming.push(repeated(0, 2, b"zero"), 10.13)
    assert coming.missing(10.2) == [1]
    assert coming.missing(10.29) == []
    assert coming.missing(10.4) == []
    coming.push(packet(4), 10.4)
    assert numbers(coming.take()) == [2, 3, 4]


def test_a_late_packet_is_not_asked_for_and_none_is_told_twice():
    coming = reception()
    for number in (1, 3, 2, 2, 4):
        coming.push(packet(number), 1.0)
    assert coming.missing(1.0) == []
    assert numbers(coming.take()) == [1, 2, 3, 4]


def test_a_sender_with_many_large_gaps_makes_no_growing_list_of_missing_packets():
    coming = reception()
    for number in range(60):
        coming.push(packet(number * 1_000), 1.0)
    assert len(all_missing(coming, 1.0)) < 1_024
    coming.push(packet(59_002), 1.0)
    assert all_missing(coming, 1.0) == [59_001]


def test_a_new_sender_begins_anew():
    coming = reception()
    coming.push(packet(5), 1.0)
    coming.push(packet(40_000, sender=9), 1.0)
    assert coming.sender == 9
    assert numbers(coming.take()) == [5, 40_000]
    assert coming.missing(1.0) == []
    assert coming.report() == ReceptionReport(0, 0, 40_000, 0)


def test_a_report_counts_as_the_standard_does():
    coming = reception()
    assert coming.report() is None
    for number in range(65_530, 65_540):
        if number not in (65_533, 65_537):
            coming.push(packet(number, timestamp=(number - 65_530) * 900), 1.0 + (number - 65_530) / 100)
    assert coming.report() == ReceptionReport(2 * 256 // 10, 2, 65_539, 0)
    for number in range(65_540, 65_550):
        coming.push(packet(number, timestamp=(number - 65_530) * 900), 1.0 + (number - 65_530) / 100)
    assert coming.report() == ReceptionReport(0, 2, 65_549, 0)


@given(
    st.lists(st.tuples(st.integers(0, 200), st.booleans()), max_size=60), st.lists(st.binary(max_size=40), max_size=5)
)
def test_whatever_comes_nothing_is_told_out_of_order(sent, junk):
    coming = reception()
    told = []
    for at, (number, repeats) in enumerate(sent):
        coming.push(repeated(number, at) if repeats else packet(number), at / 50)
        for each in junk:
            coming.push(each, at / 50)
        told += numbers(each for each in coming.take() if each[1] & 0x7F == 96 and each[8:12] == b"\0\0\0\x07")
        assert len(coming.missing(at / 50)) <= 256
    assert told == sorted(set(told))
