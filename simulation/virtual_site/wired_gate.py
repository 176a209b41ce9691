"""A lane's gate behind the real driver: `ModbusGate`, its bus and its link, over virtual TCP to a controller."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping

from drivers.bus.bus import Bus
from drivers.bus.wire import Direction
from drivers.contract import (
    DeadlinePassed,
    DeviceConnected,
    DeviceLost,
    DriverError,
    Forbidden,
    GateMoved,
    LineDown,
    PointChanged,
    PointState,
    PollMissed,
    Report,
    Reports,
)
from drivers.link import LinkSpec
from drivers.modbus.frames import Asked, decode_request, encode_reply
from drivers.modbus.gate import ModbusGate
from drivers.modbus.messages import Read, Refusal, Reply, Table, Values, Write, WriteMany, Written, coil_word
from drivers.modbus.profile import GateProfile
from drivers.modbus.unit_requests import UnitRequests
from gateway.domain.commands import GateAction
from simulation.far_ends.barrier import Wish
from simulation.far_ends.profile_wiring import relay_module
from simulation.virtual_site import observations as seen
from simulation.virtual_site.lane_field import ARMING, CLOSING, PHOTOCELL, POSITION, LaneField
from simulation.virtual_site.network import Network, Peer
from simulation.virtual_site.witness import Witness

_PORT = 502
_UNIT = 1
_FAILED = Refusal(4)
_LATE = (0.4, 3.0)
_NEIGHBOUR = 2
_NEIGHBOUR_TAKES = (0.6, 0.9)
_NEIGHBOUR_TIMEOUT = 1.0
_NEIGHBOUR_PATIENCE = 60.0
_MOST_AHEAD = 9
"""The most commands of a neighbour that go ahead of one on a jammed line; together they outlast its deadline."""
_INPUTS = ("closed_limit", "open_limit", ARMING, CLOSING, PHOTOCELL)


def _profile(poll: float) -> GateProfile:
    """Make the profile of a relay barrier that is polled every `poll` seconds."""
    table = Table.DISCRETE_INPUT.value
    points = {name: {"table": table, "address": address} for address, name in enumerate(_INPUTS)}
    names = ("open", "close", "stop")
    commands = {name: {"write": Table.COIL.value, "address": place, "value": True} for place, name in enumerate(names)}
    return GateProfile.model_validate(
        {
            "name": "Simulated relay barrier",
            "address_base": 0,
            "poll_ms": int(poll * 1000),
            "reply_ms": 300,
            "position": {"closed_point": "closed_limit", "open_point": "open_limit"},
            "points": points,
            "commands": commands,
        }
    )


class Controller(asyncio.Protocol):
    """The controllers at the far end of one connection: the lane's own obeys at once, its neighbour slowly."""

    def __init__(
        self, *, field: LaneField, see: Callable[[seen.Observation], None], monotonic: Callable[[], float]
    ) -> None:
        self._field = field
        self._see = see
        self._monotonic = monotonic
        self._wiring = relay_module(field.barrier)
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 (the network makes these)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        self._buffer += data
        while (asked := decode_request("tcp", bytes(self._buffer))) is not None:
            del self._buffer[: asked.length]
            self._take(asked)

    def _take(self, asked: Asked) -> None:
        now, troubles, dice = self._monotonic(), self._field.troubles, self._field.dice
        if troubles.deaf_until > now:
            return
        if asked.unit == _NEIGHBOUR:
            self._answer(encode_reply("tcp", asked=asked, reply=Written()), after=dice.uniform(*_NEIGHBOUR_TAKES))
            return
        reply: Reply = _FAILED
        answers = True
        if isinstance(asked.request, Read):
            reply = self._read(asked.request, now)
        elif isinstance(asked.request, Write | WriteMany):
            reply, answers = self._obey(asked.request, now)
        frame = encode_reply("tcp", asked=asked, reply=reply)
        if answers:
            self._answer(frame, after=dice.uniform(*_LATE) if troubles.late_until > now else dice.uniform(0.002, 0.02))

    def _answer(self, frame: bytes, *, after: float) -> None:
        if self._transport is not None:
            asyncio.get_running_loop().call_later(after, self._transport.write, frame)

    def _read(self, read: Read, now: float) -> Reply:
        if read.table is not Table.DISCRETE_INPUT:
            return self._wiring.read(read, now=now)
        state, inputs = self._field.shown(now, self._field.gate_points)
        values = (state.closed_limit, state.open_limit, *(inputs.get(point, False) for point in _INPUTS[2:]))
        return Values(tuple(int(value) for value in values[read.address : read.address + read.count]))

    def _obey(self, write: Write | WriteMany, now: float) -> tuple[Reply, bool]:
        """Move the barrier; return the reply, and whether it is sent."""
        wish = self._wiring.wish_of(write)
        if wish is not None:
            self._see(seen.Arrived(now, self._field.lane_id, GateAction(wish.value)))
        if wish is Wish.STOP and self._field.troubles.stops_until > now:
            fate = self._field.dice.choice(("refused", "ignored", "unheard", "unanswered"))
            if fate == "refused":
                return _FAILED, True
            if fate in {"ignored", "unheard"}:
                return Written(), fate == "ignored"
            return self._wiring.write(write, now=now), False
        return self._wiring.write(write, now=now), True


