"""Events go up each exactly once and in order, whatever is killed, cut or forgotten on the way."""

from __future__ import annotations

import asyncio
import json

import nats
import pytest
from at_work import opened_store, running
from fleet_scene import NAME, connection, events_up, gate_opened, happen
from nats.js.api import StreamConfig
from nats_server import nats_server
from waiting import until

from gateway.domain.passages import Moment
from gateway.domain.server_lines import ConnectionState
from gateway.fleet.events_up import MOST_IN_FLIGHT
from gateway.fleet.line import FleetLine
from gateway.fleet.names import STREAM, STREAM_SUBJECTS, FleetName, Outgoing
from gateway.runtime.clock import SystemClock
from gateway.store import Consumer, Entry, ReadCursor

SUBJECT = NAME.events("event")


async def in_stream(broker, subject: str = SUBJECT) -> list[int]:
    """The ids of all events of a subject, in the order of the stream."""
    js = broker.jetstream()
    info = await js.stream_info(STREAM, subjects_filter=subject)
    sub = await js.subscribe(subject, ordered_consumer=True)
    try:
        return [
            json.loads((await sub.next_msg(timeout=30)).data)["id"]
            for _ in range((info.state.subjects or {}).get(subject, 0))
        ]
    finally:
        await sub.unsubscribe()


async def mark_of(store) -> int:
    return next(mark.read_to for mark in await store.read_cursors.all() if mark.consumer.list == "event")


async def test_what_was_recorded_goes_up_oldest_first_and_what_is_recorded_follows(server, broker, store):
    made = await happen(store, 150)
    up = events_up(store)
    async with running(connection(server.url, up).run()):
        await until(lambda: up.sent_to == made[-1])
        assert await in_stream(broker) == made
        made += await happen(store)
        await until(lambda: up.sent_to == made[-1])
    assert await in_stream(broker) == made
    assert await mark_of(store) == made[-1]
    last = await broker.jetstream().get_last_msg(STREAM, SUBJECT)
    assert last.headers["Nats-Msg-Id"] == f"north.gate-1.event.{await store.box_number()}.{made[-1]}"
    assert json.loads(last.data)["description"] == "The gate opened, 0."


async def test_camera_events_go_up_beside_events_each_once_though_the_mark_was_lost(server, broker, store):
    at = SystemClock().wall().micros
    moments = tuple(Moment(201, "Vehicle passed", "", at - 5, at + 5, clock_trusted=True) for _ in range(70))
    made = (
        await store.journal.record(Entry(events=(gate_opened("The gate opened"),), moments=moments))
    ).camera_event_ids
    for number in made:
        await store.camera_events.mark_ready(number)
    for _ in range(2):
        up = events_up(store)
        async with running(connection(server.url, up).run()):
            await until(lambda up=up: counted(up))
        await forget(store, to=0, name="camera_event")
        await asyncio.sleep(0.2)  # the stream's window of 0.1 s must have passed
    assert await in_stream(broker, NAME.events("camera_event")) == list(made)


async def test_a_crash_between_acknowledgement_and_mark_sends_nothing_twice(server, broker, store):
    """The mark on disk is put back, and the window in which the stream itself drops copies is over."""
    made = await happen(store, 100)
    up = events_up(store)
    async with running(connection(server.url, up).run()):
        await until(lambda: up.sent_to == made[-1])
    for back_to in (0, made[20], made[70]):
        await forget(store, to=back_to)
        await asyncio.sleep(0.2)  # the stream's window of 0.1 s must have passed
        await sends_up_to(made[-1], server, store)
        made += await happen(store)
        await sends_up_to(made[-1], server, store)
        assert await in_stream(broker) == made


async def sends_up_to(newest: int, server, store) -> None:
    up = events_up(store)
    async with running(connection(server.url, up).run()):
        await until(lambda: up.sent_to == newest)


async def forget(store, *, to: int, name: str = "event") -> None:
    """Put the mark back, as if its last writings had been lost."""
    consumer = Consumer("fleet", name, "stream")
    await store.read_cursors.forget([consumer])
    await store.read_cursors.save([ReadCursor(consumer, to, read_at=1, began_at=1)])


async def test_a_gap_in_the_last_batch_is_filled(server, broker, store):
    """A leader may change in the middle of a batch: messages before it are lost, and later ones are stored."""
    made = await happen(store, 10)
    box, client = await store.box_number(), await nats.connect(server.url)
    kept = [number for number in made if number not in (made[0], made[4], made[5])]
    await FleetLine(client).put(
        [
            Outgoing(
                SUBJECT,
                json.dumps({"id": number}).encode(),
                NAME.message_id("event", box=box, record_id=number),
                headers={"Fleet-Batch": f"0 {made[0]}"},
            )
            for number in kept
        ]
    )
    await client.close()
    await asyncio.sleep(0.2)  # the stream's window of 0.1 s must have passed
    for _ in range(2):
        await sends_up_to(made[-1], server, store)
        assert sorted(await in_stream(broker)) == made
        await forget(store, to=0)  # a crash right after the gap was filled
        await asyncio.sleep(0.2)  # likewise


