"""All lanes of a site over a real store: what drivers report reaches the right lane, and what it says is on disk."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from lane_drivers import OwnDrivers
from set_machine import PushedClock
from waiting import until

from drivers.contract import (
    CardPresented,
    DeviceConnected,
    DeviceLost,
    Feedback,
    GateMoved,
    GatePosition,
    KeysPressed,
    LossExplained,
    MessageRefused,
    NotPermitted,
    PlateSeen,
    PointChanged,
    PointState,
    TamperChanged,
)
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.credentials import Card, Credential, plate_alias, text_alias
from gateway.domain.errors import CommandRefused, NotFoundError, StoreError
from gateway.domain.events import Event
from gateway.domain.events import EventKind as E
from gateway.domain.travels import TRAVEL_EVENTS, seconds_of
from gateway.lanes import Lanes
from gateway.lanes.grants import SiteGrants
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.runner import LaneRunner
from gateway.lanes.snapshots import Phase
from gateway.runtime.clock import SystemClock
from gateway.runtime.supervision import Progress, Supervisor
from gateway.site import Role, Site
from gateway.store import Entry, EventFilter, Store
from gateway.store.cards.cards import StoredCard

SITE = Site.model_validate(
    {
        "site": {"name": "North"},
        "policy": {"stale_seconds": 60},  # what was said of a point once counts, however slow the machine is
        "links": [{"id": "plc", "url": "tcp://127.0.0.1:502"}, {"id": "desk", "url": "serial:/dev/ttyS0"}],
        "devices": [
            {"id": 101, "name": "Barrier", "driver": "modbus-gate", "link": "plc", "profile": "demo"},
            {"id": 102, "name": "Reader", "driver": "serial-reader", "link": "desk"},
        ],
        "lanes": [
            {
                "id": "main",
                "name": "Main",
                "direction": "two-way",
                "gate": 101,
                "readers": [102],
                "inputs": [
                    {"role": "arming", "device": 101, "point": "near"},
                    {"role": "far", "device": 101, "point": "far"},
                    {"role": "closing", "device": 101, "point": "under"},
                    {"role": "fire", "device": 101, "point": "fire"},
                    {"role": "key_switch", "device": 101, "point": "key"},
                ],
                "closes": "gateway",
            }
        ],
    }
)


class GateInMemory:
    """A gate that acknowledges everything and tells what it was asked."""

    device_id = 101

    def __init__(self) -> None:
        self.told: list[GateAction] = []
        self.asked: list[GateAction] = []
        self.free = asyncio.Event()
        self.free.set()

    async def run(self, reports):
        await asyncio.Event().wait()

    async def open(self, *, deadline, forbidden=None):
        await self._tell(GateAction.OPEN, forbidden)

    async def close(self, *, deadline, forbidden):
        await self._tell(GateAction.CLOSE, forbidden)

    async def stop(self, *, deadline, forbidden=None):
        await self._tell(GateAction.STOP, forbidden)

    async def _tell(self, action, forbidden):
        self.asked.append(action)
        await self.free.wait()
        if forbidden is not None and (reason := forbidden()):
            raise NotPermitted(reason)
        self.told.append(action)


class ReaderInMemory:
    """A reader with lamps."""

    device_id = 102

    def __init__(self) -> None:
        self.shown: list[Feedback] = []

    async def run(self, reports):
        await asyncio.Event().wait()

    def show(self, feedback: Feedback) -> None:
        self.shown.append(feedback)


class House:
    """The lanes of the site, alive, over a store in a folder."""

    def __init__(self, *, store: Store, boot: str, site: Site, stoppable=None) -> None:
        self.store = store
        self.clock = PushedClock()
        self.gate = GateInMemory()
        self.reader = ReaderInMemory()
        self.lanes = Lanes(
            site=site,
            field=OwnDrivers({101: self.gate}, {102: self.reader}, stoppable),
            store=store,
            clock=self.clock,
            progress=Progress(clock=self.clock),
            boot=boot,
        )

    def report(self, kind, *args) -> None:
        self.lanes.report(kind(101, *args, self.clock.monotonic()))

    def point(self, name: str, state: PointState) -> None:
        self.report(PointChanged, name, state)

    def all_well(self) -> None:
        self.report(DeviceConnected)
        for name in ("near", "far", "under", "fire", "key"):
            self.point(name, PointState.OFF)
        self.report(GateMoved, GatePosition.CLOSED)

    def lane(self):
        return self.lanes.lanes()[0]

    async def events(self) -> list[E]:
        return [E(event.type) for event in reversed(await self.store.events.latest(limit=50))]

    async def told(self, kind: E) -> str:
        """Wait until an event of this kind is on disk; its text."""

        async def texts() -> list[str]:
            return [event.description for event in await self.store.events.latest(limit=50) if event.type == kind]

        return (await until(texts))[0]


@asynccontextmanager
async def alive(folder, boot: str = "one", site: Site = SITE, stoppable=None) -> AsyncIterator[House]:
    store = Store(folder=folder, site_name="North", sends=False)
    await store.open()
    try:
        async with Supervisor(clock=SystemClock()) as lasting:
            lasting.keep("store", store.run)
            house = House(store=store, boot=boot, site=site, stoppable=stoppable)
            lasting.keep("recorder", house.lanes.recorder.run)
            await house.lanes.resume()
            async with Supervisor(clock=house.clock) as working:
                house.lanes.start(working)
                house.all_well()
                yield house
            assert await house.lanes.recorder.drained(within=30)
    finally:
        await store.close()


@pytest.fixture
async def house(tmp_path):
    async with alive(tmp_path) as house:
        yield house


@pytest.fixture
async def closable(tmp_path):
    """A house whose gate stands open and may be closed."""
    wired = SITE.model_dump(mode="json", exclude_unset=True)
    wired["lanes"][0] |= {"clear_seconds": 0.3, "clear_after_loss_seconds": 0.3}
    async with alive(tmp_path, site=Site.model_validate(wired)) as house:
        house.report(GateMoved, GatePosition.OPEN)

        def may_close() -> bool:
            house.point("under", PointState.OFF)  # free for so long only as far as it was told
            return not house.lanes.runners[0].why_not_close()

        await until(may_close)
        yield house


async def test_plate_on_the_loop_is_decided_on_and_shown(house):
    house.point("near", PointState.ON)
    house.lanes.report(PlateSeen(102, "ABC123", 0.99, "", "", house.clock.monotonic()))
    assert "plate ABC123: no card has this number or plate" in await house.told(E.ACCESS_DENIED)
    assert house.reader.shown == [Feedback.DENIED]


async def test_a_lane_is_idle_since_the_start_not_since_1970(house):
    assert abs(house.clock.wall().micros - house.lane().since) < 60_000_000


async def test_ages_survive_a_setting_of_the_clock(house):
    await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
    await until(lambda: house.lane().command)

    def ages() -> list[int]:
        lane, now = house.lane(), house.clock.wall().micros
        return [now - lane.since, now - lane.command.requested_at, *(now - one.since for one in house.lanes.devices())]

    before = ages()
    for years in (2, -1):
        house.clock.stepped += years * 365 * 86_400
        # a busy machine may take longer between the two readings of the first ages than between those of the later ones
        assert all(abs(after - age) < 60_000_000 for age, after in zip(before, ages(), strict=True))


async def test_a_reading_of_each_input_reaches_the_lane_in_its_role(tmp_path, monkeypatch):
    wired = SITE.model_dump(mode="json", exclude_unset=True)
    wired["lanes"][0]["inputs"].append({"role": "safety", "device": 101, "point": "beam"})
    async with alive(tmp_path, site=Site.model_validate(wired)) as house:
        posted = []
        monkeypatch.setattr(LaneRunner, "post", lambda runner, event: posted.append(event))
        for point in ("near", "far", "under", "fire", "key", "beam"):
            house.point(point, PointState.ON)
        assert {event.role for event in posted} == set(Role)


async def test_a_person_stops_a_gate_that_can(tmp_path):
    async with alive(tmp_path) as house:
        house.report(GateMoved, GatePosition.OPENING)
        await house.lanes.command(device_id=101, action=GateAction.STOP, source="user:guard")
        await until(lambda: house.gate.told == [GateAction.STOP])
        house.report(GateMoved, GatePosition.STOPPED)
        assert await house.told(E.COMMAND_DONE) == "stop by guard"
        assert house.lane().can_stop
    async with alive(tmp_path, "two", stoppable=()) as house:
        assert not house.lane().can_stop
        with pytest.raises(CommandRefused, match="Barrier has no command to stop"):
            await house.lanes.command(device_id=101, action=GateAction.STOP, source="user:guard")


async def test_each_step_of_a_command_names_it(house):
    command = await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
    await until(lambda: house.gate.told == [GateAction.OPEN])
    house.report(GateMoved, GatePosition.OPEN)
    await house.told(E.COMMAND_DONE)
    page = await house.store.events.page(EventFilter())
    steps = [item for item in page.events if E.COMMAND_RECORDED <= item.type <= E.COMMAND_UNKNOWN]
    assert {json.loads(item.data)["command_id"] for item in steps} == {command.command_id}
    assert E.COMMAND_RECORDED in {item.type for item in steps}


async def test_the_time_of_a_travel_is_on_disk_with_the_event_that_ends_it(house):
    await until(lambda: house.lane().position is GatePosition.CLOSED)
    before = house.clock.monotonic()
    await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
    await house.told(E.COMMAND_ACKNOWLEDGED)
    house.report(GateMoved, GatePosition.OPENING)
    house.report(GateMoved, GatePosition.OPEN)
    await house.told(E.GATE_OPENED)
    events = await house.store.events.lately(types=TRAVEL_EVENTS, lane_id="main", limit=9)
    (seconds,) = seconds_of(E.GATE_OPENED, events)
    assert 0 <= seconds <= round(house.clock.monotonic() - before, 2)


async def test_decisions_and_commands_are_counted(house):
    house.point("near", PointState.ON)
    house.lanes.report(PlateSeen(102, "ABC123", 0.99, "", "", house.clock.monotonic()))
    await house.told(E.ACCESS_DENIED)
    await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
    await house.told(E.COMMAND_ACKNOWLEDGED)
    house.report(GateMoved, GatePosition.OPENING)
    await house.told(E.COMMAND_DONE)
    figures = house.lanes.figures()["main"]
    assert figures.decisions == {False: 1}
    assert figures.decision_seconds.count == 1
    assert figures.commands == {(GateAction.OPEN, CommandState.DONE): 1}
    assert figures.moved_seconds[GateAction.OPEN].count == 1
    assert 0 < figures.moved_seconds[GateAction.OPEN].sum < 60


async def test_a_person_opens_though_the_disk_refuses_and_it_is_recorded_later(house, monkeypatch):
    record = house.store.journal.record

    async def refuse(entry):
        raise StoreError("site.db: the disk is full; nothing was recorded")

    monkeypatch.setattr(house.store.journal, "record", refuse)
    command = await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
    assert not command.recorded
    await until(lambda: house.gate.told == [GateAction.OPEN])
    monkeypatch.setattr(house.store.journal, "record", record)
    assert await house.told(E.COMMAND_RECORDED) == "open by guard"
    house.report(GateMoved, GatePosition.OPENING)
    assert (await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")).recorded


def hanging_disk(house, monkeypatch):
    """Let the disk hang until the event that is returned is set."""
    record, disk_answers = house.store.journal.record, asyncio.Event()

    async def hang(entry):
        await disk_answers.wait()
        return await record(entry)

    monkeypatch.setattr(house.store.journal, "record", hang)
    return disk_answers


async def test_a_stop_waits_for_no_disk_and_its_record_comes_first(house, monkeypatch):
    disk_answers = hanging_disk(house, monkeypatch)
    house.report(GateMoved, GatePosition.CLOSING)
    async with asyncio.TaskGroup() as group:
        stop = house.lanes.command(device_id=101, action=GateAction.STOP, source="user:guard")
        asked = group.create_task(stop)
        await until(lambda: house.gate.told == [GateAction.STOP])
        assert not asked.done()
        disk_answers.set()
    assert asked.result().recorded
    house.report(GateMoved, GatePosition.STOPPED)
    await house.told(E.COMMAND_DONE)
    page = await house.store.events.page(EventFilter())
    steps = [item.type for item in page.events if E.COMMAND_RECORDED <= item.type <= E.COMMAND_UNKNOWN]
    assert steps[::-1] == [E.COMMAND_RECORDED, E.COMMAND_SENT, E.COMMAND_ACKNOWLEDGED, E.COMMAND_DONE]


async def test_what_was_asked_for_before_a_stop_does_not_go_out_after_it(house, monkeypatch):
    """A person's open and close wait a second for a disk that hangs, and a stop does not."""
    disk_answers = hanging_disk(house, monkeypatch)
    house.report(GateMoved, GatePosition.CLOSING)
    async with asyncio.TaskGroup() as group:
        earlier = group.create_task(
            refusal_of(house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard"))
        )
        await asyncio.sleep(0)
        stop = house.lanes.command(device_id=101, action=GateAction.STOP, source="user:porter")
        group.create_task(stop)
        await until(lambda: house.gate.told == [GateAction.STOP])
        house.report(GateMoved, GatePosition.STOPPED)
        assert await earlier == "a stop was given after it"
        disk_answers.set()
    assert await house.told(E.COMMAND_REFUSED) == "open by guard: a stop was given after it"
    assert house.gate.told == [GateAction.STOP]


@pytest.mark.parametrize(
    ("first", "second", "done", "told"),
    [
        ("stop", "open", "stop", "open by guard: porter stopped the gate at the same moment"),
        ("stop", "close", "stop", "close by guard: porter stopped the gate at the same moment"),
        ("open", "close", "open", "close by guard: porter opened the gate at the same moment"),
        ("open", "stop", "stop", "open by porter: a stop was given after it"),
        ("close", "open", "open", "close by porter: an open was given after it"),
        ("close", "stop", "stop", "close by porter: a stop was given after it"),
    ],
)
async def test_of_two_people_who_command_at_once_the_safer_one_wins(closable, first, second, done, told):
    commands = [
        closable.lanes.command(device_id=101, action=GateAction(action), source=source)
        for action, source in ((first, "user:porter"), (second, "user:guard"))
    ]
    outcomes = await asyncio.gather(*commands, return_exceptions=True)
    assert [isinstance(outcome, CommandRefused) for outcome in outcomes] == [first != done, second != done]
    assert (await closable.told(E.COMMAND_REFUSED)).startswith(told)
    await until(lambda: closable.gate.told == [GateAction(done)])


async def test_who_stopped_a_gate_may_open_it_at_once(house):
    house.report(GateMoved, GatePosition.STOPPED)
    for action in (GateAction.STOP, GateAction.OPEN):
        await house.lanes.command(device_id=101, action=action, source="user:porter")
    await until(lambda: GateAction.OPEN in house.gate.told)


async def refusal_of(command):
    with pytest.raises(CommandRefused) as refused:
        await command
    return str(refused.value)


async def test_listed_plate_behind_one_that_is_like_it_is_decided_on(house):
    def read(plate):
        house.lanes.report(PlateSeen(102, plate, 0.99, "", "", house.clock.monotonic()))

    listed = {41: "FLT1041", 42: "FLT1042"}
    cards = [Card(number, plate, aliases=(plate_alias(plate),)) for number, plate in listed.items()]
    await house.store.cards.apply(put=[StoredCard(card, "{}") for card in cards], now=1)
    await until(lambda: house.store.cards.at_once((plate_alias("FLT1042"),)))
    house.point("near", PointState.ON)
    read("FLT1041")
    await until(lambda: house.gate.told == [GateAction.OPEN])
    house.report(GateMoved, GatePosition.OPEN)
    for name, state in (("under", "on"), ("near", "off"), ("under", "off"), ("near", "on")):
        house.point(name, PointState(state))
    await house.told(E.VEHICLE_PASSED)
    read("FLT1042")
    await until(lambda: len(house.gate.told) == 2)

    async def is_recorded():  # the gate opens first, the record comes beside it
        return "plate FLT1042" in await house.told(E.ACCESS_GRANTED)

    await until(is_recorded)


async def test_far_loop_is_a_way_in_too_and_the_snapshot_shows_its_vehicle(house):
    house.point("far", PointState.ON)
    await until(lambda: house.lane().phase is Phase.ARMED)
    assert house.lane().vehicle is PointState.ON
    assert house.lane().direction == "two-way"


async def test_fire_opens_and_the_lane_says_why(house):
    house.point("fire", PointState.ON)
    await until(lambda: house.gate.told == [GateAction.OPEN])
    assert "fire input is active" in house.lane().troubles[0].text
    with pytest.raises(CommandRefused, match="fire"):
        await house.lanes.command(device_id=101, action=GateAction.CLOSE, source="user:x")
    await house.told(E.FIRE_INPUT)


async def test_key_switch_forbids_the_last_moment_too(house):
    house.report(GateMoved, GatePosition.OPEN)
    house.point("key", PointState.ON)
    with pytest.raises(CommandRefused, match="key switch"):
        await house.lanes.command(device_id=101, action=GateAction.CLOSE, source="user:x")


async def test_tamper_is_told_and_told_to_be_over(house):
    house.report(TamperChanged, True)
    assert [device.name for device in house.lanes.devices() if device.tampered] == ["Barrier"]
    house.report(TamperChanged, False)
    assert not any(device.tampered for device in house.lanes.devices())
    assert await house.told(E.DEVICE_TAMPERED) == "Barrier: its housing was opened"
    await house.told(E.TAMPER_ENDED)


async def test_refused_messages_are_counted_until_one_is_accepted(house):
    def refusals():
        return house.lanes.devices()[1].refusals

    def refuse(raw):
        house.lanes.report(MessageRefused(102, "no number", raw, house.clock.monotonic()))

    refuse(b"7186\x00\xff")
    refuse(b"GET /?token=letmein9 " + b"y" * 9000)
    assert (refusals().count, refusals().in_a_row, refusals().reason) == (2, 2, "no number")
    assert refusals().said.startswith("GET /?token=*** yyy"), "secrets are hidden"
    assert len(refusals().said) < 200
    house.lanes.report(CardPresented(102, 0, 0, "0007", house.clock.monotonic()))
    assert (refusals().count, refusals().in_a_row) == (2, 0)
    refuse(b"7186\x00\xff\x1b[2J")
    assert refusals().said == r"7186\x00\xff\x1b[2J", "nothing in it moves a terminal's cursor"
    assert (refusals().count, refusals().in_a_row) == (3, 1)


async def test_keys_reach_the_lane_and_appear_nowhere(house):
    house.point("near", PointState.ON)
    house.lanes.report(CardPresented(102, 0, 0, "0007", house.clock.monotonic()))
    house.lanes.report(KeysPressed(102, "4711", house.clock.monotonic()))
    await house.told(E.ACCESS_DENIED)
    told = [event.description + event.data for event in await house.store.events.latest(limit=50)]
    assert not [text for text in told if "4711" in text]


async def test_lost_controller_leaves_nothing_known(house):
    house.report(DeviceLost, "unplugged")
    await until(lambda: house.lane().phase is Phase.FAULT)
    assert house.lane().position is GatePosition.UNKNOWN


async def test_the_newest_reason_of_a_loss_is_shown_and_who_refuses_is_not_called_silent(house):
    house.report(DeviceLost, "hung up: [Errno 5]")
    assert await house.told(E.DEVICE_LOST) == "Barrier does not answer: hung up: [Errno 5]"
    at = house.clock.monotonic()
    house.lanes.report(LossExplained(101, "unit 1 refused reading: illegal data address", at, answers=True))
    await until(lambda: "illegal data address" in str(house.lane().note))
    assert str(house.lane().note) == "the gate's controller is offline: unit 1 refused reading: illegal data address"
    assert house.lanes.devices()[0].detail == "unit 1 refused reading: illegal data address"
    with pytest.raises(CommandRefused, match=r"^Barrier cannot be used: unit 1 refused reading: illegal data address$"):
        await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:x")
    house.all_well()
    await until(lambda: house.lane().phase is not Phase.FAULT)
    assert str(house.lane().note) == ""
    assert (await house.events()).count(E.DEVICE_LOST) == 1


async def test_of_commands_that_wait_for_the_line_the_newest_alone_goes_out(house):
    house.all_well()
    await until(lambda: house.lane().position is GatePosition.CLOSED)
    house.gate.free.clear()
    wanted = [GateAction.OPEN, GateAction.STOP, GateAction.OPEN, GateAction.STOP]
    for action in wanted:
        await house.lanes.command(device_id=101, action=action, source="user:x")
    await until(lambda: house.gate.asked == wanted)
    house.gate.free.set()
    await until(lambda: house.gate.told)

    async def are_refused():
        return (await house.events()).count(E.COMMAND_REFUSED) >= 3

    await until(are_refused)
    assert await house.told(E.COMMAND_REFUSED) == "open by x: replaced by stop before it was sent"
    assert house.gate.told == [GateAction.STOP]


async def test_lock_down_refuses_and_outlives_a_restart_until_it_is_ended(tmp_path):
    async with alive(tmp_path) as house:
        await house.lanes.order(lane_id="main", kind=OrderKind.LOCK_DOWN, reason="police", source="user:chief")
        assert "locked down by chief: police" in await house.told(E.ORDER_BEGAN)
        assert house.lane().order == "lock_down"
    async with alive(tmp_path, "two") as house:
        await until(lambda: house.lane().order == "lock_down")
        with pytest.raises(CommandRefused, match="police"):
            await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
        await house.lanes.order(lane_id="main", kind=None, reason="", source="user:chief")
        await house.told(E.ORDER_ENDED)
    async with alive(tmp_path, "three") as house:
        await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
        await until(lambda: house.gate.told == [GateAction.OPEN])


async def test_what_a_person_stopped_stays_so_over_a_restart_until_an_order_ends_it(tmp_path):
    async with alive(tmp_path) as house:
        await house.lanes.order(lane_id="main", kind=OrderKind.HOLD_OPEN, reason="", source="user:chief")
        await house.lanes.command(device_id=101, action=GateAction.STOP, source="user:guard")
        sentence = await house.told(E.STOP_BEGAN)
        assert sentence.startswith("guard stopped the gate, though the lane is held open by chief; it stays so until")
        await until(lambda: [str(one.text) for one in house.lane().troubles] == [sentence])
    async with alive(tmp_path, "two") as house:
        await until(lambda: [str(one.text) for one in house.lane().troubles] == [sentence])
        assert house.gate.told == []
        await house.lanes.order(lane_id="main", kind=None, reason="", source="user:chief")
        assert await house.told(E.STOP_ENDED) == "no longer stopped by guard: chief gives the lane an order"
    async with alive(tmp_path, "three") as house:
        house.report(GateMoved, GatePosition.OPEN)
        await until(lambda: house.lane().position is GatePosition.OPEN)
        assert house.lane().troubles == ()


async def test_schedule_holds_the_lane_open(tmp_path):
    every_day = {"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun", "holiday"], "start": "00:00", "end": "00:00"}
    raw = SITE.model_dump(exclude_defaults=True)
    raw["schedules"] = [{"id": "always", "windows": [every_day]}]
    raw["lanes"][0]["hold_open_schedule"] = "always"
    async with alive(tmp_path, site=Site.model_validate(raw)) as house:
        assert await house.told(E.ORDER_BEGAN) == "the lane is held open by schedule: always"
        await until(lambda: house.gate.told == [GateAction.OPEN])


