"""The line to the fleet: connected, away, refused, and back again by itself."""

from __future__ import annotations

import asyncio

import nkeys
import pytest
from at_work import running
from certificates import write_pair
from fleet_scene import NAME, connection
from free_ports import free_port
from nats_server import nats_server
from waiting import until

from gateway.domain.server_lines import ConnectionState
from gateway.fleet.commands_down import CardsDown
from gateway.fleet.connection import FleetServer, connected
from gateway.fleet.line import FleetAway, FleetLine
from gateway.fleet.names import Outgoing


class Idle:
    """A part that needs nothing of the server."""

    name = "idle"

    async def run(self, line, works) -> None:
        works()
        await asyncio.Event().wait()


async def test_it_connects_and_says_to_whom(server):
    line = connection(server.url, Idle())
    assert line.status().state is None
    async with running(line.run()):
        await until(lambda: line.status().state is ConnectionState.CONNECTED)
        assert line.status().server == f"127.0.0.1:{server.port}"
        assert line.status().name == "north.gate-1"
        assert line.status().reason == ""


@pytest.mark.long("hundreds of connections")
@pytest.mark.parametrize("part", [Idle(), CardsDown(fleet_name=NAME, taker=lambda: None)], ids=lambda part: part.name)
async def test_it_ends_at_whatever_moment_it_is_ended(server, part):
    await _ends_at_whatever_moment(server.url, part)


async def test_it_ends_at_whatever_moment_without_a_server():
    await _ends_at_whatever_moment(f"nats://127.0.0.1:{free_port()}", Idle())


async def _ends_at_whatever_moment(url, part):
    """The library swallows some cancellations, and raises an error of its own instead of others."""
    for turns in range(200):
        task = asyncio.get_running_loop().create_task(connection(url, part).run())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        _, alive = await asyncio.wait([task], timeout=20)
        assert not alive, turns


@pytest.mark.long("a real NATS server")
async def test_without_a_server_it_is_away_and_comes_by_itself(tmp_path):
    with nats_server(tmp_path) as server:
        server.kill()
        line = connection(server.url, Idle())
        async with running(line.run()):
            await until(lambda: line.status().state is ConnectionState.AWAY)
            assert "refused" in line.status().reason
            server.start()
            await until(lambda: line.status().state is ConnectionState.CONNECTED)
            server.kill()
            await until(lambda: line.status().state is ConnectionState.AWAY)


async def test_a_line_that_is_cut_is_made_anew(relay):
    line = connection(f"nats://127.0.0.1:{relay.port}", Idle())
    async with running(line.run()):
        await until(lambda: line.status().state is ConnectionState.CONNECTED)
        await relay.cut()
        await until(lambda: line.status().state is ConnectionState.AWAY)
        await relay.join()
        await until(lambda: line.status().state is ConnectionState.CONNECTED)


async def test_whoever_waits_for_an_answer_hears_at_once_that_the_line_is_lost(relay):
    server = FleetServer(url=f"nats://127.0.0.1:{relay.port}", credentials="", ca_file=None, name="somebody")
    ends = []

    async def ask(line: FleetLine, question) -> None:
        try:
            await question(line)
        except FleetAway as error:
            ends.append(str(error))

    async def replies(line: FleetLine) -> None:
        async for _ in line.replies("cmd.north.gate-1", b"", headers={}, within=120):
            pass

    async def put(line: FleetLine) -> None:
        await line.put([Outgoing(NAME.heartbeat, b"{}"), Outgoing(NAME.heartbeat, b"{}")])

    async def request(line: FleetLine) -> None:
        await line.asked("cmd.north.gate-1", b"", refusal="nobody")

    async with connected(server) as (line, lost):
        await line.asked("$JS.API.INFO", b"", refusal="no JetStream")
        relay.hold()
        async with running(*(ask(line, question) for question in (replies, put, request))):
            for _ in range(100):
                await asyncio.sleep(0)  # each has asked, and waits
            await relay.cut()
            await until(lambda: len(ends) == 3)
        assert ends == [str(lost.reason)] * 3


async def test_a_server_elsewhere_that_greets_without_tls_is_told_nothing():
    heard = bytearray()

    async def greet(reader, writer) -> None:
        writer.write(b'INFO {"server_id":"X","version":"2.9.10","headers":true,"max_payload":1048576}\r\n')
        while data := await reader.read(1000):
            heard.extend(data)
        writer.close()

    port = free_port()
    async with await asyncio.start_server(greet, "127.0.0.1", port):
        line = connection(f"tls://localhost:{port}", Idle())
        async with running(line.run()):
            await until(lambda: line.status().state is ConnectionState.REFUSED)
            assert line.status().reason == "the server offers no TLS"
    assert heard == b""


@pytest.fixture
def user() -> tuple[str, str]:
    """The seed and the public key of a user."""
    pair = nkeys.from_seed(nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER))
    return pair.seed.decode(), pair.public_key.decode()


@pytest.mark.long("a real NATS server")
async def test_tls_and_an_nkey_are_proven_and_a_revoked_key_is_refused(tmp_path, user):
    seed, public = user
    pair = write_pair(tmp_path)
    tls = f'tls {{ cert_file: "{pair.certificate}", key_file: "{pair.key}" }}\n'
    with nats_server(tmp_path / "nats", f'{tls}authorization {{ users: [ {{ nkey: "{public}" }} ] }}') as server:
        url, ca_file = f"tls://localhost:{server.port}", str(pair.certificate)
        line = connection(url, Idle(), credentials=seed, ca_file=ca_file)
        async with running(line.run()):
            await until(lambda: line.status().state is ConnectionState.CONNECTED)
            server.configure(f"{tls}authorization {{ users: [ {{ user: other, password: other }} ] }}")
            server.reload()
            await until(lambda: line.status().state is ConnectionState.REFUSED)
            assert "credentials" in line.status().reason
        stranger = connection(url, Idle(), credentials=seed)
        async with running(stranger.run()):
            await until(lambda: stranger.status().state is ConnectionState.REFUSED)
            assert "certificate is not accepted" in stranger.status().reason
