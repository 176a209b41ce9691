"""A lane at a barrier over TCP, by its real driver: what the far end does, the lane knows and tells."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from far_end_site import GATE, INPUTS, READER, a_barrier, alive
from set_machine import PushedMachine
from waiting import until

from drivers.contract import DeviceConnected, DeviceLost, GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.credentials import Card, text_alias
from gateway.domain.errors import CommandRefused
from gateway.domain.events import EventKind as E
from gateway.domain.passages import PassageOutcome as P
from gateway.domain.problems import ProblemKind
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.snapshots import LaneTrouble
from gateway.runtime.clock import SystemClock, TrustedTime
from gateway.texts import text as words
from simulation.far_ends.barrier import Wish
from simulation.far_ends.line_devices import Misbehaviour

DAY = 86_400_000_000


def card(number: str, **fields: object) -> Card:
    return Card(int(number), number, aliases=(text_alias(number),), **fields)


pytestmark = pytest.mark.usefixtures("frequent_reports")


@pytest.fixture
async def far_end():
    async with a_barrier() as far_end:
        yield far_end


async def test_boom_half_way_at_the_start_is_told_with_the_way_out_and_whoever_passes_is_unauthorised(
    far_end, tmp_path
):
    barrier, _, port = far_end
    barrier.force(opening=0.5, now=time.monotonic())
    travel = {"opening_seconds": 1, "closing_seconds": 1}
    async with alive(tmp_path, barrier=barrier, port=port, lane=travel) as lane:
        text = await lane.told(E.POSITION_UNKNOWN)
        assert "open it, then close it" in text
        assert (ProblemKind.GATE_POSITION_UNKNOWN, text) in [(one.kind, str(one.text)) for one in lane.shown().troubles]
        lane.arming(occupied=True)
        await lane.sees(lambda shown: shown.vehicle is PointState.ON)
        await lane.drives_through()
        assert "position was not known" in await lane.told(E.UNAUTHORISED_PASSAGE)
        assert [one.passage.outcome for one in await lane.passages()] == [P.UNAUTHORISED]
        with pytest.raises(CommandRefused, match="open it first, then close it"):
            await lane.lanes.command(device_id=GATE, action=GateAction.CLOSE, source="user:tech")
        await lane.lanes.command(device_id=GATE, action=GateAction.OPEN, source="user:tech")
        await lane.sees(lambda shown: shown.position is GatePosition.OPEN)
        assert "position has been unknown" in await lane.told(E.TROUBLE_ENDED)
        await lane.sees(lambda _: not lane.lanes.runners[0].why_not_close())
        await lane.lanes.command(device_id=GATE, action=GateAction.CLOSE, source="user:tech")
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        assert lane.shown().troubles == ()


@pytest.mark.parametrize("life", ["this one", "after a start", "after a boot"])
async def test_step_of_an_untrusted_clock_expires_no_card(far_end, tmp_path, life):
    barrier, _, port = far_end
    machine = PushedMachine()
    clock = SystemClock(machine)
    trusted = TrustedTime("boot", int(clock.monotonic() * 1_000_000), clock.wall().micros)
    if life == "after a boot":
        trusted = TrustedTime("boot before", trusted.monotonic, trusted.at - trusted.monotonic)
    machine.pushed, machine.synchronised = 3 * DAY, False
    if life != "this one":
        clock = SystemClock(machine)
        clock.recall(trusted, boot_id="boot")
    cards = (card("7", valid_until=trusted.at + DAY), card("8", valid_until=trusted.at - DAY))
    async with alive(tmp_path, barrier=barrier, port=port, clock=clock, cards=cards) as lane:
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        await lane.arrives("8")
        assert "expired" in await lane.told(E.ACCESS_DENIED), "what had ended by the last trusted time stays so"
        lane.present("7")
        assert "card 7" in await lane.told(E.ACCESS_GRANTED)
        await lane.sees(lambda shown: shown.position is GatePosition.OPEN)


async def test_card_does_not_count_while_a_vehicle_that_came_the_other_way_is_behind_the_closed_gate(far_end, tmp_path):
    barrier, _, port = far_end
    async with alive(tmp_path, barrier=barrier, port=port, cards=(card("7"),)) as lane:
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        lane.under(occupied=True)
        await lane.sees(lambda shown: shown.under is PointState.ON)
        await lane.arrives("7")
        assert "came the other way" in await lane.told(E.CARD_IGNORED)
        assert E.ACCESS_GRANTED not in await lane.kinds()
        lane.under(occupied=False)
        await lane.sees(lambda shown: shown.under is PointState.OFF)
        lane.present("7")
        assert "card 7" in await lane.told(E.ACCESS_GRANTED), "it has gone back; the way is free"


async def test_vehicle_that_leaves_through_an_entry_is_a_wrong_way_passage(far_end, tmp_path):
    barrier, _, port = far_end
    async with alive(tmp_path, barrier=barrier, port=port) as lane:
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        lane.under(occupied=True)
        await lane.sees(lambda shown: shown.under is PointState.ON)
        await lane.lanes.command(device_id=GATE, action=GateAction.OPEN, source="user:guard")
        await lane.sees(lambda shown: shown.position is GatePosition.OPEN)
        lane.arming(occupied=True)
        await lane.sees(lambda shown: shown.vehicle is PointState.ON)
        lane.under(occupied=False)
        await lane.told(E.WRONG_WAY)
        lane.arming(occupied=False)
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        (passage,) = [one.passage for one in await lane.passages()]
        assert (passage.direction, passage.outcome, passage.reason) == ("exit", P.PASSED, "user:guard")
        assert E.VEHICLE_BACKED_OUT not in await lane.kinds()


GARAGE = {
    "policy": {"anti_passback_by": "owner"},
    "areas": [{"id": "garage", "name": "Garage", "anti_passback": "hard", "first_person": True}],
}
FIRST = card("7", owner="Ann", first_person=True)
SECOND = card("8", owner="Ben", first_person=True)
THIRD = card("9", owner="Cid")


@pytest.mark.parametrize("restarts", [False, True])
async def test_two_are_let_in_before_the_first_passes_and_each_movement_is_its_own_holders(far_end, tmp_path, restarts):
    barrier, _, port = far_end
    cards = (FIRST, SECOND)
    wishes = {"barrier": barrier, "port": port, "lane": {"vend": "counted", "inside": "garage"}, **GARAGE}
    async with alive(tmp_path, cards=cards, **wishes) as lane:
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        await lane.let_in("7")
        lane.arming(occupied=False)
        await lane.sees(lambda shown: shown.vehicle is PointState.OFF)
        await lane.arrives("8")
        await lane.granted(2)
        if not restarts:
            await both_pass(lane)
    if restarts:
        async with alive(tmp_path, **wishes) as lane:
            await lane.sees(lambda shown: PointState.UNKNOWN not in {shown.vehicle, shown.under})
            await both_pass(lane)


async def both_pass(lane) -> None:
    await lane.drives_through()
    await lane.passed(1)
    presence = lane.lanes.areas.presence
    assert presence.whereabouts("owner:Ann").area_id == "garage"
    assert presence.whereabouts("owner:Ben") is None
    lane.arming(occupied=True)
    await lane.sees(lambda shown: shown.vehicle is PointState.ON)
    await lane.drives_through()
    await lane.passed(2)
    assert presence.whereabouts("owner:Ben").area_id == "garage"


async def test_first_person_who_passes_after_a_restart_opens_the_area_to_others(far_end, tmp_path):
    barrier, _, port = far_end
    wishes = {"barrier": barrier, "port": port, "lane": {"inside": "garage"}, **GARAGE}
    async with alive(tmp_path, cards=(FIRST, THIRD), **wishes) as lane:
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        await lane.let_in("7")
    async with alive(tmp_path, **wishes) as lane:
        await lane.sees(lambda shown: PointState.UNKNOWN not in {shown.vehicle, shown.under})
        await lane.drives_through()
        await lane.passed(1)
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        await lane.arrives("9")
        await lane.granted(2)
    async with alive(tmp_path, **wishes) as lane:
        presence = lane.lanes.areas.presence
        assert presence.whereabouts("owner:Ann").area_id == "garage"
        assert presence.opened_at("garage") is not None, "as it was recorded"


@pytest.mark.usefixtures("soon_lost")
async def test_lane_whose_arming_loop_is_unknown_is_unable_and_a_card_there_is_told_as_a_warning(far_end, tmp_path):
    barrier, modbus, port = far_end
    inputs = [
        {"role": "arming", "device": INPUTS, "point": "arming_loop"},
        {"role": "closing", "device": GATE, "point": "closing_loop"},
    ]
    wishes = {"lane": {"inputs": inputs}, "cards": (card("7"),)}
    async with alive(tmp_path, barrier=barrier, port=port, **wishes) as lane:
        await lane.sees(lambda shown: not shown.unable)
        modbus.misbehave(2, Misbehaviour(deaf=True))
        (trouble,) = (await lane.sees(lambda shown: shown.unable)).unable
        assert (trouble.kind, trouble.device_id) == (ProblemKind.ARMING_LOOP_UNKNOWN, INPUTS)
        assert "the arming loop is not known" in str(trouble.text)
        lane.present("7")
        assert "its device does not answer" in await lane.told(E.READING_UNUSABLE)
        modbus.misbehave(2)
        await lane.sees(lambda shown: not shown.unable)


@pytest.mark.usefixtures("soon_lost")
async def test_lane_whose_gate_or_readers_are_away_is_unable(far_end, tmp_path):
    barrier, modbus, port = far_end
    async with alive(tmp_path, barrier=barrier, port=port) as lane:
        await lane.sees(lambda shown: not shown.unable)
        lane.lanes.report(DeviceLost(READER, "unplugged", time.monotonic()))
        away = words("device.away_for.silent", device="Reader", why="unplugged")
        assert lane.shown().unable == (LaneTrouble(ProblemKind.READERS_OFFLINE, away, "Reader", READER),)
        lane.lanes.report(DeviceConnected(READER, time.monotonic()))
        assert lane.shown().unable == ()
        modbus.misbehave(1, Misbehaviour(deaf=True))
        shown = await lane.sees(lambda shown: shown.unable)
        assert (shown.unable[0].kind, shown.unable[0].device_id) == (ProblemKind.GATE_OFFLINE, GATE)
        assert "controller is offline" in str(shown.unable[0].text)


async def test_gate_that_warns_before_it_closes_is_opened_again_though_the_first_open_is_lost(tmp_path):
    async with (
        a_barrier(warns_seconds=4.0) as (barrier, modbus, port),
        alive(tmp_path, barrier=barrier, port=port, cards=(card("7"),)) as lane,
    ):
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        await lane.let_in("7")
        await lane.drives_through()
        await commanded(modbus, [Wish.OPEN, Wish.CLOSE])
        modbus.misbehave(1, Misbehaviour(loses_commands=True))
        await lane.lanes.order(lane_id="entry", kind=OrderKind.HOLD_OPEN, reason="market day", source="user:guard")
        await commanded(modbus, [Wish.OPEN, Wish.CLOSE, Wish.OPEN])
        modbus.misbehave(1)
        await commanded(modbus, [Wish.OPEN, Wish.CLOSE, Wish.OPEN, Wish.OPEN])
        await lane.told(E.GATE_REOPENED)
        assert E.GATE_CLOSED not in await lane.kinds()
        assert barrier.state(now=time.monotonic()).opening == 1.0


async def test_lanes_end_only_when_a_gate_that_closes_has_closed(tmp_path):
    async with (
        a_barrier(warns_seconds=0.5) as (barrier, modbus, port),
        alive(tmp_path, barrier=barrier, port=port, cards=(card("7"),)) as lane,
    ):
        await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
        await lane.let_in("7")
        await lane.drives_through()
        await commanded(modbus, [Wish.OPEN, Wish.CLOSE])
        assert lane.shown().position is not GatePosition.CLOSED
        await lane.lanes.until_no_gate_closes()
        assert lane.shown().position is GatePosition.CLOSED


async def commanded(modbus, wishes: list[Wish]) -> None:
    """Wait until the barrier's controller was sent these commands, and no other."""

    def sent():
        seen = [one.wish for one in modbus.commands]
        assert len(seen) <= len(wishes), seen
        return seen == wishes

    await until(sent)


async def test_shared_threads_that_all_hang_delay_no_vehicle(far_end, tmp_path):
    """Names that no server resolves and disks that hang hold them; lanes, drivers and the store need none of them."""
    barrier, _, port = far_end
    over = threading.Event()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(4) as shared:
        async with alive(tmp_path, barrier=barrier, port=port, cards=(card("1"),)) as lane:
            await lane.sees(lambda shown: shown.position is GatePosition.CLOSED)
            loop.set_default_executor(shared)
            hanging = [loop.run_in_executor(None, over.wait, 50) for _ in range(40)]
            try:
                await lane.let_in("1")
                lane.under(occupied=True)
                await lane.sees(lambda shown: shown.under is PointState.ON)
                lane.arming(occupied=False)
                await lane.sees(lambda shown: shown.vehicle is PointState.OFF)
                lane.under(occupied=False)
                await lane.passed(1)
                assert not any(one.done() for one in hanging)
            finally:
                over.set()
                await asyncio.gather(*hanging)