async def test_order_for_no_lane_is_refused(house):
    with pytest.raises(NotFoundError):
        await house.lanes.order(lane_id="nowhere", kind=OrderKind.HOLD_OPEN, reason="", source="user:x")


async def test_who_was_let_in_before_a_restart_passes_under_that_name(tmp_path):
    async with alive(tmp_path) as house:
        stamp = house.clock.wall()
        granted = Event(
            E.ACCESS_GRANTED,
            stamp.micros,
            clock_trusted=stamp.trusted,
            text="card 0007: the card is valid",
            lane_id=house.lane().lane_id,
            data={"card_id": 7, "credential": "0007"},
        )
        await house.store.journal.record(Entry(events=(granted,)))
    async with alive(tmp_path, boot="two") as house:
        house.report(GateMoved, GatePosition.OPEN)
        house.point("under", PointState.ON)
        house.point("under", PointState.OFF)
        assert "(0007); it was let in before the gateway restarted" in await house.told(E.VEHICLE_PASSED)


def granting(house: House) -> SiteGrants:
    return SiteGrants(site=SITE, grants=house.store.grants, clock=house.clock)


def present(house: House, text: str) -> None:
    """A vehicle comes onto the loop and shows this."""
    house.point("near", PointState.ON)
    house.lanes.report(CardPresented(102, 0, 0, text, house.clock.monotonic()))


