"""Far ends that are no gateway and no usual server: nothing of theirs ends the line or stays untold."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import nats
import pytest
from at_work import running
from fleet_desk import desk_at, key
from fleet_scene import NAME, connection, events_up, happen
from nats_server import nats_server
from shared_area_scene import Member
from waiting import until

from gateway.domain.server_lines import ConnectionState
from gateway.fleet.commands_down import CardsDown
from gateway.fleet.heartbeat import GatewaysSeen, Heartbeat
from gateway.fleet.names import AREAS_BUCKET, BUCKET, STREAM
from gateway.lanes.claims import ClaimOutcome
from gateway.problems.problem import Verdict
from gateway.runtime.clock import SystemClock

RUBBISH = (
    b"",
    b"\0\xff\xfe",
    b"null",
    b"[]",
    b"7",
    b'"x"',
    b"{",
    b"[" * 20_000,
    b'{"ids":[1e400]}',
    b'{"action":"open","id":7}',
    b'{"inside":{"garage":"many"}}',
    b'{"inside":[]}',
    b'{"steps":[{"at":"soon","by":1}]}',
    b'{"claims":[{"id":"x"}]}',
    b"9" * 5000,
    b'{"id":"\\ud800"}',
)


@asynccontextmanager
async def answering(respond):
    """A far end that gets each line of its visitors and answers as `respond` says; yields its address."""

    async def serve(reader, writer) -> None:
        await respond(reader, writer)
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


INFO = {"server_id": "x", "version": "2.9.10", "max_payload": 1048576, "headers": True, "proto": 1}


@pytest.mark.parametrize(
    "greeting",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"INFO 7\r\n",
        b"INFO []\r\n",
        b"INFO {\r\n",
        b"INFO \xff\xfe\r\n",
        b"INFO " + b"x" * 200_000 + b"\r\n",
        b"\r\n",
        b"INFO " + json.dumps(INFO | {"max_payload": "much"}).encode() + b"\r\nPONG\r\n",
        b"INFO " + json.dumps(INFO | {"nonce": 7, "auth_required": True}).encode() + b"\r\nPONG\r\n",
        b"INFO " + json.dumps(INFO | {"connect_urls": 7}).encode() + b"\r\nPONG\r\n",
        b"INFO " + json.dumps(INFO).encode() + b"\r\n-ERR \r\n",
        b"INFO " + json.dumps(INFO).encode() + b"\r\n-ERR 'what\xff'\r\n",
        b"INFO " + json.dumps(INFO).encode() + b"\r\nPONG\r\nMSG x\r\n\xff\xff\r\n",
        b"INFO " + json.dumps(INFO).encode() + b"\r\nPONG\r\nHMSG x 1 9999999 9999999\r\n",
    ],
)
async def test_what_is_no_nats_server_is_told_and_ends_no_task(greeting, store):
    async def respond(reader, writer) -> None:
        writer.write(greeting)
        await writer.drain()
        await reader.read(65536)

    async with answering(respond) as url:
        line = connection(url, events_up(store), credentials=key()[0])
        async with running(line.run()):
            await until(lambda: line.status().state in (ConnectionState.AWAY, ConnectionState.REFUSED))
            assert line.status().reason


SEED_ALONE = f"-----BEGIN USER NKEY SEED-----\n{key()[0]}\n------END USER NKEY SEED------\n"


@pytest.mark.long("a real NATS server")
@pytest.mark.parametrize(
    "credentials",
    [
        "rubbish",
        "SUé",
        "SU" + "A" * 56,
        "-----BEGIN NATS USER JWT-----\nx",
        "-----BEGIN",
        SEED_ALONE,
        "-----BEGIN NATS USER JWT-----\n\n-----BEGIN USER NKEY SEED-----",
        "-----BEGIN NATS USER JWT-----\nx\n-----BEGIN USER NKEY SEED-----\nx\n",
        "\0",
    ],
)
async def test_credentials_that_are_none_are_told_and_end_no_task(credentials, tmp_path, store):
    public = key()[1]
    with nats_server(tmp_path / "nats", f"authorization {{ users: [ {{ nkey: {public} }} ] }}") as strict:
        line = connection(strict.url, events_up(store), credentials=credentials)
        async with running(line.run()):
            await until(lambda: line.status().state is ConnectionState.REFUSED)
            assert credentials not in line.status().reason


def heartbeat(store, *, clock=None, **options) -> Heartbeat:
    return Heartbeat(
        fleet_name=NAME,
        site_name="North",
        version="1.2.3",
        verdict=lambda: Verdict(problems=(), lanes=2),
        store=store,
        waiting=lambda: 0,
        clock=clock or SystemClock(),
        **options,
    )


async def test_rubbish_on_every_subject_and_in_every_bucket_ends_nothing(areas, broker, store, tmp_path):
    """An old client that may do everything, as the fleet's operator may, sends whatever it likes."""
    member, clock = Member("gate-1", limit=5), SystemClock()
    parts = (
        events_up(store),
        heartbeat(store),
        CardsDown(fleet_name=NAME, taker=lambda: None),
        seen := GatewaysSeen(clock=clock),
    )
    far = 10**18
    steps = [{"at": far, "by": "gate-9", "enters": "garage"}, {"at": far + 1, "by": "gate-9", "enters": "garage"}]
    entries = [
        *RUBBISH,
        json.dumps({"steps": steps}).encode(),
        json.dumps({"steps": [{"at": -far, "by": "x"}, {"at": 10**400, "by": "x"}]}).encode(),
        json.dumps({"claims": [{"id": "-", "by": "gate-1", "at": far}] * 2}).encode(),
    ]
    beats = [
        *RUBBISH,
        json.dumps(
            {
                "version": "1", "site": "x", "ready": True, "headline": "", "problem_count": 0, "problems": [],
                "last_event": 1, "last_event_at": 10**20, "waiting": 0,
            }
        ).encode(),
    ]  # fmt: skip
    headers = [
        {"Nats-Msg-Id": f"north.gate-1.event.{await store.box_number()}.{'9' * 40}"},
        {"Nats-Msg-Id": "north.gate-1.event.x.y", "Fleet-Batch": "9" * 30},
        {"Fleet-Sender": "U" * 56, "Fleet-Signature": "é"},
        {"Fleet-Batch": "\N{ARABIC-INDIC DIGIT ONE} \N{ARABIC-INDIC DIGIT TWO}"},
    ]
    async with desk_at(areas.url, tmp_path / "desk", *parts) as desk:
        line = member.connection(areas.url)
        async with running(line.run()):
            await until(lambda: not member.shared.is_apart)
            for place, body in enumerate([*entries, *beats]):
                for subject in (f"cmd.{NAME}", "cards.north", f"events.{NAME}.event", f"events.{NAME}.camera_event"):
                    await broker.publish(subject, body, reply="somewhere", headers=headers[place % len(headers)])
                await broker.publish(f"$KV.{BUCKET}.x{place}", body)
                await broker.publish(f"$KV.{AREAS_BUCKET}.north.count.x{place}", body)
                for holder in (f"x{place}", "Y2FyZDo3", "Y2FyZDo4Cg", "Y2FyZDo5=", "!", "____"):
                    await broker.publish(f"$KV.{AREAS_BUCKET}.north.holder.{holder}", body)
            await broker.flush()
            seen.since("")
            await until(lambda: seen.since("").complete)
            (event,) = await happen(store)
            await until(lambda: parts[0].sent_to == event)
            member.passes("card:7")
            await until(lambda: not member.shared.waits)
            assert (await member.claim("card:8"))[1] is ClaimOutcome.CLAIMED
            assert all(place.since < far for place in member.presence.holders().values())
            assert line.status().state is ConnectionState.CONNECTED, line.status().reason
        assert await desk.commands() == 0
        assert json.loads((await broker.request(f"cmd.{NAME}", b'{"action":"nonce"}', timeout=5)).data)["nonce"]


