"""Records of all gateways in PostgreSQL, each exactly once, whatever is killed, broken or hostile on the way."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path

import nats
import pytest
from at_work import running
from fleet_scene import NAME, connection, events_up, happen
from forked import Forked
from nats_server import NatsServer
from postgres_server import PostgresServer, postgres_server
from running_gateway import typed
from waiting import until

from gateway.fleet.collector import Collector, DatabaseAway, RefusedRow, row_of
from gateway.fleet.connection import FleetServer
from gateway.fleet.line import FleetLine
from gateway.fleet.names import STREAM, FleetName, Outgoing, StreamMessage
from gateway.fleet.operator import prepare
from gateway.runtime.clock import SystemClock, iso_utc
from gateway.runtime.supervision import Backoff

pytestmark = pytest.mark.long("a real PostgreSQL and real NATS servers")

asyncpg = pytest.importorskip("asyncpg", reason="asyncpg is missing: `make check` installs what tests need")

CONFIG = Path(__file__).parents[3] / "config"
SITES = [FleetName("north", "gate-1"), FleetName("north", "gate-2"), FleetName("south", "gate-1")]
SUBJECT = NAME.events("event")


@pytest.fixture
def server(real_server) -> NatsServer:
    return real_server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as running:
        yield running


@pytest.fixture
async def database(postgres, broker) -> PostgresServer:
    """The server without tables, beside a stream that is empty."""
    postgres.ask("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    await broker.jetstream().delete_stream(STREAM)
    await prepare(FleetLine(broker), days=1, replicas=1)
    return postgres


def record(number: int, *, at: str = "2026-11-25T10:00:00.000Z", **more) -> bytes:
    return json.dumps({"id": number, "name": "Gate opened", "date_at": at, "lane_id": "entry", **more}).encode()


def outgoing(name: FleetName, number: int, **more) -> Outgoing:
    return Outgoing(name.events("event"), record(number, **more), name.message_id("event", box=7, record_id=number))


async def fill(broker, count: int, *, begin: int = 1) -> int:
    """Put records of each site into the stream; return how many."""
    line = FleetLine(broker)
    for name in SITES:
        for first in range(begin, begin + count, 64):
            numbers = range(first, min(first + 64, begin + count))
            await line.put([outgoing(name, number) for number in numbers])
    return count * len(SITES)


def collector(server: NatsServer, database: PostgresServer, told: list[str] | None = None) -> Collector:
    return Collector(
        server=FleetServer(url=server.url, credentials="", ca_file=None, name="test", inbox="_INBOX.collector"),
        database=database.url,
        told=(told if told is not None else []).append,
        backoff=Backoff(first=0.05, longest=0.2),
    )


def counted(database: PostgresServer, table: str = "event") -> tuple[int, int]:
    """The number of rows, and that of different message ids."""
    one, other = database.ask(f"SELECT count(*), count(DISTINCT message_id) FROM {table}").split("|")
    return int(one), int(other)


def rows(database: PostgresServer) -> int:
    """The number of events, also before there is a table."""
    return counted(database)[0] if database.ask("SELECT to_regclass('event')") else 0


async def test_what_gateways_record_is_in_the_tables_as_the_interface_shows_it(server, broker, store, database):
    up, (made, *_) = events_up(store), await happen(store, 5)
    async with running(connection(server.url, up).run()):
        await until(lambda: up.sent_to == made + 4)
    shown = await asyncio.to_thread(
        typed, "fleet", "collect", "--once", "--server", server.url, EDGE_GATEWAY_FLEET_DATABASE=database.url
    )
    assert (shown.returncode, shown.stdout) == (0, "5 records collected\n"), shown.stderr
    row = database.ask(f"SELECT site, gateway, id, name, lane, body->>'description' FROM event WHERE id = {made}")
    assert row == f"north|gate-1|{made}|Gate opened|entry|The gate opened, 0."
    ((_, text), *_) = await store.events.json_after(made - 1, limit=1)
    assert json.loads(database.ask(f"SELECT body FROM event WHERE id = {made}")) == json.loads(text)


async def test_months_have_partitions_and_dates_of_wrong_clocks_one_for_all(server, broker, database):
    dates = ["2026-11-30T23:59:59.999Z", "2026-12-01T00:30:00+01:00", "2026-12-31T23:59:59Z", "1970-01-01T00:00:01Z"]
    await FleetLine(broker).put([outgoing(NAME, number, at=at) for number, at in enumerate(dates, 1)])
    await collector(server, database).collect(once=True)
    placed = database.ask("SELECT tableoid::regclass, id FROM event ORDER BY id").splitlines()
    assert placed == ["event_2026_11|1", "event_2026_11|2", "event_2026_12|3", "event_other|4"]


@pytest.mark.parametrize("seed", range(2))
async def test_a_collector_that_is_killed_again_and_again_repeats_and_loses_nothing(server, broker, database, seed):
    """The process is killed at moments that the seed draws, also within a transaction."""
    draw, expected, began = random.Random(seed), 0, 1
    for _ in range(4):
        expected += await fill(broker, 400, begin=began)
        began += 400
        process = started(server, database)
        reached = rows(database)
        if draw.random() < 0.5:  # it has begun to write
            await until(lambda reached=reached: has_more(database, reached))
        await asyncio.sleep(draw.uniform(0, 0.1))  # any moment will do
        process.kill()
        await asyncio.to_thread(process.wait, timeout=30)
    await until(lambda: collected(server, database))
    assert counted(database) == (expected, expected)
    assert database.ask("SELECT count(DISTINCT (site, gateway)) FROM event") == str(len(SITES))


async def has_more(database: PostgresServer, than: int) -> bool:
    return await asyncio.to_thread(rows, database) > than


def started(server: NatsServer, database: PostgresServer) -> Forked:
    """The collector as a process."""
    words = ("gateway", "fleet", "collect", "--server", server.url, "--database", database.url)
    with Path(os.devnull).open("wb") as nowhere:
        return Forked(*words, output=nowhere.fileno(), errors=nowhere.fileno())


async def collected(server: NatsServer, database: PostgresServer) -> bool:
    """Collect all; False while the session of a killed collector still has the lock."""
    try:
        await collector(server, database).collect(once=True)
    except DatabaseAway:
        return False
    return True


async def test_it_goes_on_by_itself_when_the_database_and_the_server_were_killed(server, broker, database):
    told: list[str] = []
    expected = await fill(broker, 200)
    async with running(collector(server, database, told).run()):
        await until(lambda: has_more(database, expected - 1))
        await asyncio.to_thread(database.kill)
        expected += await fill(broker, 200, begin=201)
        await until(lambda: told)
        await asyncio.to_thread(database.start)
        await until(lambda: has_more(database, expected - 1))
        await asyncio.to_thread(server.kill)
        await asyncio.to_thread(server.start)
        client = await nats.connect(server.url)
        expected += await fill(client, 100, begin=401)
        await client.close()
        await until(lambda: has_more(database, expected - 1))
    assert counted(database) == (expected, expected)
    assert [line for line in told if line.endswith("trying again")]
    assert "collecting again" in told


async def test_a_stream_that_is_made_anew_and_sent_again_repeats_no_row(server, broker, database):
    expected = await fill(broker, 100)
    await collector(server, database).collect(once=True)
    await broker.jetstream().delete_stream(STREAM)
    await prepare(FleetLine(broker), days=1, replicas=1)
    expected = await fill(broker, 130)
    await collector(server, database).collect(once=True)
    assert counted(database) == (expected, expected)


async def test_what_has_left_the_stream_uncollected_is_told(server, broker, database):
    told: list[str] = []
    await fill(broker, 2)
    await collector(server, database, told).collect(once=True)
    await fill(broker, 10, begin=3)
    await broker.jetstream().purge_stream(STREAM, keep=5)
    await collector(server, database, told).collect(once=True)
    assert told == ["25 messages had left the stream before they were collected"]


async def test_a_second_collector_waits_and_takes_over(server, broker, database):
    first, second = collector(server, database), collector(server, database)
    expected = await fill(broker, 10)
    async with running(second.run()):
        async with running(first.run()):
            await until(lambda: first.records + second.records == expected)
        expected += await fill(broker, 10, begin=11)
        await until(lambda: has_more(database, expected - 1))
    assert counted(database) == (expected, expected)


async def test_hostile_messages_stop_nothing_and_are_kept_aside(server, broker, database):
    """A stolen key of a gateway may put anything on the gateway's own subjects."""
    js, mine = broker.jetstream(), NAME.message_id("event", box=7, record_id=1)
    good = [(SUBJECT, record(2), {"Nats-Msg-Id": NAME.message_id("event", box=7, record_id=2), "Status": "503"})]
    bad = [
        (SUBJECT, b"\xff\xfe", {}),
        (SUBJECT, b"[" * 100_000, {}),
        (SUBJECT, b"{}", {}),
        (SUBJECT, b"[]", {"Status": "409"}),
        (SUBJECT, record(1), {}),
        (SUBJECT, record(1), {"Nats-Msg-Id": NAME.message_id("event", box=7, record_id=9)}),
        (SUBJECT, record(1), {"Nats-Msg-Id": f"north.gate-1.event.{'7' * 3000}.1"}),
        (SUBJECT, record(1, name="a\0b"), {"Nats-Msg-Id": mine + "x"}),
        (SUBJECT, record(1, at="yesterday"), {"Nats-Msg-Id": mine}),
        (f"{SUBJECT}.more", record(1), {}),
        ("events.north.gate-1.other", record(1), {}),
    ]
    for subject, body, headers in [*bad, *good]:
        await js.publish(subject, body, headers=headers)
    await raw(server, b"PUB events.north.gate-1.\xff\xfe 2\r\n{}\r\nPUB events.north.gate-1.a\0b 2\r\n{}\r\n")
    await raw(server, b"HPUB events.north.gate-1.event 16 18\r\nNATS/1.0 \xff\xff\xff\r\n\r\n{}\r\n")
    one = collector(server, database)
    await one.collect(once=True)
    assert (one.records, one.refused) == (1, len(bad) + 3)
    assert counted(database) == (1, 1)
    assert database.ask("SELECT count(*) FROM refused_message WHERE why <> ''") == str(len(bad) + 3)


