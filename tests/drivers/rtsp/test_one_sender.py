"""Packets of one sender are told from those of others on the same channel."""

from __future__ import annotations

from drivers.rtsp.client.udp_ports import OneSender


def packet(ssrc: bytes, *, kind: int = 96) -> bytes:
    return bytes((0x80, kind)) + bytes(6) + ssrc + b"payload"


def senders(packets) -> list[bytes]:
    return [each[8:12] for each in packets]


def test_the_newest_sender_is_followed_while_it_sends():
    chosen = OneSender({96})
    assert senders(chosen.packets([packet(b"old!")], 0.0)) == [b"old!"]
    mixed = [packet(b"old!"), packet(b"new!"), packet(b"old!"), packet(b"new!")]
    assert senders(chosen.packets(mixed, 0.1)) == [b"old!", b"new!", b"new!"]
    assert senders(chosen.packets(mixed, 1.0)) == [b"new!", b"new!"]


def test_a_sender_that_begins_anew_is_followed_at_once_and_back_when_it_ends():
    chosen = OneSender({96})
    assert len(chosen.packets([packet(b"one!")], 0.0)) == 1
    assert len(chosen.packets([packet(b"two!")], 0.1)) == 1
    assert chosen.packets([packet(b"one!")], 0.2) == []
    assert len(chosen.packets([packet(b"one!")], 3.0)) == 1
    assert chosen.ssrc == b"one!"


def test_a_sender_with_a_name_for_each_packet_loses_none():
    chosen = OneSender({96})
    came = [packet(number.to_bytes(4, "big")) for number in range(1_000)]
    assert chosen.packets(came, 0.0) == came
    assert chosen.packets(came[::-1], 0.0)[0] == came[-1]


def test_packets_of_other_types_and_rubbish_are_left_to_others():
    chosen = OneSender({96})
    came = [packet(b"mine"), packet(b"more", kind=97), b"", b"\x80", packet(b"mine")]
    assert chosen.packets(came, 0.0) == came
    assert chosen.packets([b""], 0.0) == [b""]
    assert chosen.ssrc == b"mine"
