"""All lanes of the site: they get the reports of their devices, and the commands of people."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import structlog

from drivers.contract import Driver, Gate, GatePosition, PointState, PolledDriver, Report, ShowingReader
from drivers.gates.limits import LimitPoint, Limits
from gateway.domain.commands import Command, GateAction
from gateway.domain.credentials import Credential
from gateway.domain.errors import CommandRefused, NotFoundError, StoreError
from gateway.domain.events import Event, EventKind
from gateway.domain.problems import ProblemKind
from gateway.lanes.access_rules import access_rules
from gateway.lanes.decisions import DecisionContext, Decisions, PinTries, TriedCard
from gateway.lanes.device_reports import Intake
from gateway.lanes.figures import LaneFigures
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.safety import polled_near_a_close
from gateway.lanes.machine.state.orders import Order, OrderKind
from gateway.lanes.person_commands import PersonCommands
from gateway.lanes.presence import Areas
from gateway.lanes.recorder import Recorder
from gateway.lanes.restored_state import last_grants, last_order, last_stop
from gateway.lanes.runner import LaneDevices, LaneRunner, RunnerContext
from gateway.lanes.snapshots import DeviceSnapshot, LaneSnapshot, LaneTrouble
from gateway.lanes.tape import Incident
from gateway.lanes.timetable import timetable_of
from gateway.runtime.clock import Clock
from gateway.runtime.redaction import Redaction
from gateway.runtime.supervision import Progress, Supervisor
from gateway.site import LaneSection, Site
from gateway.store import Entry, Store
from gateway.texts import Words, text

log = structlog.get_logger(__name__)

_BY_SHAPE = Redaction().text
_LANE_STUCK_SECONDS = 10.0
_LONGEST_REASON = 200
_RECORDED_WITHIN = 5.0
_CLOSES_WITHIN = 6.0
_LOOK_SECONDS = 0.25

_SEEN_ELSEWHERE = frozenset(GatePosition) - {GatePosition.OPEN, GatePosition.UNKNOWN}

_TIMES = 2
"""Once may be chance: a person on foot tries a card while a vehicle waits elsewhere."""


class LaneDrivers(Protocol):
    """The drivers of a site, sorted by what lanes use them for."""

    @property
    def gates(self) -> Mapping[int, Gate]:
        """The gates, by their device ids."""
        ...

    @property
    def showing(self) -> Mapping[int, ShowingReader]:
        """The readers with lamps, by their device ids."""
        ...

    @property
    def stoppable(self) -> frozenset[int]:
        """The device ids of the gates that have a command to stop."""
        ...

    @property
    def limits(self) -> Mapping[int, Limits]:
        """The limit switches of the gates that have some, by the gate's id."""
        ...

    @property
    def unplaced(self) -> frozenset[int]:
        """The device ids of the gates of which nothing reports where they are."""
        ...

    @property
    def drivers(self) -> tuple[Driver, ...]:
        """The drivers of all devices."""
        ...


def with_hindrances(
    lane: LaneSnapshot, *, devices: Mapping[int, DeviceSnapshot], readers: Sequence[int], limits: Limits | None
) -> LaneSnapshot:
    """Return the lane's snapshot with everything that keeps it from admitting vehicles or letting them out.

    Args:
        lane: the lane as its machine shows it.
        devices: the site's devices, by id.
        readers: the ids of the lane's readers; while all are offline, the lane admits nobody by itself.
        limits: the limit switches of its gate, None where it has none.
    """
    away = [devices[reader] for reader in readers]
    if any(reader.online is not False for reader in away):  # one working reader is enough
        away = []
    unable = (
        *(_explained(trouble, devices, limits) for trouble in lane.unable),
        *_not_open(lane),
        *(LaneTrouble(ProblemKind.READERS_OFFLINE, one.away, one.name, one.device_id) for one in away),
    )
    return replace(lane, unable=unable, troubles=tuple(_explained(one, devices, limits) for one in lane.troubles))