async def raw(server: NatsServer, words: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false,"headers":true}\r\n' + words + b"PING\r\n")
    assert (await reader.readline()).strip() == b"PONG"
    writer.close()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (record(1, name="\ud800"), "no JSON that can be kept"),
        (record(1, name="a\0b"), "NUL"),
        (b'{"id":1,"x":NaN}', "NaN"),
        (b'{"id":1,"date_at":"2026-11-25T10:00:00Z","x":1e999}', "it is no JSON|Out of range"),
        (record(2**70), "no id"),
        (record(1, at="2026-11-25T10:00:00"), "no zone"),
        (record(1, at="0001-01-01T00:00:00+23:00"), "no JSON that can be kept"),
    ],
)
def test_what_postgresql_could_not_keep_is_refused(body, why):
    message_id = NAME.message_id("event", box=7, record_id=1)
    found = row_of(StreamMessage(SUBJECT, body, at=1, sequence=1, message_id=message_id))
    assert isinstance(found, RefusedRow)
    assert any(one in found.why for one in why.split("|")), found.why


def asked_by_grafana() -> dict[str, str]:
    """The statements of the shipped dashboard, with its variables and macros filled in as Grafana does."""
    board = json.loads((CONFIG / "grafana" / "fleet-events.json").read_text("utf-8"))
    statements = {one["title"]: target["rawSql"] for one in board["panels"] for target in one["targets"]}
    (site,) = [one["query"] for one in board["templating"]["list"] if one["name"] == "site"]
    return {title: filled_in(sql) for title, sql in statements.items()} | {"Site": site}


