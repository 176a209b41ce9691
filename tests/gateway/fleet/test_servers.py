"""Servers of a fleet as they are shipped: tenants apart, keys taken back, TLS, a cluster, a leaf node."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import nats
import pytest
from at_work import running
from certificates import write_pair
from fleet_desk import ANNA, BUNDLE, desk_at, key, listens
from fleet_scene import NAME, connection, events_up, happen
from free_ports import free_port
from nats_server import NatsServer, nats_server
from shared_area_scene import Member
from waiting import until

from gateway.domain.errors import GatewayError, GatewayUnreachable
from gateway.domain.server_lines import ConnectionState
from gateway.fleet.connection import FleetServer, connected
from gateway.fleet.line import FleetAway, FleetLine, FleetRefused
from gateway.fleet.names import BUCKET, STREAM, STREAM_SUBJECTS, Outgoing
from gateway.fleet.operator import FileFetch, command, gateways, prepare
from gateway.fleet.signed_commands import Action
from gateway.lanes.claims import ClaimOutcome
from gateway.runtime.clock import SystemClock

pytestmark = pytest.mark.long("a real NATS server")

CONFIG = Path(__file__).parents[3] / "config"
GATEWAY, OPERATOR, OTHER, COLLECTOR = key(), key(), key(), key()
SHIPPED_OPERATOR = "UBVM5ENCBUFRCM3LNDRFU2GWRZQ7PPI3SAQ3BCCIH3YAXD3GIZ7446K3"
SHIPPED_GATEWAY = "UCHOFQT6ILU7ZEEHWNOROAGJHLXMP5ABBC4XVCFHXJDQHFRUZOZWJNXY"
SHIPPED_COLLECTOR = "UCTNJNXKDLJGV53QPNF2E52UNVXJBJDOW3DQLUQNEUNEMDYTTYQQPXP4"
SUBJECT = NAME.events("event")


def shipped(pair, folder: Path, *, gateway: str = GATEWAY[1], marks: tuple[str, ...] = ()) -> str:
    """The shipped configuration with our keys, and the account of another operator beside that of the first.

    `marks`: the lines with these marks hold as well.
    """
    text = placed((CONFIG / "nats-server.conf").read_text("utf-8"), pair)
    for mark in marks:
        assert f"#{mark}:" in text
        text = text.replace(f"#{mark}:", "")
    for old, new in (
        (SHIPPED_OPERATOR, OPERATOR[1]),
        (SHIPPED_GATEWAY, gateway),
        (SHIPPED_COLLECTOR, COLLECTOR[1]),
        ("accounts {\n", f'accounts {{\n  RIVAL {{ jetstream: enabled, users: [ {{ nkey: "{OTHER[1]}" }} ] }}\n'),
        ("/var/lib/nats", str(folder / "jetstream")),
    ):
        assert old in text
        text = text.replace(old, new)
    return text


def placed(text: str, pair) -> str:
    """A shipped configuration on this machine, with our certificate, and a port for clients that the caller gives."""
    text = re.sub(r'^listen: ".*"$', "", text, flags=re.MULTILINE).replace("0.0.0.0", "127.0.0.1")
    for kind, path in (("server.crt", pair.certificate), ("server.key", pair.key), ("ca.crt", pair.certificate)):
        text = text.replace(f"/etc/nats/{kind}", str(path))
    return text


class Scene:
    """The shipped server, and lines of people to it."""

    def __init__(self, server: NatsServer, pair) -> None:
        self.server, self.pair = server, pair
        self.url, self.ca_file = f"tls://localhost:{server.port}", str(pair.certificate)

    @asynccontextmanager
    async def line_of(self, who):
        place = FleetServer(url=self.url, credentials=who[0], ca_file=self.ca_file, name="test")
        async with connected(place) as (line, _):
            yield line

    @property
    def gateway_options(self) -> dict[str, str]:
        """Return the options of the gateway's line, besides addresses."""
        return {"credentials": GATEWAY[0], "ca_file": self.ca_file}

    async def client(self, who) -> nats.NATS:
        trust = await asyncio.to_thread(ssl.create_default_context, cafile=self.ca_file)
        return await nats.connect(self.url, nkeys_seed_str=who[0], tls=trust)