async def test_a_grant_opens_at_once_and_its_decision_names_it(house):
    grant = await granting(house).give(user_id="17", device_id=102, length=3_600_000_000, by="key:till")
    present(house, grant.access_id)
    await until(lambda: GateAction.OPEN in house.gate.told)
    assert "a grant lets the holder pass" in await house.told(E.ACCESS_GRANTED)
    event = next(one for one in await house.store.events.latest(limit=50) if one.type == E.ACCESS_GRANTED)
    assert '"grant":1' in event.data
    assert '"card_id":null' in event.data, "its code is in no list of cards"
    assert '"user_id":"17"' in event.data
    assert "grant 1 of 17" in event.data
    assert event.description == "card grant 1 of 17: a grant lets the holder pass"
    house.report(GateMoved, GatePosition.OPEN)
    for name, state in (("under", "on"), ("near", "off"), ("under", "off")):
        house.point(name, PointState(state))
    await house.told(E.VEHICLE_PASSED)
    written = await house.store.events.latest(limit=50)
    assert not [one for one in written if grant.access_id in one.description + one.data]
    told = await house.told(E.GRANT_GIVEN)
    assert told == "key:till lets user 17 pass Main for 1 h"
    assert grant.access_id not in told


async def test_a_grant_that_ends_while_the_vehicle_waits_opens_nothing(house):
    grant = await granting(house).give(user_id="17", device_id=102, length=3_600_000_000, by="key:till")
    house.point("near", PointState.ON)
    house.clock.stepped = 3600
    house.lanes.report(CardPresented(102, 0, 0, grant.access_id, house.clock.monotonic()))
    assert "card grant 1" in await house.told(E.ACCESS_DENIED)
    (event,) = [one for one in await house.store.events.latest(limit=50) if one.type == E.ACCESS_DENIED]
    assert '"reason":"expired"' in event.data
    assert house.gate.asked == []