def filled_in(sql: str) -> str:
    sql = re.sub(r"\$__timeFilter\((\w+)\)", r"\1 BETWEEN now() - interval '24 hours' AND now()", sql)
    sql = re.sub(r"\$__timeGroupAlias\((\w+), \$__interval\)", r'floor(extract(epoch from \1)/60)*60 AS "time"', sql)
    sql = sql.replace("${site:sqlstring}", "'north','south'")
    assert "$" not in sql
    return sql


async def test_the_dashboard_asks_what_the_tables_know(server, broker, database):
    now = iso_utc(SystemClock().wall().micros)
    told = [{"type": 106, "subcategory": 0}, {"type": 103, "subcategory": 1}, {"type": 132, "subcategory": 3}]
    messages = [outgoing(name, number, at=now, **one) for name in SITES for number, one in enumerate(told, 1)]
    camera = Outgoing(
        NAME.events("camera_event"), record(1, at=now), NAME.message_id("camera_event", box=7, record_id=1)
    )
    await FleetLine(broker).put([*messages, camera])
    await collector(server, database).collect(once=True)
    answers = {title: await asyncio.to_thread(database.ask, sql) for title, sql in asked_by_grafana().items()}
    assert answers["Gateways that sent events"] == answers["Vehicles"] == answers["Access denied"] == "3"
    assert (answers["Alarms"], answers["Came more than an hour late"]) == ("3", "0")
    assert answers["Messages that are no records"] == "0"
    assert answers["Site"].splitlines() == ["north", "south"]
    assert {line.split("|")[1] for line in answers["Vehicles, by site"].splitlines()} == {"north", "south"}
    assert len(answers["Last alarms"].splitlines()) == len(answers["Gateways"].splitlines()) == len(SITES)
    assert not [title for title, answer in answers.items() if not answer]


async def test_a_wrong_database_is_a_fault_that_names_no_password(server, broker, postgres):
    for url, said in (
        (f"postgresql://tests:hunter2@127.0.0.1:{postgres.port}/nowhere", 'database "nowhere" does not exist'),
        ("http://tests:hunter2@127.0.0.1/", "--database must be postgresql://"),
    ):
        shown = await asyncio.to_thread(typed, "fleet", "collect", "--once", "--server", server.url, "--database", url)
        assert shown.returncode in (1, 2)
        assert said in shown.stderr
        assert "hunter2" not in shown.stderr + shown.stdout