class WiredGate:
    """A driver that fulfils `drivers.contract.Gate`. Each life of the gateway has a new one; the field stays."""

    def __init__(
        self,
        *,
        field: LaneField,
        witness: Witness,
        monotonic: Callable[[], float],
        poll: float,
        rest: float,
        dice: random.Random,
        alive: Callable[[], bool],
        network: Network,
    ) -> None:
        """Make the driver of one life.

        `rest` is the seconds without a happening after which the lane is idle. `alive` returns whether that life goes
        on; reports of a dead one are dropped.
        """
        self._field = field
        field.read_at.clear()
        self._witness = witness
        self._monotonic = monotonic
        self._rest = rest
        self._alive = alive
        self._reported: dict[str, object] = {}
        self._deadlines: Mapping[GateAction, float] = {}
        peer = Peer(protocol=self._controller, troubles=field.troubles, alive=alive, dice=dice)
        host = network.listen(field.lane_id, peer)
        self._wiring = relay_module(field.barrier)
        self._bus = Bus(
            name=field.lane_id, spec=LinkSpec(f"tcp://{host}:{_PORT}"), monotonic=monotonic, trace=self._traced
        )
        self._gate = ModbusGate(
            device_id=field.gate_id,
            bus=self._bus,
            profile=_profile(poll),
            unit=_UNIT,
            framing="tcp",
            monotonic=monotonic,
        )
        self._neighbour = UnitRequests(bus=self._bus, unit=_NEIGHBOUR, framing="tcp", timeout=_NEIGHBOUR_TIMEOUT)
        self._tasks: asyncio.TaskGroup | None = None

    @property
    def device_id(self) -> int:
        """The device's id in the site file."""
        return self._field.gate_id

    async def run(self, reports: Reports) -> None:
        """See `Driver`: serve the line, then the gate."""

        def report(one: Report) -> None:
            self._note(one)
            reports(one)

        async with asyncio.TaskGroup() as group:
            self._tasks = group
            line = group.create_task(self._bus.run())
            try:
                await self._gate.run(report)
            finally:
                line.cancel()

    def watch_closely(self, *, until: float) -> None:
        """Poll as fast as the line allows until `until`."""
        self._gate.watch_closely(until=until)

    async def open(self, *, deadline: float, forbidden: Forbidden | None = None) -> None:
        """Command the gate to open. Errors are those of `drivers.contract.Gate`."""
        await self._command(GateAction.OPEN, deadline, lambda: self._gate.open(deadline=deadline, forbidden=forbidden))

    async def close(self, *, deadline: float, forbidden: Forbidden) -> None:
        """Command the gate to close. Errors are those of `drivers.contract.Gate`."""
        await self._command(
            GateAction.CLOSE, deadline, lambda: self._gate.close(deadline=deadline, forbidden=forbidden)
        )

    async def stop(self, *, deadline: float, forbidden: Forbidden | None = None) -> None:
        """Command the gate to stop. Errors are those of `drivers.contract.Gate`."""
        await self._command(GateAction.STOP, deadline, lambda: self._gate.stop(deadline=deadline, forbidden=forbidden))

    async def _command(self, action: GateAction, deadline: float, drive: Callable[[], object]) -> None:
        lane, acknowledged, kept_by_line = self._field.lane_id, False, False
        self._see(seen.Called(self._monotonic(), lane, action))
        self._deadlines = {**self._deadlines, action: deadline}
        await self._jam()
        try:
            await drive()  # type: ignore[misc]  # a coroutine of the gate's
            acknowledged = True
        except (DeadlinePassed, LineDown):
            kept_by_line = True
            raise
        finally:
            self._see(seen.Answered(self._monotonic(), lane, action, acknowledged, kept_by_line))

    async def _jam(self) -> None:
        """While the line is jammed, put commands of a neighbour ahead of the next one."""
        if self._tasks is None or self._field.troubles.jammed_until <= self._monotonic():
            return
        for _ in range(self._field.dice.randint(0, _MOST_AHEAD)):
            self._tasks.create_task(self._command_neighbour())
        await asyncio.sleep(0)  # they are in the queue of the line then

    async def _command_neighbour(self) -> None:
        with contextlib.suppress(DriverError):  # its own driver's business
            await self._neighbour.write(
                Write(Table.COIL, 0, coil_word(on=True)), deadline=self._monotonic() + _NEIGHBOUR_PATIENCE
            )

    def _controller(self) -> Controller:
        return Controller(field=self._field, see=self._witness.see, monotonic=self._monotonic)

    def _traced(self, direction: Direction, data: bytes, at: float) -> None:
        """Report to the witness when the bytes of a poll or a command go out."""
        if direction is not Direction.SENT or (asked := decode_request("tcp", data)) is None or asked.unit != _UNIT:
            return
        if isinstance(asked.request, Read):
            is_idle = self._field.is_quiet(at, self._rest)
            self._see(seen.Polled(at, self._field.lane_id, is_idle), taped=False)
        wish = self._wiring.wish_of(asked.request) if isinstance(asked.request, Write | WriteMany) else None
        if wish is None:
            return
        action, troubles = GateAction(wish.value), self._field.troubles
        if troubles.next_cut:
            troubles.cut_until, troubles.next_cut = max(troubles.cut_until, at + troubles.next_cut), 0.0
        known, hidden = self._field.known_in_the_way()
        deadline = self._deadlines.get(action, at)
        self._see(seen.Wrote(at, self._field.lane_id, action, deadline, in_the_way=known, hidden=hidden))

    def _note(self, report: Report) -> None:
        """Pass the driver's reports to the witness."""
        field, lane, at = self._field, self._field.lane_id, self._monotonic()
        match report:
            case DeviceConnected():
                self._reported.clear()
                self._see(seen.GateAway(at, lane, away=False, points=field.gate_points))
            case DeviceLost():
                self._see(seen.GateAway(at, lane, away=True, points=field.gate_points))
            case PointChanged(point=point, state=state, at=read_at) if point in field.gate_points:
                if state is PointState.ON:  # between two polls a loop may come and drop out, which nobody can know
                    field.read_at[point] = read_at
                if self._reported.get(point) is state:
                    self._see(seen.Refreshed(read_at, lane, (point,)), taped=False)
                else:
                    self._reported[point] = state
                    self._see(seen.PointReported(read_at, lane, point, state))
            case PollMissed(in_a_row=in_a_row):
                self._see(seen.PollMissed(at, lane, field.gate_points, in_a_row))
            case GateMoved(position=position, at=read_at):
                if self._reported.get(POSITION) is position:
                    self._see(seen.Refreshed(read_at, lane, (POSITION,)), taped=False)
                else:
                    self._reported[POSITION] = position
                    self._see(seen.PositionReported(read_at, lane, position))
            case _:
                pass

    def _see(self, observation: seen.Observation, *, taped: bool = True) -> None:
        if self._alive():
            self._witness.see(observation, taped=taped)