@dataclass(frozen=True, slots=True)
class CardsElsewhere:
    """Cards in a row that came at one lane while a vehicle waited at another.

    Attributes:
        known: by the lane of the card, the lane of the vehicle and how often in a row.
    """

    known: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def after(self, lane_id: str, *, has_vehicle: bool, waiting: Collection[str]) -> CardsElsewhere:
        """Return this after a card at a lane.

        Args:
            lane_id: the lane.
            has_vehicle: whether a vehicle stood there.
            waiting: the other lanes where a vehicle waits and nothing was read.
        """
        others = {one: seen for one, seen in self.known.items() if one != lane_id}
        before, times = self.known.get(lane_id, ("", 0))
        if has_vehicle or not waiting:
            return CardsElsewhere(others)
        if len(waiting) > 1 and before not in waiting:
            return self
        there = before if before in waiting else next(iter(waiting))
        return CardsElsewhere({**others, lane_id: (there, times + 1 if there == before else 1)})

    def found(self) -> Iterator[tuple[str, str, int]]:
        """Yield the lane of the cards, the lane of the vehicles, and how often, where it is no chance."""
        yield from ((lane, there, times) for lane, (there, times) in self.known.items() if times >= _TIMES)


def with_swapped_readers(lanes: tuple[LaneSnapshot, ...], elsewhere: CardsElsewhere) -> tuple[LaneSnapshot, ...]:
    """Return the lanes with readers that seem swapped, in place of the troubles that follow from it."""
    names = {lane.lane_id: lane.name for lane in lanes}
    found = {lane: (there, times) for lane, there, times in elsewhere.found()}
    without = {(lane, ProblemKind.CARDS_WITHOUT_VEHICLE) for lane in found}
    without |= {(there, ProblemKind.VEHICLES_WITHOUT_CARD) for there, _ in found.values()}
    shown = []
    for lane in lanes:
        troubles = [one for one in lane.troubles if (lane.lane_id, one.kind) not in without]
        if lane.lane_id in found:
            there, times = found[lane.lane_id]
            said = text("contradiction.elsewhere", count=times, lane=names.get(there, there))
            troubles.append(LaneTrouble(ProblemKind.READERS_SWAPPED, said, there))
        shown.append(replace(lane, troubles=tuple(troubles)))
    return tuple(shown)


def _not_open(lane: LaneSnapshot) -> Iterator[LaneTrouble]:
    """Yield the trouble of a gate that did not obey, while it is seen anywhere but open: an open one blocks nobody."""
    if lane.position in _SEEN_ELSEWHERE:
        yield from (trouble for trouble in lane.troubles if trouble.kind is ProblemKind.GATE_DOES_NOT_MOVE)


def _explained(trouble: LaneTrouble, devices: Mapping[int, DeviceSnapshot], limits: Limits | None) -> LaneTrouble:
    """Return an unknown position as the fault of the limit switches if both are on; other troubles unchanged.

    A switch that sticks for a moment is no fault: the trouble begins after the position was unknown for a whole travel.
    """
    if limits is None or trouble.kind is not ProblemKind.GATE_POSITION_UNKNOWN:
        return trouble
    on = {
        LimitPoint(device.device_id, point.name)
        for device in devices.values()
        for point in device.points
        if point.state is PointState.ON
    }
    if not {limits.closed, limits.opened} <= on:
        return trouble
    names = f"{limits.closed.point} and {limits.opened.point}"
    text = f"both limit switches are on, as if the gate were open and closed at once: {names}"
    return replace(trouble, kind=ProblemKind.GATE_LIMITS_BOTH_ON, text=text)


