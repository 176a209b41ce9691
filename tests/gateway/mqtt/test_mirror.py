"""The mirror at a real broker: what it says, and that it says it again whatever happens to the broker and the line."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from at_work import running
from certificates import write_pair
from fleet_scene import happen
from free_ports import free_port
from mirror_scene import BAD, TOPICS, Shown, lane, mirror
from mosquitto import listener, mosquitto
from relay import Relay
from waiting import until

from drivers.contract import GatePosition
from gateway.domain.server_lines import ConnectionState
from gateway.mqtt.mirror import CONSUMER
from gateway.runtime.supervision import Backoff

pytestmark = pytest.mark.long("a real broker")

ENTRY = TOPICS.lane("entry")


async def mark_of(store) -> int:
    return next(mark.read_to for mark in await store.read_cursors.all() if mark.consumer == CONSUMER)


async def test_the_broker_gets_presence_states_verdict_and_events(tmp_path, store):
    with mosquitto(tmp_path) as broker, listener(broker) as heard:
        await until(lambda: heard.is_there)
        made, up = await happen(store, 3), mirror(store, broker)
        async with running(up.run()):
            await until(lambda: up.status().state is ConnectionState.CONNECTED)
            made = await happen(store, 40)
            await until(lambda: heard.events() == made)
            (state,) = heard.payloads(ENTRY)
            shown = json.loads(state)
            assert shown.pop("at").endswith("Z")
            assert shown == {
                "lane": "entry",
                "name": "Main entry",
                "direction": "entry",
                "gate": "closed",
                "phase": "idle",
                "since": "2026-09-21T14:13:20.000Z",
                "order": "",
                "able": True,
                "troubles": [],
            }
            (verdict,) = heard.payloads(TOPICS.verdict)
            assert json.loads(verdict)["headline"] == "The lane works"
            assert heard.payloads(TOPICS.status) == ["online"]
        event = next(one for one in heard.messages if one["topic"] == TOPICS.event)
        assert event["qos"] == 1
        assert event["properties"]["content-type"] == "application/json"
        assert event["properties"]["user-properties"] == {"box": str(await store.box_number())}
        assert json.loads(event["payload"])["description"] == "The gate opened, 0."
        await until(lambda: heard.payloads(TOPICS.status) == ["online", "offline"])


async def test_who_subscribes_later_gets_the_present_states_and_no_event(tmp_path, store):
    shown = Shown(lanes=(lane(), lane("exit")))
    with mosquitto(tmp_path) as broker:
        up = mirror(store, broker, shown)
        async with running(up.run()):
            await until(lambda: up.status().state is ConnectionState.CONNECTED)
            with listener(broker) as first:
                await until(lambda: len(first.messages) == 4)
                assert {one["topic"]: one["retain"] for one in first.messages} == dict.fromkeys(
                    (TOPICS.status, TOPICS.verdict, ENTRY, TOPICS.lane("exit")), 1
                )
                shown.lanes = (lane(position=GatePosition.OPENING),)
                shown.verdict = BAD
                store.changes.bump()
                await until(lambda: len(first.messages) == 7)
                assert json.loads(first.payloads(ENTRY)[-1])["gate"] == "opening"
                assert first.payloads(TOPICS.lane("exit"))[-1] == ""
                assert json.loads(first.payloads(TOPICS.verdict)[-1])["problems"] == [
                    {
                        "kind": "camera_stalled",
                        "severity": BAD.problems[0].severity.name.lower(),
                        "text": "no picture for 9 s",
                    }
                ]
            with listener(broker) as second:
                await until(lambda: len(second.messages) == 3)
                assert TOPICS.lane("exit") not in {one["topic"] for one in second.messages}


async def test_a_figure_in_a_sentence_is_no_change(tmp_path, store):
    shown = Shown(verdict=BAD)
    with mosquitto(tmp_path) as broker, listener(broker) as heard:
        await until(lambda: heard.is_there)
        up = mirror(store, broker, shown)
        async with running(up.run()):
            await until(lambda: heard.payloads(TOPICS.verdict))
            shown.verdict = replace(BAD, problems=(replace(BAD.problems[0], text="no picture for 12 s"),))
            await asyncio.sleep(2.5)  # the verdict is looked at every two seconds
            shown.lanes = (lane(position=GatePosition.OPEN),)
            store.changes.bump()
            await until(lambda: len(heard.payloads(ENTRY)) == 2)
            assert len(heard.payloads(TOPICS.verdict)) == 1


async def test_the_first_mirror_begins_with_the_next_event_and_the_next_one_where_it_ended(tmp_path, store):
    await happen(store, 5)
    with mosquitto(tmp_path) as broker, listener(broker) as heard:
        await until(lambda: heard.is_there)
        await mirror(store, broker).hold()
        made = await happen(store, 2)
        async with running(mirror(store, broker).run()):
            await until_mark(store, made[-1])
        made += await happen(store, 2)
        async with running(mirror(store, broker).run()):
            await until(lambda: heard.events() == made)
            await until_mark(store, made[-1])
        await until(lambda: heard.payloads(TOPICS.status)[-1] == "offline")


async def test_a_broker_that_comes_later_gets_what_waited(tmp_path, store):
    with mosquitto(tmp_path) as broker:
        broker.kill()
        up = mirror(store, broker)
        async with running(up.run()):
            await until(lambda: up.status().state is ConnectionState.AWAY)
            assert str(up.status().reason) == "nothing answers at 127.0.0.1: the connection was refused"
            await up.hold()
            made = await happen(store, 100)
            await up.count()
            assert up.status().waiting == 100
            broker.start()
            with listener(broker) as heard:
                await until(lambda: up.status().state is ConnectionState.CONNECTED)
                await until(lambda: heard.payloads(ENTRY))
                await until_mark(store, made[-1])
                await up.count()
                assert up.status().waiting == 0


async def until_mark(store, newest: int) -> None:
    async def is_there() -> bool:
        return await mark_of(store) == newest

    await until(is_there)


async def test_a_broker_that_lost_what_it_kept_gets_it_again(tmp_path, store):
    with mosquitto(tmp_path) as broker:
        up = mirror(store, broker)
        async with running(up.run()):
            for _ in range(3):
                await until(lambda: up.status().state is ConnectionState.CONNECTED)
                with listener(broker) as heard:
                    await until(lambda: len(heard.messages) == 3)
                    assert heard.payloads(TOPICS.status) == ["online"]
                broker.kill()
                await until(lambda: up.status().state is ConnectionState.AWAY)
                broker.start()


async def test_a_line_cut_in_the_middle_of_messages_loses_none(tmp_path, store):
    with mosquitto(tmp_path) as broker, listener(broker) as heard:
        await until(lambda: heard.is_there)
        relay = Relay(broker.port)
        await relay.join()
        up = mirror(store, relay.port)
        await up.hold()
        made = await happen(store, 500)
        async with running(up.run()):
            for _ in range(3):
                reached = len(heard.events())
                await until(lambda reached=reached: len(heard.events()) > reached)
                await relay.cut()
                await relay.join()
            await until(lambda: set(heard.events()) == set(made))
        await relay.cut()
        assert list(dict.fromkeys(heard.events())) == made, "the first of each, oldest first"
        assert "offline" in heard.payloads(TOPICS.status), "the will"


async def test_a_broker_that_hangs_is_given_up_and_gets_everything_when_it_wakes(tmp_path, store):
    with mosquitto(tmp_path) as broker, listener(broker) as heard:
        await until(lambda: heard.is_there)
        up = mirror(store, broker, answer_seconds=0.3)
        async with running(up.run()):
            await until(lambda: up.status().state is ConnectionState.CONNECTED)
            broker.hang()
            made = await happen(store, 3)
            await until(lambda: up.status().state is ConnectionState.AWAY)
            assert str(up.status().reason) == "no answer within 0.3 s"
            broker.wake()
            await until(lambda: set(heard.events()) == set(made))
            await until(lambda: up.status().state is ConnectionState.CONNECTED)
            await until(lambda: heard.payloads(TOPICS.status)[-1] == "online")


async def test_a_wrong_password_is_refused_until_it_is_right(tmp_path, store):
    with mosquitto(tmp_path) as broker:
        broker.configure(broker.passwords(gate="another"))
        broker.kill()
        broker.start()
        up = mirror(store, broker, username="gate", password="secret")
        async with running(up.run()):
            await until(lambda: up.status().state is ConnectionState.REFUSED)
            assert str(up.status().reason).startswith("the broker refuses the connection: the user")
            broker.passwords(gate="secret")
            broker.reload()
            await until(lambda: up.status().state is ConnectionState.CONNECTED)


async def test_a_topic_that_the_user_may_not_write_is_told_and_keeps_no_event_back(tmp_path, store):
    rights = tmp_path / "rights"
    rights.write_text(f"topic read #\ntopic write {TOPICS.event}\ntopic write {TOPICS.status}\ntopic write {ENTRY}\n")
    rights.chmod(0o600)
    config = f"allow_anonymous true\nacl_file {rights}"
    with mosquitto(tmp_path, config) as broker, listener(broker) as heard:
        await until(lambda: heard.is_there)
        up = mirror(store, broker)
        async with running(up.run()):
            await until(lambda: up.status().state is ConnectionState.REFUSED)
            assert str(up.status().reason) == f"the broker does not take {TOPICS.verdict}: the user may not do that"
            made = await happen(store, 2)
            await until(lambda: heard.events() == made)
            assert heard.payloads(TOPICS.status) == ["online"], "the line lasts"
            rights.write_text(f"topic read #\ntopic write {TOPICS.root}/#\n")
            broker.reload()
            await until(lambda: up.status().state is ConnectionState.CONNECTED)
            await until(lambda: heard.payloads(TOPICS.verdict))


async def test_an_event_that_is_refused_is_not_passed_over(tmp_path, store):
    rights = tmp_path / "rights"
    rights.write_text(f"topic read #\ntopic write {TOPICS.status}\n")
    rights.chmod(0o600)
    with mosquitto(tmp_path, f"allow_anonymous true\nacl_file {rights}") as broker, listener(broker) as heard:
        await until(lambda: heard.is_there)
        up = mirror(store, broker)
        before = (await up.hold()).read_to
        async with running(up.run()):
            made = await happen(store, 2)
            await until(lambda: up.status().state is ConnectionState.REFUSED)
            assert await mark_of(store) == before
            rights.write_text(f"topic read #\ntopic write {TOPICS.root}/#\n")
            broker.reload()
            await until(lambda: heard.events() == made)


async def test_a_refused_topic_delays_no_other_one(tmp_path, store):
    """Refused topics are tried again after a minute; what the broker takes is there at once."""
    rights = tmp_path / "rights"
    rights.write_text(f"topic read #\ntopic write {TOPICS.status}\ntopic write {ENTRY}\n")
    rights.chmod(0o600)
    shown = Shown()
    with mosquitto(tmp_path, f"allow_anonymous true\nacl_file {rights}") as broker, listener(broker) as heard:
        await until(lambda: heard.is_there)
        up = mirror(store, broker, shown, backoff=Backoff(first=60.0, longest=60.0))
        await up.hold()
        await happen(store)
        async with running(up.run()):
            await until(lambda: up.status().state is ConnectionState.REFUSED)
            for place, position in enumerate((GatePosition.OPENING, GatePosition.OPEN, GatePosition.CLOSED), 2):
                shown.lanes = (lane(position=position),)
                store.changes.bump()
                await until(lambda place=place: len(heard.payloads(ENTRY)) == place)


async def test_events_before_and_after_a_refused_one_are_not_sent_again_and_again(tmp_path, store):
    shown, limit = Shown(), "allow_anonymous true\nmessage_size_limit "
    with mosquitto(tmp_path, f"{limit}3000") as broker, listener(broker) as heard:
        await until(lambda: heard.is_there)
        up = mirror(store, broker, shown)
        await up.hold()
        before, (refused,), after = await happen(store, 3), await happen(store, long=5000), await happen(store, 3)
        async with running(up.run()):
            await until(lambda: up.status().state is ConnectionState.REFUSED)
            assert str(up.status().reason) == f"the broker does not take {TOPICS.event}: the message is too long"
            await until_mark(store, before[-1])
            for place, position in enumerate((GatePosition.OPENING, GatePosition.OPEN, GatePosition.CLOSED), 2):
                shown.lanes = (lane(position=position),)
                store.changes.bump()
                await until(lambda place=place: len(heard.payloads(ENTRY)) == place)
            assert heard.events() == before + after
            broker.configure(f"{limit}0")
            broker.reload()
            await until(lambda: heard.events() == [*before, *after, refused, *after])
            await until(lambda: up.status().state is ConnectionState.CONNECTED)


async def test_tls_is_proven_both_ways(tmp_path, store):
    pair, other = write_pair(tmp_path), write_pair(tmp_path, stem="other")
    with mosquitto(tmp_path / "broker", tls=pair, asks=True) as broker:
        own = {"certificate": str(pair.certificate), "key": str(pair.key)}
        for wrong, why in (
            ({"ca_file": str(other.certificate), **own}, "the broker's certificate is not accepted: self"),
            ({"ca_file": str(tmp_path / "none.pem")}, "`ca_file` "),
            ({**own, "key": str(other.key)}, "`certificate` "),
        ):
            stranger = mirror(store, broker, is_encrypted=True, **wrong)
            async with running(stranger.run()):
                await until(lambda one=stranger: one.status().state is not None)
                assert (stranger.status().state, str(stranger.status().reason)[: len(why)]) == (
                    ConnectionState.REFUSED,
                    why,
                )
        without = mirror(store, broker, is_encrypted=True, ca_file=str(pair.certificate))
        async with running(without.run()):
            await until(lambda: "certificate" in str(without.status().reason))
        known = mirror(store, broker, is_encrypted=True, ca_file=str(pair.certificate), **own)
        async with running(known.run()):
            await until(lambda: known.status().state is ConnectionState.CONNECTED)


@pytest.mark.parametrize("is_there", [True, False])
async def test_it_ends_at_whatever_moment_it_is_ended(tmp_path, store, is_there):
    with mosquitto(tmp_path) as broker:
        port = broker.port if is_there else free_port()
        for turns in range(0, 120, 2):
            task = asyncio.get_running_loop().create_task(mirror(store, port).run())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            _, alive = await asyncio.wait([task], timeout=20)
            assert not alive, turns
