"""A board of one lane in memory."""

from __future__ import annotations

import secrets
from dataclasses import replace

from set_machine import PushedClock

from drivers.bus.line_quality import Counts, Failure, LineQuality, UnitQuality
from drivers.contract import GatePosition, PointState
from gateway.domain.access import decide
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.credentials import Credential
from gateway.domain.errors import CommandRefused, NotFoundError
from gateway.domain.events import Event, EventKind
from gateway.lanes.decisions import TriedCard
from gateway.lanes.figures import LaneFigures
from gateway.lanes.machine import machine
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.state.orders import Order, OrderKind
from gateway.lanes.snapshots import CommandSnapshot, DeviceSnapshot, LanePoint, LaneSnapshot, Phase, PointSnapshot
from gateway.lanes.tape import Incident, TapedStep
from gateway.runtime.clock import Stamp
from gateway.store import Entry, Store
from tests.gateway.web.setups.site import SITE, START

ASKED_LINE = LineQuality(
    name="yard",
    down_reason="",
    strays=0,
    units=(
        UnitQuality(
            unit=7,
            reply_times=(0, 0, 3, 1, 0, 0, 0, 0, 0, 0),
            failed={Failure.SILENT: 2},
            reply_seconds=0.008,
            allowed_seconds=0.3,
            failing=None,
            failures=0,
            losses=0,
            hour=Counts((0, 0, 3, 1, 0, 0, 0, 0, 0, 0), {Failure.SILENT: 2}),
        ),
    ),
)
"""A line with one unit that answered four times of six."""


class FieldInMemory:
    """A board of one lane. Commands are recorded as the lanes do, and refused while the gate is offline."""

    def __init__(self, *, store: Store, clock: PushedClock) -> None:
        self._store = store
        self._clock = clock
        self.lane = LaneSnapshot(
            lane_id="entry",
            name="Main entry",
            direction="entry",
            phase=Phase.IDLE,
            since=START,
            gate_id=101,
            position=GatePosition.CLOSED,
            vehicle=PointState.OFF,
            under=PointState.OFF,
            note="",
            can_stop=True,
            cameras=(201,),
        )
        self.gate = DeviceSnapshot(
            device_id=101,
            name="Entry barrier",
            kind="modbus-gate",
            online=True,
            since=START,
            detail="",
            position=GatePosition.CLOSED,
            points=(PointSnapshot("arming", PointState.OFF), PointSnapshot("closing", PointState.OFF)),
        )
        self.reader = DeviceSnapshot(102, "Entry reader", "serial-reader", None, START, "", None, ())
        self.commands: list[Command] = []
        self.records = True
        self.lane_figures = LaneFigures()

    def lanes(self) -> tuple[LaneSnapshot, ...]:
        loops = (("arming", self.lane.vehicle), ("closing", self.lane.under))
        points = (
            LanePoint("gate", 101, "", self.lane.position, START),
            *(LanePoint(role, 101, role, state, START) for role, state in loops),
        )
        return (replace(self.lane, points=points),)

    def devices(self) -> tuple[DeviceSnapshot, ...]:
        return (self.gate, self.reader)

    def figures(self) -> dict[str, LaneFigures]:
        return {self.lane.lane_id: self.lane_figures}

    def incident(self, lane_id: str) -> Incident:
        if lane_id != self.lane.lane_id:
            raise NotFoundError(f"no lane '{lane_id}' at this site")
        rules, now = LaneRules.of(SITE, SITE.lanes[0], boot="b"), m.Now(1.0, Stamp(START, trusted=True))
        state = LaneState.at_start(now)
        step = machine.handle(rules, state, m.Ticked(), now)
        return Incident(rules, state, (TapedStep(now, m.Ticked(), step.commands),))

    def show(self, **lane: object) -> None:
        self.lane = replace(self.lane, **lane)  # type: ignore[arg-type]  # fields of the snapshot
        self.gate = replace(self.gate, position=self.lane.position)
        self._store.changes.bump()

    def lose(self, reason: str) -> None:
        self.gate = replace(self.gate, online=False, detail=reason)
        self._store.changes.bump()

    def ages(self, lane_id: str) -> tuple[float | None, ...]:
        if lane_id != self.lane.lane_id:
            raise NotFoundError(f"no lane '{lane_id}' at this site")
        return (0.4, 0.2, None)

    async def try_card(self, credential: Credential, *, lane_id: str, direction: str, by: str) -> TriedCard:
        if lane_id != self.lane.lane_id:
            raise NotFoundError(f"no lane {lane_id!r} at this site")
        cards = await self._store.cards.matching(credential.aliases())
        stamp = self._clock.wall()
        trial = TriedCard(decide(credential, cards, now=stamp.micros), hindered="")
        await self._store.journal.record(Entry(events=(trial.event(credential, lane_id=lane_id, by=by, stamp=stamp),)))
        return trial

    async def order(self, *, lane_id: str, kind: OrderKind | None, reason: str, source: str) -> None:
        if lane_id != self.lane.lane_id:
            raise NotFoundError(f"no lane {lane_id!r} at this site")
        order = Order(kind, source, reason) if kind is not None else None
        text = "" if order is None else order.words()
        self.show(order="" if kind is None else kind.value, order_text=text, standing=order)

    async def command(self, *, device_id: int, action: GateAction, source: str) -> Command:
        if device_id != self.gate.device_id:
            raise NotFoundError(f"device {device_id} is no gate of this site")
        if not self.gate.online:
            raise CommandRefused(f"the gate is offline: {self.gate.detail}")
        now = self._clock.wall()
        command = Command(secrets.token_hex(8), device_id, "entry", action, source, now.micros, now.micros + 5_000_000)
        recorded = Event(
            kind=EventKind.COMMAND_RECORDED,
            date_at=now.micros,
            clock_trusted=now.trusted,
            text=f"{source} wants gate {device_id} to {action.value}.",
            device_id=device_id,
            lane_id="entry",
        )
        await self._store.journal.record(Entry(events=(recorded,), commands=(command,)))
        self.commands.append(replace(command, state=CommandState.SENT))
        positions = {GateAction.OPEN: GatePosition.OPEN, GateAction.STOP: GatePosition.STOPPED}
        done = CommandSnapshot.of(replace(command, state=CommandState.DONE), requested_at=now.micros)
        self.show(position=positions.get(action, GatePosition.CLOSED), command=done)
        return replace(command, recorded=self.records)
