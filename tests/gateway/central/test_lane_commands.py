"""Central's events that command gates: fresh ones, once, and none from before the start."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from set_machine import PushedClock
from structlog.testing import capture_logs
from waiting import until

from gateway.central.central_link import notices
from gateway.central.client.state import CentralState
from gateway.central.lane_commands import CentralNow, CommandNumbers, CommandRules, CommandVerdict, LaneCommands, judge
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.errors import CentralUnavailable, CommandRefused
from gateway.domain.events import EventKind
from gateway.runtime.clock import SystemClock
from gateway.store import Entry, EventFilter
from simulation.far_ends.central import Faults

OPEN, CLOSE = 77, 78
MEANINGS = (CommandNumbers(OPEN, GateAction.OPEN), CommandNumbers(CLOSE, GateAction.CLOSE, category=4, subcategory=1))


class Gates:
    """Records commands as lanes do, and says whether they may be given."""

    def __init__(self, store):
        self._store = store
        self.given = []
        self.refusal = ""

    async def command(self, *, device_id, action, source, command_id):
        command = Command(command_id, device_id, "north", action, source, 1, 2, CommandState.RECORDED)
        await self._store.journal.record(Entry(events=(), commands=(command,)))
        self.given.append((device_id, action.value, source))
        if self.refusal:
            raise CommandRefused(self.refusal)
        return command


@pytest.fixture
def gates(store):
    return Gates(store)


@pytest.fixture
def commands(client, store, gates):
    def make(*, up=3600.0, clock=None, client=client, **changed):
        """With it up for so many seconds."""
        clock = clock or PushedClock()
        wanted = {"meanings": MEANINGS, "gates": (102, 101), "zone": UTC, "every": 0.05, "fresh": 20.0}
        clock.pushed -= up
        made = LaneCommands(
            client=client,
            lanes=gates,
            commands=store.commands,
            journal=store.journal,
            clock=clock,
            rules=CommandRules(**(wanted | changed)),
        )
        clock.pushed += up
        return made

    return make


@pytest.fixture
def tell(central):
    """An event at central; returns its id."""

    def put(device_id, kind, *, age=1.0, **fields):
        at = SystemClock().wall().as_datetime() - timedelta(seconds=age)
        record = {"device_id": device_id, "type": kind, "category": 0, "subcategory": 0, "name": "", "description": ""}
        return central.tables.events.add({**record, "date_at": at.isoformat(), "data": "", **fields})["id"]

    return put


async def late(store):
    page = await store.events.page(EventFilter(types=(int(EventKind.CENTRAL_COMMAND_LATE),)))
    return [event.description for event in page.events]


async def test_a_fresh_event_commands_its_gate_once(central, commands, gates, tell):
    looking = commands()
    await looking.look()
    assert gates.given == []
    first = tell(101, OPEN)
    tell(101, 5)
    tell(103, OPEN)  # no gate
    tell(102, CLOSE)  # other numbers than the map asks for
    second = tell(102, CLOSE, category=4, subcategory=1)
    for _ in range(3):
        await looking.look()
    assert gates.given == [
        (101, "open", f"central, event {first}"),
        (102, "close", f"central, event {second}"),
    ]


async def test_a_late_event_commands_nothing_and_is_told_once(store, commands, gates, tell):
    looking = commands()
    number = tell(101, OPEN, age=30)
    tell(101, OPEN, age=-30)
    for _ in range(2):
        await looking.look()
    assert gates.given == []
    told = await late(store)
    assert len(told) == 2
    assert any(f"its event {number}" in text and "too late" in text for text in told)


async def test_what_did_not_act_stays_undone_for_as_long_as_central_lists_it(store, commands, gates, tell):
    """On a quiet site the same events are at the head of the list at each look."""
    clock = PushedClock()
    looking = commands(clock=clock)
    tell(101, OPEN, age=30)
    tell(101, OPEN, age=-1000)
    for seconds in range(0, 2100, 15):
        clock.pushed = float(seconds)
        await looking.look()
    assert gates.given == []
    assert len(await late(store)) == 2


async def test_what_was_commanded_before_the_start_is_not_carried_out(store, commands, gates, tell):
    looking = commands(up=0)
    tell(101, OPEN, age=10)
    await looking.look()
    assert gates.given == []
    assert await late(store) == []


async def test_what_the_last_run_carried_out_is_known_on_disk(commands, gates, tell):
    """Also where the clocks say that it was given after the start."""
    tell(101, OPEN)
    await commands().look()
    await commands().look()
    assert len(gates.given) == 1


@pytest.fixture
def bend(central, monkeypatch):
    """Has central list its events otherwise than it keeps them."""

    def put(change):
        def bent(real):
            def batch(*args, **kwargs):
                made = real(*args, **kwargs)
                cursor = made.next_cursor and str(made.next_cursor)
                return replace(made, records=[change(record) for record in made.records], next_cursor=cursor)

            return batch

        for name in ("page", "older_than"):
            monkeypatch.setattr(central.tables.events, name, bent(getattr(central.tables.events, name)))

    return put


async def test_numbers_as_text_and_high_ids_command_too(central, commands, gates, tell, bend):
    bend(lambda record: {name: str(value) if isinstance(value, int) else value for name, value in record.items()})
    central.tables.events.next_id = 2**53 - 200
    tell(102, CLOSE, category=4, subcategory=1, age=3)
    for _ in range(150):  # more than a page of what means nothing
        tell(101, 5, age=2)
    last = tell(101, OPEN)
    looking = commands()
    for _ in range(2):
        await looking.look()
    assert [given[:2] for given in gates.given] == [(102, "close"), (101, "open")]
    assert gates.given[1][2] == f"central, event {last}"
    assert looking.unreadable == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": None},
        {"id": "x7"},
        {"id": 2**53 + 1},
        {"id": 0},
        {"id": True},
        {"device_id": None},
        {"device_id": "north"},
    ],
)
async def test_what_is_passed_over_is_counted_for_as_long_as_central_lists_it(commands, gates, tell, bend, wrong):
    tell(101, OPEN)
    bend(lambda record: {**record, **wrong})
    looking = commands()
    with capture_logs() as logs:
        for _ in range(3):
            await looking.look()
            assert looking.unreadable == 1
    assert gates.given == []
    assert [line["event"] for line in logs if line["log_level"] == "warning"] == ["central_events_unreadable"]
    bend(lambda record: {**record, "id": 5000, "device_id": 101})
    await looking.look()
    assert looking.unreadable == 0


def test_what_is_passed_over_is_a_notice():
    (said,) = notices(CentralState(), None, clock_alert_seconds=30, unreadable_events=1200)
    assert str(said.text).startswith("1,200 of central's events were not carried out")


async def test_events_that_do_not_come_in_time_are_asked_for_fewer_at_once(central, connect, commands, gates, tell):
    central.faults = Faults(paths="/v1/event/list", record_seconds=0.006)
    tell(101, OPEN)
    await commands(client=connect(timeout_seconds=0.4)).look()
    assert len(gates.given) == 1


async def test_a_refused_command_is_not_tried_again(commands, gates, tell):
    gates.refusal = "the closing loop is occupied"
    looking = commands()
    tell(101, OPEN)
    for _ in range(2):
        await looking.look()
    assert len(gates.given) == 1


async def test_a_burst_is_read_to_its_end_with_the_same_filter(central, commands, gates, tell):
    tell(102, OPEN, age=3)
    for _ in range(250):
        tell(101, 5, age=2)
    await commands().look()
    assert gates.given[0][:2] == (102, "open")
    asked = [request.body for request in central.requests if request.path == "/v1/event/list"]
    assert len(asked) >= 3
    assert all('"device_ids": [101, 102]' in body for body in asked)


async def test_events_that_are_old_are_not_walked_through(central, commands, tell):
    for _ in range(250):
        tell(101, 5, age=4000)
    await commands().look()
    assert sum(request.path == "/v1/event/list" for request in central.requests) == 1


async def test_it_goes_on_when_central_is_back(central, commands, gates, tell, running):
    looking = commands()
    central.faults = Faults(down=True)
    with pytest.raises(CentralUnavailable):
        await looking.look()
    async with running(looking.run()):
        await until(lambda: sum(request.path == "/v1/auth/login" for request in central.requests) >= 2)
        central.faults = Faults()
        tell(101, OPEN, age=0)
        await until(lambda: gates.given)


NOW = CentralNow(seconds=1_000_000.0, doubt=0.5, started=999_900.0)


@pytest.mark.parametrize(
    ("age", "verdict"),
    [
        (0, CommandVerdict.ACT),
        (19.4, CommandVerdict.ACT),
        (19.6, CommandVerdict.LATE),
        (-1.4, CommandVerdict.ACT),
        (-1.6, CommandVerdict.NOT_YET),
        (99.4, CommandVerdict.LATE),
        (99.6, CommandVerdict.BEFORE_START),
        (101, CommandVerdict.BEFORE_START),
    ],
)
def test_when_a_command_acts(age, verdict):
    at = datetime.fromtimestamp(NOW.seconds - age, UTC).isoformat()
    assert judge(at, NOW, fresh=20, zone=UTC) is verdict


@pytest.mark.parametrize("date_at", ["some time ago", "", None, 12, "9999-12-31T23:59:59"])
def test_a_time_that_says_nothing_is_no_command(date_at):
    assert judge(date_at, NOW, fresh=20, zone=UTC) in (CommandVerdict.UNDATED, CommandVerdict.NOT_YET)


def test_a_time_without_an_offset_is_the_sites():
    zone = ZoneInfo("America/Toronto")
    at = datetime.fromtimestamp(NOW.seconds, zone).replace(tzinfo=None).isoformat()
    assert judge(at, NOW, fresh=20, zone=zone) is CommandVerdict.ACT
    assert judge(at, NOW, fresh=20, zone=UTC) is not CommandVerdict.ACT


def test_without_any_known_time_nothing_acts():
    at = datetime.fromtimestamp(NOW.seconds, UTC).isoformat()
    unknown = CentralNow(NOW.seconds, float("inf"), NOW.started)
    assert judge(at, unknown, fresh=20, zone=UTC) is not CommandVerdict.ACT