async def test_a_grant_revoked_while_the_vehicle_waits_opens_nothing(house):
    grant = await granting(house).give(user_id="17", device_id=102, length=None, by="key:till")
    house.point("near", PointState.ON)
    await granting(house).revoke(grant.access_id, by="key:till")
    house.lanes.report(CardPresented(102, 0, 0, grant.access_id, house.clock.monotonic()))
    await house.told(E.ACCESS_DENIED)
    assert house.gate.asked == []


async def test_who_was_let_in_by_a_grant_before_a_restart_passes_under_its_name(tmp_path):
    async with alive(tmp_path) as house:
        grant = await granting(house).give(user_id="17", device_id=101, length=None, by="key:till")
        present(house, grant.access_id)
        await house.told(E.ACCESS_GRANTED)
    async with alive(tmp_path, boot="two") as house:
        house.report(GateMoved, GatePosition.OPEN)
        house.point("under", PointState.ON)
        house.point("under", PointState.OFF)
        assert "it was let in before the gateway restarted" in await house.told(E.VEHICLE_PASSED)
        (found,) = await house.store.passages.page()
        assert (found.passage.card_id, found.passage.credential) == (-1, "grant 1")


async def test_a_grant_lets_the_cards_of_its_user_pass(house):
    strange = Card(4, "4", zones=("elsewhere",), owner="17", aliases=("text:4",))
    await house.store.cards.apply(put=[StoredCard(strange, "{}")], now=1)
    site = SITE.model_copy(update={"lanes": (SITE.lanes[0].model_copy(update={"zones": ("here",)}),)})
    await granting(house).give(user_id="17", device_id=101, length=None, by="user:chief")
    grants = house.store.grants.of_lane(site.lanes[0].id)
    assert [one.user_id for one in grants.of_card(strange)] == ["17"]