async def test_a_part_that_fails_is_told_and_the_others_go_on(server, broker, store):
    class Failing:
        name = "failing"

        async def run(self, line, works) -> None:
            raise KeyError("x")

    line = connection(server.url, Failing(), events := events_up(store))
    async with running(line.run()):
        await until(lambda: line.status().state is ConnectionState.REFUSED)
        assert "a fault of the gateway in failing (KeyError)" in line.status().reason
        (event,) = await happen(store)
        await until(lambda: events.sent_to == event)


@pytest.mark.long("a real NATS server")
async def test_a_server_of_small_limits_is_told_with_its_words(tmp_path, store):
    with nats_server(tmp_path / "nats") as small:
        client = await nats.connect(small.url)
        await client.jetstream().add_stream(name=STREAM, subjects=["events.>"], allow_direct=True)
        await client.close()
        small.stop()
        small.configure("max_payload: 300")
        small.start()
        line = connection(small.url, events_up(store))
        async with running(line.run()):
            await happen(store)
            await until(lambda: "raise its max_payload" in line.status().reason)
        for limit in ("max_connections: 1", "max_subscriptions: 1"):
            small.configure(limit)
            small.stop()
            small.start()
            holder = await nats.connect(small.url)
            line = connection(small.url, events_up(store), CardsDown(fleet_name=NAME, taker=lambda: None))
            async with running(line.run()):
                await until(lambda line=line: line.status().state is ConnectionState.AWAY and line.status().reason)
            await holder.close()