@pytest.mark.long("kills in the middle of hundreds of records")
async def test_a_broker_that_is_killed_again_and_again_gets_everything_once(server, broker, store):
    up = events_up(store)
    made = await happen(store, 300)
    async with running(connection(server.url, up).run()):
        for _ in range(4):
            reached = up.sent_to
            await until(lambda reached=reached: up.sent_to > reached)
            server.kill()
            made += await happen(store, 150)
            server.start()
        await until(lambda: up.sent_to == made[-1])
    async with await nats.connect(server.url) as client:
        assert await in_stream(client) == made


async def test_a_line_that_is_cut_again_and_again_loses_and_repeats_nothing(broker, relay, store):
    up = events_up(store)
    line = connection(f"nats://127.0.0.1:{relay.port}", up)
    made = await happen(store, 200)
    async with running(line.run()):
        for _ in range(6):
            reached = up.sent_to
            made += await happen(store, 30)
            await until(lambda reached=reached: up.sent_to > reached)
            await relay.cut()
            await relay.join()
        await until(lambda: up.sent_to == made[-1])
    assert await in_stream(broker) == made


async def test_without_a_stream_it_says_so_and_goes_on_once_there_is_one(server, broker, store):
    js = broker.jetstream()
    await js.delete_stream(STREAM)
    (made,) = await happen(store)
    up = events_up(store)
    line = connection(server.url, up)
    async with running(line.run()):
        await until(lambda: line.status().state is ConnectionState.REFUSED)
        assert line.status().reason == f"no stream takes {SUBJECT}: make it with `edge-gateway fleet prepare`"
        await js.add_stream(StreamConfig(name=STREAM, subjects=[STREAM_SUBJECTS], allow_direct=True))
        await until(lambda: up.sent_to == made)
        await until(lambda: line.status().state is ConnectionState.CONNECTED)


async def test_after_a_time_in_which_everything_expired_records_stay_in_order(server, broker, store):
    up = events_up(store)
    async with running(connection(server.url, up).run()):
        (first,) = await happen(store)
        await until(lambda: up.sent_to == first)
        for _ in range(2):
            await broker.jetstream().purge_stream(STREAM)
            at_once = tuple(gate_opened(f"The gate opened, {number}.") for number in range(10))
            made = list((await store.journal.record(Entry(events=at_once))).event_ids)
            await until(lambda newest=made[-1]: up.sent_to == newest)
            assert await in_stream(broker) == made


async def test_a_stream_that_acknowledges_nothing_is_refused_with_the_reason(server, broker, store):
    js = broker.jetstream()
    await js.delete_stream(STREAM)
    await js.add_stream(StreamConfig(name=STREAM, subjects=[STREAM_SUBJECTS], allow_direct=True, no_ack=True))
    line = connection(server.url, events_up(store))
    async with running(line.run()):
        await until(lambda: line.status().state is ConnectionState.REFUSED)
    assert line.status().reason.startswith(f"the stream {STREAM} must acknowledge")


@pytest.mark.long("a real NATS server")
async def test_a_message_that_is_too_long_with_its_headers_keeps_the_line(tmp_path, store):
    """The server would end the connection over it, and with it commands and the claims of shared areas."""
    most = 1024
    with nats_server(tmp_path / "nats", f"max_payload: {most}") as server:
        async with await nats.connect(server.url) as client:
            await client.jetstream().add_stream(
                StreamConfig(name=STREAM, subjects=[STREAM_SUBJECTS], allow_direct=True)
            )
            ((_, body),) = await store.events.json_after((await happen(store))[0] - 1, limit=1)
            await happen(store, long=most - len(body) - 20)
            line = connection(server.url, events_up(store))
            async with running(line.run()):
                await until(lambda: line.status().state is ConnectionState.REFUSED)
                assert "longer than the server takes" in line.status().reason
                await client.flush()
                assert (await client.jetstream().stream_info(STREAM)).state.messages == 1
        assert "maximum payload" not in (server.folder / "nats-server.log").read_text().lower()


async def test_gateways_of_one_stream_do_not_take_each_others_events_for_their_own(server, broker, store, tmp_path):
    other = FleetName("north", "gate-2")
    (tmp_path / "other").mkdir()
    async with opened_store(tmp_path / "other") as second:
        ups = (events_up(store), events_up(second, other))
        mine, theirs = await happen(store, 90), await happen(second, MOST_IN_FLIGHT + 1)
        async with running(connection(server.url, ups[0]).run(), connection(server.url, ups[1], name=other).run()):
            await until(lambda: ups[0].sent_to == mine[-1] and ups[1].sent_to == theirs[-1])
    assert await in_stream(broker) == mine
    assert await in_stream(broker, other.events("event")) == theirs


async def test_a_replaced_box_whose_ids_begin_anew_sends_all_of_its_events(server, broker, store, tmp_path):
    up = events_up(store)
    async with running(connection(server.url, up).run()):
        await happen(store, 5)
        await until(lambda: up.sent_to > 0 and not up.waiting)
        await until(lambda: counted(up))
    (tmp_path / "new").mkdir()
    async with opened_store(tmp_path / "new") as replaced:
        again = events_up(replaced)
        made = await happen(replaced, 3)
        async with running(connection(server.url, again).run()):
            await until(lambda: again.sent_to == made[-1])
        assert (await in_stream(broker))[-3:] == made


async def counted(up) -> bool:
    await up.count()
    return up.waiting == 0


async def test_what_waits_is_counted_while_nobody_answers(store):
    up = events_up(store)
    await up.hold()
    await happen(store, 7)
    await up.count()
    assert up.waiting == 7