@pytest.fixture
async def scene(tmp_path):
    pair = write_pair(tmp_path)
    with nats_server(tmp_path / "nats", shipped(pair, tmp_path / "nats")) as server:
        scene = Scene(server, pair)
        for who in (OPERATOR, OTHER):
            async with scene.line_of(who) as line:
                await prepare(line, days=1, replicas=1)
        yield scene


async def opens(line) -> str:
    """Open the gate over this line; the last reply's state."""
    replies = [one async for one in command(line, NAME, seed=ANNA[0], action=Action.OPEN, lane="entry")]
    return replies[-1].state


async def bundle(scene: Scene, folder: Path) -> bytes:
    """Fetch a support bundle as the operator; its content."""
    connect = partial(scene.line_of, OPERATOR)
    fetch = FileFetch(connect=connect, name=NAME, seed=ANNA[0], told=lambda _: None, clock=SystemClock())
    path, _ = await fetch.run(Action.BUNDLE, folder / "bundle")
    return path.read_bytes()


async def ids(client: nats.NATS, subject: str = SUBJECT) -> list[int]:
    """The ids of a subject's events in the stream, in its order."""
    js = client.jetstream()
    count = ((await js.stream_info(STREAM, subjects_filter=subject)).state.subjects or {}).get(subject, 0)
    sub = await js.subscribe(subject, ordered_consumer=True)
    try:
        return [json.loads((await sub.next_msg(timeout=30)).data)["id"] for _ in range(count)]
    finally:
        await sub.unsubscribe()


async def test_another_operator_of_the_server_sees_nothing_and_commands_nothing(scene, store, tmp_path):
    """The rival is no mere stranger: its account has a stream, a bucket and subjects of the same names."""
    rival, heard = await scene.client(OTHER), []

    async def hear(message) -> None:
        heard.append(message.subject)

    everything = await rival.subscribe(">", cb=hear)
    made, up = await happen(store, 3), events_up(store)
    async with desk_at(scene.url, tmp_path / "lane", up, **scene.gateway_options):
        owner = await scene.client(OPERATOR)
        await until(lambda: listens(owner))
        await until(lambda: up.sent_to == made[-1])
        assert await opens(FleetLine(owner)) == "moved"
        assert await bundle(scene, tmp_path) == BUNDLE
        await rival.flush()
        assert heard == []
        await everything.unsubscribe()
        with pytest.raises(GatewayUnreachable, match="the command was not sent"):
            await opens(FleetLine(rival))
        assert (await ids(owner), await ids(rival)) == (made, [])
    await rival.close()
    await owner.close()


async def test_what_another_operator_puts_on_the_same_subjects_stays_in_its_own_stream(scene, store):
    rival, up = await scene.client(OTHER), events_up(store)
    await rival.jetstream().publish(SUBJECT, json.dumps({"id": 999}).encode())
    await rival.jetstream().publish(NAME.heartbeat, b"{}")
    (made,) = await happen(store)
    async with running(connection(scene.url, up, **scene.gateway_options).run()):
        await until(lambda: up.sent_to == made)
    async with scene.line_of(OPERATOR) as line:
        assert [one.name async for one in gateways(line)] == []
    owner = await scene.client(OPERATOR)
    assert (await ids(owner), await ids(rival)) == ([made], [999])
    await rival.close()
    await owner.close()