class Lanes:
    """The site's lanes. Snapshots never wait; every change bumps the store's `Changes`. Drivers call `report`."""

    def __init__(
        self,
        *,
        site: Site,
        field: LaneDrivers,
        store: Store,
        clock: Clock,
        progress: Progress,
        boot: str,
        alarmed: Callable[[str], None] = lambda _: None,
        mask: Callable[[str], str] = _BY_SHAPE,
    ) -> None:
        """`alarmed` is called with the id of each lane that records an alarm.

        `mask` hides secrets in what devices said.

        Attributes:
            runners: one runner for each lane, in the order of the site file.
        """
        self._alarmed = alarmed
        self._site = site
        self._take_drivers(field)
        self._supervisor: Supervisor | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._changing: frozenset[str] = frozenset()
        self._store = store
        self._clock = clock
        self._progress = progress
        self._boot = boot
        self.recorder = Recorder(journal=store.journal, clock=clock)
        self._pin_tries = PinTries()
        self._elsewhere = CardsElsewhere()
        self.areas = Areas(site=site, cards=store.cards, rows=store.presence, recorder=self.recorder, clock=clock)
        self.runners = tuple(map(self._runner, site.lanes))
        self._by_gate = {runner.rules.lane.gate: runner for runner in self.runners}
        self._intake = Intake(
            site=site,
            runners=self.runners,
            clock=clock,
            cards=store.cards,
            changed=store.changes.bump,
            tell=self._tell,
            mask=mask,
        )
        self._person_commands = PersonCommands(
            recorder=self.recorder, failing=lambda: store.failing, clock=clock, boot=boot
        )

    def start(self, supervisor: Supervisor) -> None:
        """Start every lane. `recorder` is started elsewhere: it must outlive the lanes."""
        self._supervisor = supervisor
        for runner in self.runners:
            self._begin(runner)

    def _begin(self, runner: LaneRunner) -> None:
        lane_id = runner.rules.lane.id
        if self._supervisor is not None:
            self._progress.expect(f"lane {lane_id}", within=_LANE_STUCK_SECONDS)
            self._tasks[lane_id] = self._supervisor.keep(f"lane-{lane_id}", runner.run)

    async def until_no_gate_closes(self) -> None:
        """Wait, for at most 6 s, until no close that the gateway sent may still move a gate.

        A gate that closes onto something is opened again only as long as its lane runs.
        """
        until, version = self._clock.monotonic() + _CLOSES_WITHIN, self._store.changes.version
        while any(runner.closes_its_gate for runner in self.runners) and self._clock.monotonic() < until:
            version = await self._store.changes.beyond(version, within=_LOOK_SECONDS)

    def why_not_changed(self, lane_ids: Collection[str], *, are_free: bool = False) -> str:
        """Return which of these lanes cannot be changed now, and why; "" when all can. `are_free`: a person says so."""
        for runner in self.runners:
            if runner.rules.lane.id in lane_ids and (why := runner.why_not_changed(is_free=are_free)):
                return f"lane {runner.rules.lane.id} ({runner.name}) waits: {why}"
        return ""

    async def halt(self, lane_ids: Collection[str]) -> None:
        """End these lanes. Their gates take no command until `change` starts them afresh."""
        self._changing = frozenset(lane_ids)
        ending = [task for lane_id in lane_ids if (task := self._tasks.pop(lane_id, None)) is not None]
        for lane_id in lane_ids:
            self._progress.forget(f"lane {lane_id}")
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    def change(self, site: Site, *, field: LaneDrivers, lanes: Collection[str], devices: Collection[int]) -> None:
        """Take over a changed site. Lanes that are not in `lanes` go on, by the new access rules, schedules and areas.

        Args:
            site: the changed site.
            field: the changed site's drivers.
            lanes: the ids of the lanes that `halt` ended, and of new lanes.
            devices: the ids of the devices that are connected anew.
        """
        before = {runner.rules.lane.id: runner for runner in self.runners}
        self._site = site
        self._take_drivers(field)
        self.areas.change(site)
        kept = {key: runner for key, runner in before.items() if key not in lanes}
        self.runners = tuple(kept.get(lane.id) or self._runner(lane) for lane in site.lanes)
        self._by_gate = {runner.rules.lane.gate: runner for runner in self.runners}
        self._intake.change(site, self.runners, anew=devices)
        for lane, runner in zip(site.lanes, self.runners, strict=True):
            if lane.id in kept:
                runner.take_access_rules(access_rules(site, lane), timetable_of(site, lane))
                continue
            if (earlier := before.get(lane.id)) is not None:
                gate = self._intake.device(lane.gate)
                runner.follow(earlier, gate_lost=str(gate.away) if gate.online is False else "")
            self._begin(runner)
        self._changing = frozenset()
        self._elsewhere = CardsElsewhere()
        self._store.changes.bump()

    def _card_read(self, lane_id: str, has_vehicle: bool) -> None:  # noqa: FBT001 (a callback's only argument)
        others = [one.rules.lane.id for one in self.runners if one.rules.lane.id != lane_id and one.waits_unread]
        self._elsewhere = self._elsewhere.after(lane_id, has_vehicle=has_vehicle, waiting=others)

    def _take_drivers(self, field: LaneDrivers) -> None:
        self._field = field
        self._polled = {driver.device_id: driver for driver in field.drivers if isinstance(driver, PolledDriver)}

    def under_control(self) -> tuple[str, ...]:
        """Return a sentence for each device that has neither answered nor been lost yet."""
        return tuple(
            f"{device.name} has not answered yet" for device in self._intake.devices() if device.online is None
        )

    async def settle_unfinished(self) -> int:
        """Record the commands that the last run left unfinished as of unknown outcome, and return their number.

        None of them is sent again. Raises StoreError.
        """
        unfinished = await self._store.commands.unfinished()
        for command in unfinished:
            self._person_commands.settle(command)
        return len(unfinished)

    async def resume(self) -> None:
        """Restore grants, people's orders and stops, and the vehicles let in last. Call once. Raises StoreError."""
        await self._store.grants.recall()
        for runner in self.runners:
            lane_id, now = runner.rules.lane.id, m.Now(at=self._clock.monotonic(), stamp=self._clock.wall())
            for grant in await last_grants(self._store.events, lane_id=lane_id, now=now):
                runner.post(grant)
            order = await last_order(self._store.events, lane_id=lane_id)
            if order is not None:
                runner.post(m.OrderGiven(order=order, by=order.by))
            stop = await last_stop(self._store.events, lane_id=lane_id)
            if stop is not None:
                runner.post(stop)

    def lanes(self) -> tuple[LaneSnapshot, ...]:
        """Return every lane, in the site file's order."""
        devices = {device.device_id: device for device in self._intake.devices()}
        lanes = tuple(
            with_hindrances(
                runner.snapshot(), devices=devices, readers=lane.readers, limits=self._field.limits.get(lane.gate)
            )
            for lane, runner in zip(self._site.lanes, self.runners, strict=True)
        )
        return with_swapped_readers(lanes, self._elsewhere)

    def with_unread_vehicles(self) -> frozenset[str]:
        """Return the ids of the lanes at which vehicles waited, and nothing was read since the first of them came."""
        return frozenset(runner.rules.lane.id for runner in self.runners if runner.has_unread_vehicles)

    def figures(self) -> Mapping[str, LaneFigures]:
        """Return each lane's figures since the start, by lane id."""
        return {runner.rules.lane.id: runner.figures for runner in self.runners}

    def incident(self, lane_id: str) -> Incident:
        """Return a lane's tape. Raises NotFoundError for an unknown lane, or one that has handled no event yet."""
        found = self._of(lane_id).tape.incident()
        if found is None:
            raise NotFoundError(text("refused.lane_not_begun", lane=lane_id))
        return found

    def devices(self) -> tuple[DeviceSnapshot, ...]:
        """Return every device, in the site file's order."""
        return self._intake.devices()

    async def command(
        self, *, device_id: int, action: GateAction, source: str, command_id: str = "", within: float | None = None
    ) -> Command:
        """Record a command for a gate and send it; return once it is on disk, or the disk was too slow.

        A stop is sent at once and recorded meanwhile; other commands are recorded first. A failing or slow disk does
        not keep a person from commanding a gate: the command is sent, and its `recorded` is False.

        Args:
            device_id: the gate.
            action: what it is to do.
            source: who commands, `user:<name>` for a person.
            command_id: an id that the caller has already given it; "" to make one.
            within: the seconds within which it must act, where that is less than the site's own limit.

        Raises:
            NotFoundError: for an id that is no gate of this site.
            CommandRefused: when the device is away, the command is not allowed now, or a stop was given while the
                command waited (the refusal is recorded); or while the lane's settings are being changed.
        """
        runner = self._by_gate.get(device_id)
        if runner is None:
            raise NotFoundError(text("refused.gate_unknown", device=str(device_id)))
        if runner.rules.lane.id in self._changing:
            raise CommandRefused(text("refused.lane_changing", lane=runner.name))
        most = self._site.policy.command_seconds
        return await self._person_commands.give(
            runner,
            action=action,
            source=source,
            life=most if within is None else min(most, within),
            refusal=self._refusal(runner, action),
            command_id=command_id,
        )

    async def order(self, *, lane_id: str, kind: OrderKind | None, reason: str, source: str) -> None:
        """Set, change or lift a lane's standing order. With `kind` None the lane follows its schedule again.

        Returns once the order is on disk. Raises NotFoundError for an unknown lane, CommandRefused while its settings
        are being changed, StoreError if the order could not be recorded in time: it is in force nevertheless, and stays
        queued for the disk.
        """
        runner = self._of(lane_id)
        if lane_id in self._changing:
            raise CommandRefused(text("refused.lane_changing", lane=runner.name))
        lost = self.recorder.lost
        order = None if kind is None else Order(kind=kind, by=source, reason=reason[:_LONGEST_REASON])
        runner.post(m.OrderGiven(order=order, by=source))
        handled = await runner.caught_up(within=_RECORDED_WITHIN)
        if not handled or not await self.recorder.recorded(lost=lost, within=_RECORDED_WITHIN):
            raise StoreError(text("refused.order_unrecorded"))

    def ages(self, lane_id: str) -> tuple[float | None, ...]:
        """Return the age of the last report on each point of a lane, in seconds. Raises NotFoundError."""
        return self._of(lane_id).ages()

    async def try_card(self, credential: Credential, *, lane_id: str, direction: str, by: str) -> TriedCard:
        """Decide on a card as if it were read at a lane now, and record the trial; nothing is opened.

        `direction` is "entry", "exit", or "" for the lane's own (the entry of a two-way lane). Raises NotFoundError for
        an unknown lane or a direction that it does not have, StoreError when cards cannot be read.
        """
        runner = self._of(lane_id)
        lane = runner.rules.lane
        wanted = direction or ("exit" if lane.direction == "exit" else "entry")
        if lane.direction not in {wanted, "two-way"}:
            raise NotFoundError(text("refused.lane_way_unknown", lane=lane_id, way=direction))
        decision = await runner.tried(credential, wanted)
        trial = TriedCard(decision, hindered=runner.locked_down if decision.granted else "")
        stamp = self._clock.wall()
        self.recorder.put(Entry(events=(trial.event(credential, lane_id=lane_id, by=by, stamp=stamp),)))
        self._store.changes.bump()
        return trial

    def _of(self, lane_id: str) -> LaneRunner:
        runner = next((runner for runner in self.runners if runner.rules.lane.id == lane_id), None)
        if runner is None:
            raise NotFoundError(text("refused.lane_unknown", lane=lane_id))
        return runner

    def report(self, report: Report) -> None:
        """Take a driver's report. Called on the loop's thread; never blocks."""
        self._intake.take(report)

    def _refusal(self, runner: LaneRunner, action: GateAction) -> Words:
        device = self._intake.device(runner.rules.lane.gate)
        if device.online is not True:
            return device.away
        if action is GateAction.OPEN:
            return runner.locked_down
        if action is GateAction.STOP:
            return "" if runner.can_stop else text("command.no_stop", device=device.name)
        return runner.why_not_close()

    def _tell(self, kind: EventKind, said: Words, device_id: int) -> None:
        at = self._clock.wall()
        event = Event(
            kind=kind, date_at=at.micros, clock_trusted=at.trusted, text=said, device_id=device_id, lane_id=""
        )
        self.recorder.put(Entry(events=(event,)))
        self._store.changes.bump()

    def _runner(self, lane: LaneSection) -> LaneRunner:
        site, field = self._site, self._field
        rules = LaneRules.of(site, lane, boot=self._boot, has_position=lane.gate not in field.unplaced)
        return LaneRunner(
            RunnerContext(
                recorder=self.recorder,
                clock=self._clock,
                changed=self._store.changes.bump,
                beat=partial(self._progress.beat, f"lane {lane.id}"),
                alarmed=lambda: self._alarmed(lane.id),
                read=partial(self._card_read, lane.id),
            ),
            name=lane.name,
            rules=rules,
            devices=LaneDevices(
                gate=field.gates[lane.gate],
                can_stop=lane.gate in field.stoppable,
                watched=[self._polled[device] for device in polled_near_a_close(rules) if device in self._polled],
                showing={reader: field.showing[reader] for reader in lane.readers if reader in field.showing},
            ),
            decisions=Decisions(
                self._decision_context(), rules=access_rules(site, lane), second_within=lane.second_seconds
            ),
            timetable=timetable_of(site, lane),
        )

    def _decision_context(self) -> DecisionContext:
        return DecisionContext(
            cards=self._store.cards,
            areas=self.areas,
            clock=self._clock,
            recording=lambda: not self._store.failing,
            has_central=self._site.central is not None,
            pin_tries=self._pin_tries,
            granted_vehicles=lambda: (coming for runner in self.runners for coming in runner.granted_vehicles()),
            grants=self._store.grants.of_lane,
        )