class Fast(SystemClock):
    """A clock on which a minute takes a twentieth of a second."""

    def monotonic(self) -> float:
        return super().monotonic() * 1200


async def test_two_boxes_of_one_name_are_a_problem_at_both_until_one_is_gone(server, broker, store):
    lines = [connection(server.url, heartbeat(store, clock=Fast(), soonest_seconds=0.05)) for _ in range(2)]
    async with running(lines[0].run()):
        async with running(lines[1].run()):
            await until(lambda: all("another gateway is north.gate-1 too" in one.status().reason for one in lines))
        await until(lambda: lines[0].status().state is ConnectionState.CONNECTED)


async def test_a_key_that_was_emptied_by_hand_is_no_second_box(server, broker, store):
    line = connection(server.url, heartbeat(store, clock=Fast(), soonest_seconds=0.05))
    bucket = await broker.jetstream().key_value(BUCKET)
    states = []
    async with running(line.run(), watched(line, states)):
        revision = (await until(lambda: entry(bucket))).revision
        await bucket.put(str(NAME), b"")

        async def beats_on() -> bool:
            found = await entry(bucket)
            return found is not None and found.revision > revision + 3

        await until(beats_on)
    assert set(states) <= {None, ConnectionState.CONNECTED}


async def entry(bucket):
    """The last heartbeat in the bucket, None before the first."""
    try:
        found = await bucket.get(str(NAME))
    except nats.js.errors.KeyNotFoundError:
        return None
    return found if found.value else None


async def watched(line, states) -> None:
    """Note the states of a line for ever."""
    while True:
        states.append(line.status().state)
        await asyncio.sleep(0)


async def test_of_two_boxes_that_share_areas_under_one_name_the_later_one_takes_part(areas):
    """The first one keeps its gate by the rule of the area; what it let in is not let in a second time."""
    first, other = Member("gate-1"), Member("gate-2")
    early = first.connection(areas.url)
    async with running(early.run(), other.connection(areas.url).run()):
        await until(lambda: not (first.shared.is_apart or other.shared.is_apart))
        later = Member("gate-1")
        line = later.connection(areas.url)
        async with running(line.run()):
            await until(lambda: not later.shared.is_apart)
            await until(lambda: first.shared.is_apart)
            await until(lambda: "another gateway shares areas as north.gate-1" in early.status().reason)
            assert await first.claim("card:1") == (None, ClaimOutcome.AWAY)
            assert (await later.claim("card:1"))[1] is ClaimOutcome.CLAIMED
            assert line.status().state is ConnectionState.CONNECTED
            assert not other.shared.is_apart


async def test_a_claim_of_another_box_with_this_name_is_nobodys_to_give_back(areas, broker):
    member = Member("gate-1", limit=5)
    async with running(member.connection(areas.url).run()):
        await until(lambda: not member.shared.is_apart)
        claim = {"id": "ffffffff-1", "by": "gate-1", "at": SystemClock().wall().micros, "enters": "garage"}
        await broker.publish(f"$KV.{AREAS_BUCKET}.north.holder.Y2FyZDox", json.dumps({"claims": [claim]}).encode())
        await until(lambda: [one.holder for one in member.shared.coming()] == ["card:1"])
        await member.claim("card:1")
        assert "card:1" in [one.holder for one in member.shared.coming()]