async def test_a_site_key_reaches_its_own_gateway_alone(scene):
    """A stolen key neither reads other sites, nor writes in their names, nor commands any gateway."""
    denied: list[str] = []

    async def failed(error: Exception) -> None:
        denied.append(str(error))

    trust = await asyncio.to_thread(ssl.create_default_context, cafile=scene.ca_file)
    thief = await nats.connect(
        scene.url, nkeys_seed_str=GATEWAY[0], tls=trust, error_cb=failed, inbox_prefix=NAME.inbox
    )
    for count, subject in enumerate(("events.>", "cmd.south.gate-1", "cmd.>", "cards.south", "_INBOX.>", "$KV.>"), 1):
        await thief.subscribe(subject)
        await until(lambda count=count: len(denied) == count)
    reached = len(denied)
    for count, subject in enumerate(
        (
            "events.south.gate-1.event",
            "$KV.fleet.south.gate-1",
            "cmd.north.gate-1",
            "cmd.south.gate-1",
            "cards.north",
            f"$JS.API.STREAM.DELETE.{STREAM}",
            f"$JS.API.STREAM.MSG.GET.{STREAM}",
            f"$JS.API.DIRECT.GET.{STREAM}.events.south.gate-1.event",
            f"$JS.API.CONSUMER.CREATE.{STREAM}.x.events.south.gate-1.>",
            f"$JS.API.DIRECT.GET.KV_{BUCKET}.$KV.fleet.south.gate-1",
        ),
        reached + 1,
    ):
        await thief.publish(subject, b"{}")
        await until(lambda count=count: len(denied) == count)
    assert all("permissions violation" in one.lower() for one in denied)
    await thief.close()


async def test_the_collectors_key_reads_the_stream_and_nothing_else(scene):
    owner = await scene.client(OPERATOR)
    await owner.jetstream().publish(SUBJECT, b"{}")
    place = FleetServer(
        url=scene.url, credentials=COLLECTOR[0], ca_file=scene.ca_file, name="test", inbox="_INBOX.collector"
    )
    async with connected(place) as (line, _):
        assert (await line.extent(STREAM, STREAM_SUBJECTS)).last == 1
        batches = line.follow(STREAM, STREAM_SUBJECTS, after=0, most=1)
        assert [one.subject for one in await anext(batches)] == [SUBJECT]
        await batches.aclose()
        for subject in (NAME.commands, SUBJECT):
            with pytest.raises(FleetRefused, match="permissions violation"):
                async with line.listening(subject, None):
                    pass
    await owner.close()


async def test_a_key_that_is_taken_back_ends_its_connection_and_the_gateway_says_so(scene, store, tmp_path):
    up, folder = events_up(store), tmp_path / "nats"
    line = connection(scene.url, up, **scene.gateway_options)
    async with running(line.run()):
        await until(lambda: line.status().state is ConnectionState.CONNECTED)
        scene.server.configure(shipped(scene.pair, folder, gateway=key()[1]))
        scene.server.reload()
        await until(lambda: line.status().state is ConnectionState.REFUSED)
        assert "the server refuses the credentials" in line.status().reason
        (made,) = await happen(store)
        scene.server.configure(shipped(scene.pair, folder))
        scene.server.reload()
        await until(lambda: up.sent_to == made)
        assert line.status().state is ConnectionState.CONNECTED


async def test_the_shipped_server_takes_no_line_without_tls(scene):
    place = FleetServer(
        url=f"nats://127.0.0.1:{scene.server.port}", credentials=GATEWAY[0], ca_file=scene.ca_file, name="test"
    )
    with pytest.raises((FleetAway, FleetRefused)):
        async with connected(place):
            pass
    reader, writer = await asyncio.open_connection("127.0.0.1", scene.server.port)
    greeting = json.loads((await reader.readline()).removeprefix(b"INFO "))
    assert greeting["tls_required"] is True
    writer.write(b'CONNECT {"verbose":true,"user":"x","pass":"y"}\r\nPING\r\n')
    async with asyncio.timeout(20):
        assert b"PONG" not in await reader.read()
    writer.close()


def of_three(config: str, place: int, ports: list[int]) -> str:
    """The configuration of one of three servers, which reach each other at these ports."""
    config = config.replace('"fleet-1"', f'"fleet-{place + 1}"').replace("127.0.0.1:6222", f"127.0.0.1:{ports[place]}")
    return re.sub(r"fleet-(\d)\.example\.com:6222", lambda found: f"localhost:{ports[int(found[1]) - 1]}", config)