async def test_a_revoked_grant_opens_nothing_at_once_and_after_a_restart(tmp_path):
    async with alive(tmp_path) as house:
        kept = await granting(house).give(user_id="17", device_id=101, length=None, by="key:till")
        gone = await granting(house).give(user_id="18", device_id=101, length=None, by="key:till")
        await granting(house).revoke(gone.access_id, by="user:chief")
        assert [grant.user_id for grant in granting(house).current()] == ["17"]
        present(house, gone.access_id)
        assert "no card has this number or plate" in await house.told(E.ACCESS_DENIED)
        await granting(house).revoke(gone.access_id, by="user:chief")  # once more changes nothing
        assert (await house.events()).count(E.GRANT_REVOKED) == 1
        with pytest.raises(NotFoundError):
            await granting(house).revoke("000", by="user:chief")
    async with alive(tmp_path, boot="two") as house:
        assert [grant.access_id for grant in granting(house).current()] == [kept.access_id]
        present(house, kept.access_id)
        await until(lambda: GateAction.OPEN in house.gate.told)


async def test_an_ended_grant_is_no_longer_listed_and_a_device_of_no_lane_is_named(house):
    await granting(house).give(user_id="17", device_id=101, length=1, by="key:till")
    assert granting(house).current() == ()
    with pytest.raises(NotFoundError, match="device 999"):
        await granting(house).give(user_id="17", device_id=999, length=None, by="key:till")


