"""A change in steps goes on only while every changed gateway has been well for the given time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from at_work import running
from fleet_desk import ANNA
from waiting import until

from gateway.domain.errors import ConfigError, GatewayError
from gateway.fleet.heartbeat import AWAY_SECONDS, HeartbeatValue, ProblemTold
from gateway.fleet.line import FleetLine
from gateway.fleet.names import FleetName
from gateway.fleet.operator import Rollout, read_edits
from gateway.fleet.signed_commands import CommandReply
from gateway.runtime.clock import Stamp, SystemClock

NAMES = ("north.gate-1", "north.gate-2")
EDITS = read_edits('[[edits]]\nsection = "holidays"\nid = "2026-12-26"\nvalues = { name = "Boxing Day" }\n')
BACK = [{"section": "holidays", "id": "2026-12-26", "remove": True}]
ALARM = ProblemTold(kind="gate_offline", severity="alarm", text="Barrier is away")


class SetClock(SystemClock):
    """A clock that stands still until a test sets it; its wall time is the machine's, and what the test adds."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0
        self.later_seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def wall(self) -> Stamp:
        return Stamp(super().wall().micros + int(self.later_seconds * 1e6), trusted=True)


class FarGateway:
    """A gateway that takes every change. `edits` are the commands that it got, `asked` counts the nonces.

    If it `goes`, it is not there any more for the question after the next one.
    """

    def __init__(self, broker, name: str) -> None:
        self._broker, self.name, self.subscription = broker, FleetName(*name.split(".")), None
        self.edits: list[dict] = []
        self.asked = 0
        self.goes = False
        self._going: asyncio.Task[None] | None = None

    async def take(self, message) -> None:
        command = json.loads(message.data)
        if command["action"] == "nonce":
            self.asked += 1
            if self.goes:
                self._going = asyncio.get_running_loop().create_task(self._go(message))
            else:
                await self._broker.publish(message.reply, b'{"nonce": "one"}')
            return
        self.edits.append(command)
        done = CommandReply(
            id=command["id"], state="done", final=True, detail="changed", result=BACK, seal=f"of {self.name}"
        )
        await self._broker.publish(message.reply, done.model_dump_json().encode())

    async def _go(self, message) -> None:
        await self.subscription.unsubscribe()
        await self._broker.flush()
        await self._broker.publish(message.reply, b'{"nonce": "one"}')

    async def beat(self, *, ready: bool = True, problems: tuple[ProblemTold, ...] = ()) -> None:
        beat = HeartbeatValue(
            version="1", site="North", ready=ready, headline="two lanes", problem_count=len(problems),
            problems=problems, last_event=1, waiting=0,
        )  # fmt: skip
        await self._broker.publish(self.name.heartbeat, beat.model_dump_json().encode())
        await self._broker.flush()


@asynccontextmanager
async def two_gateways(broker) -> AsyncIterator[tuple[FarGateway, FarGateway]]:
    found = FarGateway(broker, NAMES[0]), FarGateway(broker, NAMES[1])
    for one in found:
        one.subscription = await broker.subscribe(one.name.commands, cb=one.take)
        await one.beat()
    yield found


def rollout(broker, told: list[str], clock: SetClock) -> Rollout:
    return Rollout(
        line=FleetLine(broker),
        seed=ANNA[0],
        edits=EDITS,
        waves=(1, 1),
        healthy_seconds=60,
        told=told.append,
        clock=clock,
        look_seconds=0.001,
    )


async def test_the_next_gateway_is_changed_once_the_first_has_been_well_for_the_given_time(broker):
    clock, told = SetClock(), []
    async with two_gateways(broker) as (first, second), running(rollout(broker, told, clock).run(NAMES)):
        for seconds in (0.0, 59.0):
            clock.seconds, looked = seconds, first.asked
            await until(lambda looked=looked: first.asked > looked + 3)
            assert not second.edits
        clock.seconds = 60.0
        await until(lambda: second.edits)
        assert told[0] == "north.gate-1: changed"


@pytest.mark.parametrize(
    ("becomes", "said"),
    [
        ({"ready": False}, "is not ready: two lanes"),
        ({"problems": (ALARM,)}, "has a new alarm: two lanes"),
        (None, "is away"),
        ("gone", "does not answer: it is away"),
    ],
)
async def test_a_changed_gateway_that_is_not_well_stops_it_and_the_change_is_taken_back(broker, becomes, said):
    clock, told = SetClock(), []
    async with two_gateways(broker) as (first, second):
        rolling = asyncio.get_running_loop().create_task(rollout(broker, told, clock).run(NAMES))
        await until(lambda: first.edits and first.asked > 3)
        if becomes is None:
            clock.later_seconds = AWAY_SECONDS + 1
        elif becomes == "gone":
            first.goes = True
        else:
            await first.beat(**becomes)
        with pytest.raises(GatewayError, match="not rolled out"):
            async with asyncio.timeout(10):
                await rolling
        assert not second.edits
        changed, stopped = "north.gate-1: changed", f"stopped: north.gate-1 {said}"
        if becomes == "gone":
            assert told[:2] == [changed, stopped]
            assert told[2].startswith("north.gate-1 could not be taken back, look at it: ")
            return
        change, back = first.edits
        assert (back["undoes"], back["seal"]) == (change["id"], "of north.gate-1")
        assert [one["remove"] for one in back["edits"]] == [True]
        assert told == [changed, stopped, changed, "north.gate-1: taken back"]


async def test_nothing_begins_while_one_of_them_is_not_well_or_was_never_heard(broker):
    async with two_gateways(broker) as (first, second):
        await second.beat(ready=False)
        for name, why in (("north.gate-2", "is not ready: two lanes"), ("north.gate-9", "has never been heard")):
            with pytest.raises(ConfigError, match=f"{name} {why}; nothing was changed"):
                await rollout(broker, [], SetClock()).run((NAMES[0], name))
        assert not first.edits