async def test_a_cluster_of_three_goes_on_when_the_leader_that_the_gateway_is_at_is_killed(tmp_path, store):
    pair, up, ports = write_pair(tmp_path), events_up(store), [free_port() for _ in range(3)]
    with ExitStack() as stack:
        servers = []
        for place in range(3):
            folder = tmp_path / str(place)
            config = of_three(shipped(pair, folder, marks=("cluster",)), place, ports)
            servers.append(Scene(stack.enter_context(nats_server(folder, config)), pair))
        owner = await servers[0].client(OPERATOR)
        await until(lambda: prepared(owner))
        leader = int((await owner.jetstream().stream_info(STREAM)).cluster.leader.rpartition("-")[2]) - 1
        await owner.close()
        first, second, third = servers[leader:] + servers[:leader]
        made = await happen(store, 100)
        async with desk_at([first.url, second.url], tmp_path / "lane", up, **first.gateway_options):
            await until(lambda: up.sent_to == made[-1])
            first.server.kill()
            made += await happen(store, 100)
            await until(lambda: up.sent_to == made[-1], within=60)  # a new leader takes seconds
            owner = await third.client(OPERATOR)
            await until(lambda: whole(owner, made))
            await until(lambda: listens(owner))
            assert await opens(FleetLine(owner)) == "moved"
            await owner.close()


async def prepared(client: nats.NATS) -> bool:
    """Prepare a cluster, once its three servers have found each other and a leader."""
    try:
        await client.jetstream(timeout=0.5).account_info()
        await prepare(FleetLine(client), days=1, replicas=3)
    except (nats.errors.Error, GatewayError):
        return False
    return True


async def test_a_leaf_node_at_the_site_carries_events_up_and_commands_down(tmp_path, store):
    """The gateway knows only the leaf; the leaf alone dials out, with the rights of its site."""
    pair, port, up = write_pair(tmp_path), str(free_port()), events_up(store)
    config = shipped(pair, tmp_path / "hub", marks=("leaf",)).replace("7422", port)
    leaf_config = placed((CONFIG / "nats-leaf.conf").read_text("utf-8").replace("#tls", "tls"), pair)
    leaf_config = leaf_config.replace("fleet.example.com:7422", f"localhost:{port}")
    with (
        nats_server(tmp_path / "hub", config) as hub,
        nats_server(tmp_path / "leaf", leaf_config, streams=False) as leaf,
    ):
        scene = Scene(hub, pair)
        owner = await scene.client(OPERATOR)
        await prepare(FleetLine(owner), days=1, replicas=1)
        made = await happen(store, 100)
        async with desk_at(leaf.url, tmp_path / "lane", up):
            await until(lambda: up.sent_to == made[-1])
            await until(lambda: listens(owner))
            assert await opens(FleetLine(owner)) == "moved"
            assert await bundle(scene, tmp_path) == BUNDLE
            one, two = Member("gate-1"), Member("gate-2")
            async with running(*(member.connection(leaf.url).run() for member in (one, two))):
                await until(lambda: not (one.shared.is_apart or two.shared.is_apart))
                claims = await asyncio.gather(one.claim("card:1"), two.claim("card:1"))
                assert sorted(outcome for _, outcome in claims) == [ClaimOutcome.CLAIMED, ClaimOutcome.OVERTAKEN]
            local = await nats.connect(leaf.url, inbox_prefix=NAME.inbox)
            await local.publish("events.south.gate-1.event", b'{"id":1}')
            await FleetLine(local).put([Outgoing(NAME.heartbeat, b"{}")])
            await local.close()
            hub.kill()
            made += await happen(store, 100)
            hub.start()
            await until(lambda: up.sent_to == made[-1])
        await owner.close()
        owner = await scene.client(OPERATOR)
        assert await ids(owner) == made
        assert await ids(owner, "events.south.gate-1.event") == []
        assert (await (await owner.jetstream().key_value(BUCKET)).get(str(NAME))).value == b"{}"
        await owner.close()


async def whole(client: nats.NATS, made: list[int]) -> bool:
    try:
        return await ids(client) == made
    except nats.errors.Error:
        return False