async def test_what_the_disk_refuses_is_not_granted_and_revoking_holds_all_the_same(house, monkeypatch):
    grant = await granting(house).give(user_id="17", device_id=101, length=None, by="key:till")

    async def refuse(*_, **__):
        raise StoreError("site.db: the disk is full; nothing was recorded")

    monkeypatch.setattr(house.store.database, "write", refuse)
    with pytest.raises(StoreError):
        await granting(house).give(user_id="18", device_id=101, length=None, by="key:till")
    with pytest.raises(StoreError, match="may come back"):
        await granting(house).revoke(grant.access_id, by="key:till")
    assert granting(house).current() == ()
    monkeypatch.undo()
    await granting(house).revoke(grant.access_id, by="key:till")  # said again once the disk takes it
    assert E.GRANT_REVOKED in await house.events()


async def test_a_command_is_followed_until_the_gate_has_moved(house):
    command = await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
    await until(lambda: house.lane().command and house.lane().command.state is CommandState.ACKNOWLEDGED)
    house.report(GateMoved, GatePosition.OPENING)
    await until(lambda: house.lane().command.state is CommandState.DONE)
    shown = house.lane().command
    assert (shown.id, shown.by, shown.action, shown.detail) == (command.command_id, "guard", GateAction.OPEN, "")


