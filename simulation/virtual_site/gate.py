"""A lane's gate behind the real driver: `ModbusGate`, its bus and its link, over virtual TCP to its controller."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping
from dataclasses import replace

from drivers.bus.bus import Bus
from drivers.bus.wire import Direction
from drivers.contract import (
    DeadlinePassed,
    DeviceConnected,
    DeviceLost,
    DriverError,
    Forbidden,
    GateMoved,
    GatePosition,
    LineDown,
    PointChanged,
    PointState,
    PollMissed,
    Report,
    Reports,
)
from drivers.link import LinkSpec
from drivers.modbus.frames import Read, Table, Write, WriteMany, coil_word, decode_request
from drivers.modbus.gate import ModbusGate
from drivers.modbus.profile import GateProfile, load_profile
from drivers.modbus.unit_requests import ModbusRequests
from drivers.profile_file import SHIPPED_PROFILES
from gateway.domain.commands import GateAction
from simulation.far_ends.barrier import Barrier, BarrierState, Wish
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring, relay_module
from simulation.virtual_site import observations as seen
from simulation.virtual_site.lane_field import POINTS, POSITION, SETTLE, LaneField
from simulation.virtual_site.network import Network, Peer
from simulation.virtual_site.witness import Witness

_PORT = 502
_UNIT = 1
_IN_TIME, _LATE = (0.02, 0.06), (0.4, 3.0)
_STOPS_THAT_FAIL = (
    Misbehaviour(exception=4),
    Misbehaviour(pretends=True),
    Misbehaviour(loses_commands=True),
    Misbehaviour(silent=True),
)
_NEIGHBOUR = 2
_NEIGHBOUR_TAKES = (0.6, 0.9)
_NEIGHBOUR_TIMEOUT = 1.0
_NEIGHBOUR_PATIENCE = 60.0
_TOO_LATE = 0.01
_MOST_AHEAD = 9
"""The most commands of a neighbour that go ahead of one on a jammed line; together they outlast its deadline."""


_POSITIONS = {
    number: position.value for number, position in enumerate(GatePosition) if position is not GatePosition.UNKNOWN
}


def _profile(poll: float, *, limit_switches: bool) -> GateProfile:
    """Make the profile of a controller: a module with limit switches, or one that tells its position itself."""
    shipped = load_profile(SHIPPED_PROFILES / "relay-barrier.toml")
    poll_ms = int(poll * 1000)
    if limit_switches:
        return shipped.model_copy(update={"poll_ms": poll_ms})
    table = Table.INPUT_REGISTER.value
    return GateProfile.model_validate(
        {
            "name": "Simulated barrier that tells its position",
            "address_base": 0,
            "poll_ms": poll_ms,
            "reply_ms": 300,
            "position": {"table": table, "address": 1, "values": _POSITIONS},
            "points": {name: {"table": table, "address": 0, "mask": 1 << bit} for bit, name in enumerate(POINTS)},
            "commands": shipped.commands.model_dump(),
        }
    )


class _Terminals:
    """The terminals of the field's controller, with what its inputs show."""

    def __init__(self, field: LaneField) -> None:
        self._field = field

    def command(self, wish: Wish, *, now: float) -> None:
        """Give the controller a command."""
        self._field.barrier.command(wish, now=now)

    def state(self, *, now: float) -> BarrierState:
        """Return the barrier's state with the inputs, which may be wrong."""
        state, shown = self._field.shown(now, self._field.gate_points)
        return replace(state, **{point: shown.get(point, False) for point in POINTS})


class _Controllers(ModbusFarEnd):
    """The lane's own controller, which obeys at once, and its neighbour, which is slow."""

    def __init__(
        self,
        *,
        profile: GateProfile,
        field: LaneField,
        see: Callable[[seen.Observation], None],
        monotonic: Callable[[], float],
    ) -> None:
        self.own = ProfileWiring(profile=profile, barrier=_Terminals(field))
        super().__init__(units={_UNIT: self.own, _NEIGHBOUR: relay_module(Barrier())}, monotonic=monotonic)
        self._field = field
        self._see = see

    def misbehaviour(self, unit: int, wish: Wish | None, now: float) -> Misbehaviour:
        """See `ModbusFarEnd`: the troubles of the field, and the pace of each unit."""
        troubles, dice = self._field.troubles, self._field.dice
        if troubles.deaf_until > now:
            return Misbehaviour(deaf=True)
        if unit == _NEIGHBOUR:
            return Misbehaviour(late=dice.uniform(*_NEIGHBOUR_TAKES))
        if wish is not None:
            self._see(seen.Arrived(now, self._field.lane_id, GateAction(wish.value)))
        late = dice.uniform(*(_LATE if troubles.late_until > now else _IN_TIME))
        if wish is Wish.STOP and troubles.stops_until > now:
            return replace(dice.choice(_STOPS_THAT_FAIL), late=late)
        return Misbehaviour(late=late)


class SimulatedGate:
    """A driver that fulfils `drivers.contract.Gate`. Each life of the gateway has a new one; the field stays."""

    def __init__(
        self,
        *,
        field: LaneField,
        witness: Witness,
        monotonic: Callable[[], float],
        poll: float,
        dice: random.Random,
        alive: Callable[[], bool],
        network: Network,
    ) -> None:
        """Make the driver of one life. `alive` returns whether that life goes on; reports of a dead one are dropped."""
        self._field = field
        field.read_at.clear()
        field.is_asked = False
        self._witness = witness
        self._monotonic = monotonic
        self._alive = alive
        self._reported: dict[str, object] = {}
        self._deadlines: Mapping[GateAction, float] = {}
        profile = _profile(poll, limit_switches=field.has_limit_switches)
        controllers = _Controllers(profile=profile, field=field, see=witness.see, monotonic=monotonic)
        self._wiring = controllers.own
        peer = Peer(protocol=controllers.caller, troubles=field.troubles, alive=alive, dice=dice)
        host = network.listen(field.lane_id, peer)
        self._bus = Bus(
            name=field.lane_id, spec=LinkSpec(f"tcp://{host}:{_PORT}"), monotonic=monotonic, trace=self._traced
        )
        self._gate = ModbusGate(
            device_id=field.gate_id,
            bus=self._bus,
            profile=profile,
            unit=_UNIT,
            framing="tcp",
            monotonic=monotonic,
        )
        self._neighbour = ModbusRequests(bus=self._bus, unit=_NEIGHBOUR, framing="tcp", timeout=_NEIGHBOUR_TIMEOUT)
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
        try:
            if (taken := min(self._field.troubles.taken_until, deadline + _TOO_LATE) - self._monotonic()) > 0:
                await asyncio.sleep(taken)  # polls go on meanwhile
            await self._jam()
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

    def _traced(self, direction: Direction, data: bytes, at: float) -> None:
        """Report to the witness when the bytes of a poll or a command go out, and note what awaits an answer."""
        is_idle = self._field.is_quiet(at, SETTLE)
        self._field.is_asked = direction is Direction.SENT
        if direction is not Direction.SENT or (asked := decode_request("tcp", data)) is None or asked.unit != _UNIT:
            return
        if isinstance(asked.request, Read):
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
