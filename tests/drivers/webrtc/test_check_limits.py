"""Places that a far end names: which are checked at all, and how many."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack

import pytest
from aioice import Candidate, Connection, stun

from drivers.webrtc.check_limits import MOST_CHECKS, is_at, limit_checks, without_candidates


@pytest.mark.parametrize(
    "candidate",
    [
        "1 1 udp 2130706431 192.0.2.9 50000 typ host",
        "1 1 UDP 2130706431 192.0.2.9 50000 typ srflx raddr 0.0.0.0 rport 0",
        "1 1 udp 1 192.0.2.9 1 typ relay raddr 198.51.100.1 rport 9 generation 0",
    ],
)
def test_what_is_at_the_viewers_own_address_is_checked(candidate):
    assert is_at(candidate, "192.0.2.9")


@pytest.mark.parametrize(
    "candidate",
    [
        "1 1 udp 2130706431 192.0.2.10 50000 typ host",
        "1 1 udp 2130706431 ::ffff:192.0.2.9 50000 typ host",  # IPv4-mapped: another socket, which reaches IPv4 hosts
        "1 1 udp 2130706431 0300.0.02.011 50000 typ host",  # as inet_aton reads it
        "1 1 udp 2130706431 3221225993 50000 typ host",
        "1 1 udp 2130706431 192.0.2.9%eth0 50000 typ host",
        "1 1 udp 2130706431 8a1c0c36-0f5e-4b2e-a6a4-0d2b6a1f7c11.local 50000 typ host",
        "1 1 udp 2130706431 victim.example.com 50000 typ host",
        "1 1 udp 2130706431 192.0.2.255 50000 typ host",
        "1 1 udp 2130706431 224.0.0.251 5353 typ host",
        "1 1 tcp 2130706431 192.0.2.9 443 typ host tcptype passive",
        "1 1 ssltcp 2130706431 192.0.2.9 443 typ host",
        "1 2 udp 2130706431 192.0.2.9 50001 typ host",
        "1 1 udp 2130706431 192.0.2.9 0 typ host",
        "1 1 udp 2130706431 192.0.2.9 65536 typ host",
        "1 1 udp 2130706431 192.0.2.9 -1 typ host",
        "1 1 udp 2130706431 192.0.2.9 ² typ host",
        "1 1 udp 2130706431 192.0.2.9 " + "9" * 5000 + " typ host",
        "1 1 udp 2130706431 192.0.2.9",
        "",
    ],
)
def test_nothing_else_is(candidate):
    assert not is_at(candidate, "192.0.2.9")


def test_a_viewer_without_an_address_names_nothing_that_is_checked():
    assert not is_at("1 1 udp 1 unknown 5 typ host", "")


def test_candidates_are_taken_out_of_every_section_and_of_the_head():
    offer = (
        "v=0\r\na=candidate:0 h\r\nm=audio 9 RTP/AVP 0\r\na=candidate:1 x\r\na=mid:a\r\na=end-of-candidates\r\n"
        "m=video 9 RTP/AVP 96\r\na=candidate:2 y\r\n"
    )
    assert without_candidates(offer) == (
        "v=0\r\nm=audio 9 RTP/AVP 0\r\na=mid:a\r\nm=video 9 RTP/AVP 96\r\n",
        (("", "0 h"), ("a", "1 x"), ("", "2 y")),
    )


def named(number: int) -> Candidate:
    return Candidate(
        foundation=str(number),
        component=1,
        transport="udp",
        priority=1,
        host="127.0.0.1",
        port=2000 + number,
        type="host",
    )


@pytest.fixture
async def connection(monkeypatch):
    """A connection of one local address, before its checks begin."""
    for name in ("add_remote_candidate", "check_incoming"):  # the limits stay in this test
        monkeypatch.setattr(Connection, name, getattr(Connection, name))
    monkeypatch.setattr("aioice.ice.get_host_addresses", lambda **_: ["127.0.0.1"])
    limit_checks()
    made = Connection(ice_controlling=False)
    await made.gather_candidates()
    yield made
    await made.close()


async def test_so_many_places_that_were_named_are_checked_and_no_more(connection):
    for number in range(3 * MOST_CHECKS):
        await connection.add_remote_candidate(named(number))
    assert len(connection.remote_candidates) == MOST_CHECKS
    await connection.add_remote_candidate(None)


async def test_each_address_of_this_machine_counts(monkeypatch, connection):
    monkeypatch.setattr("aioice.ice.get_host_addresses", lambda **_: ["127.0.0.1", "127.0.0.2", "127.0.0.3"])
    several = Connection(ice_controlling=False)
    await several.gather_candidates()
    for number in range(3 * MOST_CHECKS):
        await several.add_remote_candidate(named(number))
    assert 3 * len(several.remote_candidates) <= MOST_CHECKS
    await several.close()


def request(connection: Connection) -> bytes:
    """A check of a far end that knows the password."""
    asked = stun.Message(message_method=stun.Method.BINDING, message_class=stun.Class.REQUEST)
    asked.attributes["USERNAME"] = f"{connection.local_username}:far"
    asked.attributes["PRIORITY"] = 1
    asked.attributes["ICE-CONTROLLING"] = 1
    asked.add_message_integrity(connection.local_password.encode())
    return bytes(asked)


async def test_places_from_which_checks_come_count_too(connection):
    """A far end that knows the password may send from any address, and each is answered by a check of our own."""
    connection.remote_username, connection.remote_password = "far", "far" * 8
    loop, here = asyncio.get_running_loop(), connection.local_candidates[0]
    with ExitStack() as places:
        ends = [places.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(2 * MOST_CHECKS)]
        async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            connecting = tasks.create_task(connection.connect())
            for end in ends:
                end.bind(("127.0.0.1", 0))
                end.setblocking(False)
                end.sendto(request(connection), (here.host, here.port))
                await loop.sock_recv(end, 2000)  # the answer to it
            assert len(connection.remote_candidates) == MOST_CHECKS
            connecting.cancel()