async def test_of_two_commands_the_later_one_is_followed(house):
    house.gate.free.clear()
    await house.lanes.command(device_id=101, action=GateAction.OPEN, source="user:guard")
    await until(lambda: house.gate.asked == [GateAction.OPEN])
    stop = await house.lanes.command(device_id=101, action=GateAction.STOP, source="user:guard")
    await until(lambda: house.lane().command.id == stop.command_id)
    house.gate.free.set()
    await until(lambda: house.lane().command.state is CommandState.ACKNOWLEDGED)
    assert await house.told(E.COMMAND_REFUSED)
    assert house.lane().command.id == stop.command_id


async def test_points_of_a_lane_are_told_with_their_age(house):
    points = {point.role: point for point in house.lane().points}
    assert points.keys() == {"gate", *(one.role.value for one in SITE.lanes[0].inputs)}
    await until(lambda: house.lane().points[1].state is PointState.OFF)
    arming, age = house.lane().points[1], house.lanes.ages("main")[1]
    assert (arming.device_id, arming.name) == (101, "near")
    assert age is not None
    assert 0 <= age < 60
    with pytest.raises(NotFoundError):
        house.lanes.ages("roof")


async def test_a_trial_decides_as_the_lane_would_and_opens_nothing(house):
    await house.store.cards.apply(
        put=[StoredCard(Card(7, "0007", holder="Ada", aliases=(text_alias("0007"),)), "{}")], now=0
    )
    card = Credential(text="0007")
    trial = await house.lanes.try_card(card, lane_id="main", direction="", by="guard")
    assert trial.opens
    assert await house.told(E.CARD_TESTED) == "test by guard: card 0007 would be let in: the card is valid"
    await house.lanes.order(lane_id="main", kind=OrderKind.LOCK_DOWN, reason="", source="user:guard")
    trial = await house.lanes.try_card(card, lane_id="main", direction="exit", by="guard")
    assert not trial.opens
    assert str(trial.words()) == "the lane is locked down by guard"
    assert house.gate.asked == []
    assert house.lane().phase is Phase.IDLE
    with pytest.raises(NotFoundError):
        await house.lanes.try_card(card, lane_id="roof", direction="", by="guard")
