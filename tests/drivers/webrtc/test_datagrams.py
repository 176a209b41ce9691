"""Datagrams in one system call, and one by one where the kernel refuses."""

from __future__ import annotations

import socket

import pytest

from drivers.webrtc.picture_sender import DatagramSocket

SO_NO_CHECK = 11
DATA = bytes(range(256)) * 40
SIZE = 1_300


@pytest.fixture
def receiver():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        own.settimeout(10)
        yield own


@pytest.fixture
def plain():
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    own.setblocking(False)
    yield own
    own.close()


def received(receiver: socket.socket) -> list[bytes]:
    return [receiver.recv(65_536) for _ in range(0, len(DATA), SIZE)]


EXPECTED = [DATA[at : at + SIZE] for at in range(0, len(DATA), SIZE)]


def test_the_kernel_cuts_to_size(receiver, plain):
    sender = DatagramSocket(plain)
    sender.send(memoryview(DATA), size=SIZE, address=receiver.getsockname())
    assert received(receiver) == EXPECTED
    assert sender.cuts


def test_what_the_kernel_refuses_to_cut_is_sent_one_by_one(receiver, plain):
    """Linux cuts nothing for a socket without checksums (udp_send_skb)."""
    plain.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 1)
    sender = DatagramSocket(plain)
    for _ in range(2):
        sender.send(memoryview(DATA), size=SIZE, address=receiver.getsockname())
        assert received(receiver) == EXPECTED
        assert not sender.cuts


def test_a_socket_without_the_option_sends_one_by_one(tmp_path):
    """As before Linux 4.18, which would send it all as one datagram."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "receiver"))
        receiver.settimeout(10)
        sender = DatagramSocket(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        assert not sender.cuts
        sender.send(memoryview(DATA), size=SIZE, address=receiver.getsockname())
        assert received(receiver) == EXPECTED
        sender.close()


def test_what_cannot_be_sent_is_lost(receiver, plain):
    sender = DatagramSocket(plain)
    sender.send(memoryview(DATA), size=SIZE, address=("255.255.255.255", 9))  # not allowed without SO_BROADCAST
    sender.send(memoryview(b"later"), size=SIZE, address=receiver.getsockname())
    assert receiver.recv(65_536) == b"later"
    assert sender.cuts
