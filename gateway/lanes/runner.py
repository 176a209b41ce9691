"""One lane's runner: it takes events from a bounded inbox, passes them to the machine, and carries out its commands.

The lane's own loop handles one event at a time and never waits for I/O. Card look-ups and gate commands run in tasks of
the lane's own group, each with a time-out; records go into the recorder's queue.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import structlog

from drivers.contract import (
    DeadlinePassed,
    DriverError,
    Gate,
    GatePosition,
    LineDown,
    LinkError,
    NotPermitted,
    PointState,
    PolledDriver,
    ShowingReader,
)
from gateway.domain.access import AccessRules, Coming, Decision
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.credentials import Credential
from gateway.domain.events import EventKind, Severity
from gateway.domain.travels import TRAVEL_SECONDS
from gateway.lanes.claims import LaneClaims, OwnClaim
from gateway.lanes.decisions import Decisions
from gateway.lanes.figures import LaneFigures
from gateway.lanes.machine import machine
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import WAITED_SECONDS, LaneRules
from gateway.lanes.machine.safety import is_close_near, why_not_close
from gateway.lanes.machine.state.inputs import NEVER, Inputs
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.troubles import contradictions, lasting, why_not_changed, why_unable
from gateway.lanes.machine.visits import granted, granted_vehicles
from gateway.lanes.recorder import Recorder, command_first
from gateway.lanes.snapshots import CommandSnapshot, LanePoint, LaneSnapshot, Phase
from gateway.lanes.tape import LaneTape
from gateway.lanes.timetable import Timetable
from gateway.runtime.clock import Clock, WallTimes
from gateway.store import Entry
from gateway.texts import Words

log = structlog.get_logger(__name__)

_INBOX = 1000
_COMMAND_GRACE = 1.0
_SHORTEST_WAIT = 0.05
_BEAT_SECONDS = 2.0
_CONSULT_SECONDS = 1.0
_CLOSE_WATCH_SECONDS = 2.5
_TICK = m.Ticked()


_LIMITS = {
    GateAction.OPEN: (GatePosition.CLOSED, GatePosition.OPENING, GatePosition.OPEN),
    GateAction.CLOSE: (GatePosition.OPEN, GatePosition.CLOSING, GatePosition.CLOSED),
}
"""The gate's position where a travel begins, on its way, and where it ends."""
_ENDED_BY = {EventKind.GATE_OPENED: GateAction.OPEN, EventKind.GATE_CLOSED: GateAction.CLOSE}


@dataclass(frozen=True, slots=True)
class Travel:
    """A gate on its way, as its lane sees it.

    Attributes:
        position: the gate's last reported position.
        action: the command that it carries out, None while no travel is timed.
        command_id: the id of that command.
        since: when its controller acknowledged the command (monotonic seconds), None before.
        seconds: how long the travel took, if the last event ended it; else None.
    """

    position: GatePosition = GatePosition.UNKNOWN
    action: GateAction | None = None
    command_id: str = ""
    since: float | None = None
    seconds: float | None = None

    def after(self, event: m.LaneEvent, commands: Iterable[m.LaneCommand]) -> Travel:
        """Return the travel after an event and the machine's answer to it."""
        told = self._told(event)
        sent = [one.command for one in commands if isinstance(one, m.SendCommand)]
        if not sent:
            return told
        last = sent[-1]
        if last.action not in _LIMITS or told.position is not _LIMITS[last.action][0]:
            return Travel(told.position)
        return Travel(told.position, last.action, last.command_id)

    def timed(self, entry: Entry) -> Entry:
        """Return the entry with the travel time added to its event that ended the travel, if it has one."""
        if self.seconds is None or not any(_ENDED_BY.get(event.kind) is self.action for event in entry.events):
            return entry
        fact = {TRAVEL_SECONDS: round(self.seconds, 2)}
        events = tuple(
            replace(event, data={**event.data, **fact}) if _ENDED_BY.get(event.kind) is self.action else event
            for event in entry.events
        )
        return replace(entry, events=events)

    def _told(self, event: m.LaneEvent) -> Travel:
        match event:
            case m.CommandAcknowledged() if event.command_id == self.command_id and self.seconds is None:
                return replace(self, since=event.at)
            case m.CommandFailed() if event.command_id == self.command_id:
                return Travel(self.position)
            case m.GateLost():
                return Travel()
            case m.GateReported():
                return self._seen(event)
            case _:
                return self if self.seconds is None else Travel(self.position)

    def _seen(self, event: m.GateReported) -> Travel:
        if self.action is None or self.seconds is not None:
            return Travel(event.position)
        begins, on_its_way, ends = _LIMITS[self.action]
        if event.position is ends and self.since is not None and event.at > self.since:
            return replace(self, position=ends, seconds=event.at - self.since)
        turned_back = self.position is on_its_way and event.position is begins
        if event.position in (begins, on_its_way) and not turned_back:
            return replace(self, position=event.position)
        return Travel(event.position)


@dataclass(frozen=True, kw_only=True, slots=True)
class LaneDevices:
    """The devices of a lane that its runner commands.

    Attributes:
        gate: the gate.
        can_stop: whether the gate has a command to stop.
        watched: the drivers that are polled fast near a close.
        showing: the readers with lamps, by device id.
    """

    gate: Gate
    can_stop: bool
    watched: Collection[PolledDriver]
    showing: Mapping[int, ShowingReader]


@dataclass(frozen=True, kw_only=True, slots=True)
class RunnerContext:
    """Parts of the site that a lane's runner tells.

    Attributes:
        recorder: takes the records.
        clock: the monotonic clock and the wall clock.
        changed: called when the snapshot changes.
        beat: called at least every two seconds while the lane is alive.
        alarmed: called for each alarm that the lane records.
        read: called for each card: with True where a vehicle stood.
    """

    recorder: Recorder
    clock: Clock
    changed: Callable[[], None]
    beat: Callable[[], None]
    alarmed: Callable[[], None]
    read: Callable[[bool], None]


def lane_points(rules: LaneRules, inputs: Inputs, now: float, wall: Callable[[float], int]) -> tuple[LanePoint, ...]:
    """Return the gate and every input that the lane has, as they count at `now` (monotonic seconds).

    `wall` returns the wall micros of a monotonic instant.
    """
    gate, stale = inputs.gate, rules.policy.stale_seconds

    def since(at: float) -> int | None:
        return None if at == NEVER else wall(at)

    return (
        LanePoint("gate", rules.lane.gate, "", gate.fresh(now, stale), since(gate.since)),
        *(
            LanePoint(one.role.value, one.ref.device, one.ref.point, reading.fresh(now, stale), since(reading.since))
            for one, reading in ((one, inputs.reading(one.role, one.index)) for one in rules.inputs)
        ),
    )


def point_ages(rules: LaneRules, inputs: Inputs, now: float) -> tuple[float | None, ...]:
    """Return how many seconds old the last report on each of `lane_points` is, None for one without a report."""
    reported = (inputs.gate.at, *(inputs.reading(one.role, one.index).at for one in rules.inputs))
    return tuple(None if at == NEVER else round(max(0.0, now - at), 1) for at in reported)


class LaneRunner:
    """The runner of one lane. `post` may be called from the loop's thread at any time and never blocks."""

    def __init__(
        self,
        context: RunnerContext,
        *,
        name: str,
        rules: LaneRules,
        devices: LaneDevices,
        decisions: Decisions,
        timetable: Timetable,
    ) -> None:
        self.name = name
        self.rules = rules
        self.can_stop = devices.can_stop
        self._context = context
        self._clock = context.clock
        self._gate = devices.gate
        self._devices = devices
        self._decisions = decisions
        self._wall_times = WallTimes(context.clock)
        self._timetable = timetable
        self.tape = LaneTape(rules)
        self._travel = Travel()
        self._consulted_at = NEVER
        self.figures = LaneFigures()
        self._inbox: asyncio.Queue[tuple[float, m.LaneEvent]] = asyncio.Queue(_INBOX)
        self._state = LaneState.at_start(self._now())
        self._latest = LaneState()
        self._newest = ""
        self._commanded: Command | None = None
        self._commanded_at = NEVER
        self._sending = 0
        self._about_to_come: tuple[Coming, ...] = ()
        self._claims = LaneClaims(release=decisions.release)

    def follow(self, before: LaneRunner, *, gate_lost: str) -> None:
        """Take over from the runner that ran this lane with its earlier settings. Call before `run`.

        Every point is unknown until it is read. `gate_lost`: why the gate's controller is away, "" if it may answer.
        """
        self._state = self._latest = before._state.afresh(self._now(), gate_lost=gate_lost)
        self.figures = before.figures
        self._claims = before._claims

    def why_not_changed(self, *, is_free: bool = False) -> str:
        """Return why the lane's settings cannot be changed now, "" when they can. `is_free`: a person says so."""
        if self._sending:
            return "a command to its gate is under way"
        if not self._inbox.empty():
            return "it is at work"
        return why_not_changed(self.rules, self._state, self._clock.monotonic(), is_free=is_free)

    def take_access_rules(self, rules: Mapping[str, AccessRules], timetable: Timetable) -> None:
        """Replace the access rules and the schedules, from now on."""
        self._decisions.change(rules)
        self._timetable = timetable

    def post(self, event: m.LaneEvent) -> bool:
        """Put an event into the inbox, and return True. If the inbox is full, drop and count the event."""
        self._look(event)
        try:
            self._inbox.put_nowait((self._clock.monotonic(), event))
        except asyncio.QueueFull:
            self.figures.overflowed += 1
            if self.figures.overflowed == 1:
                log.error("lane_inbox_full", lane=self.rules.lane.id)  # noqa: TRY400 (no traceback tells more)
            return False
        return True

    async def run(self) -> None:
        """Handle events, one at a time, until cancelled."""
        told = self._shown_part()
        async with asyncio.TaskGroup() as group:
            while True:
                posted_at, event = await self._next()
                self._context.beat()
                if self._handle(group, event, posted_at):
                    await command_first()
                # The lane only waits, and lets others look at it, once its inbox is empty.
                if self._inbox.empty() and (shown := self._shown_part()) != told:
                    told = shown
                    self._context.changed()
                if event is not _TICK:
                    self._inbox.task_done()

    def _handle(self, group: asyncio.TaskGroup, event: m.LaneEvent, posted_at: float) -> bool:
        """Handle an event, then each decision that it asks for and that needs no waiting.

        Return whether a command goes to the gate.
        """
        events, sends = deque[m.LaneEvent]([event]), False
        while events:
            now, event = self._now(), events.popleft()
            self._consult(now)
            if isinstance(event, m.Decided):
                self._about_to_come = ()
            step = machine.handle(self.rules, self._state, event, now)
            self.tape.add(self._state, now, event, step.commands)
            before, self._state = self._state.readings, step.state
            if step.state.readings.decisions != before.decisions or step.state.readings.unseen > before.unseen:
                self._context.read(step.state.readings.decisions != before.decisions)
            self._claims.stepped(event, step.state, step.commands)
            self._travel = self._travel.after(event, step.commands)
            self._watch_closing()
            for command in step.commands:
                if not isinstance(command, m.Decide):
                    self._carry_out(group, command)
                elif (decided := self._decide(group, command, posted_at)) is not None:
                    events.append(decided)
                sends = sends or isinstance(command, m.SendCommand)
        return sends

    async def caught_up(self, *, within: float) -> bool:
        """Wait until the machine handled all earlier posts, at most `within` seconds; return whether it did."""
        try:
            async with asyncio.timeout(within):
                await self._inbox.join()
        except TimeoutError:
            return False
        return True

    def snapshot(self) -> LaneSnapshot:
        """Return the lane as it is now."""
        now, state, stale = self._clock.monotonic(), self._state, self.rules.policy.stale_seconds
        return LaneSnapshot(
            lane_id=self.rules.lane.id,
            name=self.name,
            direction=self.rules.lane.direction,
            phase=state.shown_phase,
            since=self._wall_times.of(state.visits.since),
            gate_id=self.rules.lane.gate,
            position=state.inputs.gate.fresh(now, stale),
            vehicle=self._vehicle(now),
            under=state.inputs.closing.fresh(now, stale),
            note=state.note,
            can_stop=self.can_stop,
            can_close=self.rules.has_position,
            order="" if state.orders.in_force is None else state.orders.in_force.kind.value,
            order_text="" if state.orders.in_force is None else state.orders.in_force.words(),
            standing=state.orders.in_force,
            unable=tuple(why_unable(self.rules, state, now)),
            troubles=(*lasting(state), *contradictions(self.rules, state, now)),
            command=None
            if self._commanded is None
            else CommandSnapshot.of(self._commanded, requested_at=self._wall_times.of(self._commanded_at)),
            cameras=self.rules.lane.cameras,
            points=lane_points(self.rules, state.inputs, now, self._wall_times.of),
        )

    @property
    def waits_unread(self) -> bool:
        """True while a vehicle waits on an arming loop and nothing was read."""
        visit = self._state.visits.present
        is_unread = visit is not None and visit.credential is None and not self._state.readings.votes.readings
        return is_unread and self._state.visits.phase is Phase.ARMED

    @property
    def has_unread_vehicles(self) -> bool:
        """True if vehicles waited here, or one still waits, and nothing was read since the first of them came."""
        visits, now = self._state.visits, self._clock.monotonic()
        still_waits = self.waits_unread and now >= visits.since + WAITED_SECONDS
        return self._state.readings.unread > 0 or still_waits

    def ages(self) -> tuple[float | None, ...]:
        """Return how old the last report on each point of the snapshot is, in seconds."""
        return point_ages(self.rules, self._state.inputs, self._clock.monotonic())

    def _watch_closing(self) -> None:
        """Poll the safety points as fast as their lines allow while the gate closes or may close soon."""
        if is_close_near(self.rules, self._state):
            for driver in self._devices.watched:
                driver.watch_closely(until=self._clock.monotonic() + _CLOSE_WATCH_SECONDS)

    async def _next(self) -> tuple[float, m.LaneEvent]:
        """Return the next event, and when it was posted."""
        if not self._inbox.empty():
            return self._inbox.get_nowait()
        wake = machine.wake_at(self.rules, self._state)
        due = _BEAT_SECONDS if wake is None else min(_BEAT_SECONDS, max(_SHORTEST_WAIT, wake - self._clock.monotonic()))
        try:
            async with asyncio.timeout(due):
                return await self._inbox.get()
        except TimeoutError:
            return self._clock.monotonic(), _TICK

    def _consult(self, now: m.Now) -> None:
        """Ask the timetable for its order, at most once a second; in a quiet lane every two seconds."""
        if now.at < self._consulted_at + _CONSULT_SECONDS:
            return
        self._consulted_at = now.at
        before = self._latest.orders.scheduled
        wanted, doubt = self._timetable.wants(now.stamp, before=before), self._timetable.doubt(now.stamp)
        if (wanted, doubt) != (before, self._latest.orders.doubt):
            self.post(m.OrderScheduled(wanted, doubt))

    def _now(self) -> m.Now:
        return m.Now(at=self._clock.monotonic(), stamp=self._clock.wall())

    def _carry_out(self, group: asyncio.TaskGroup, command: m.SendCommand | m.Record | m.Show) -> None:
        match command:
            case m.SendCommand():
                self._newest = command.command.command_id
                group.create_task(self._send(command), name=f"command-{self.rules.lane.id}")
            case m.Record():
                if any(event.severity is Severity.ALARM for event in command.entry.events):
                    self._context.alarmed()
                self.figures.recorded(command.entry, now=self._clock.monotonic())
                for reached in command.entry.commands:
                    self._reached(reached)
                entry = self._decisions.with_movement(self._travel.timed(command.entry))
                self._context.recorder.put(entry, written=self._decisions.teller(entry))
            case m.Show():
                reader = self._devices.showing.get(command.reader_id)
                if reader is not None:
                    reader.show(command.feedback)

    def _reached(self, command: Command) -> None:
        """Keep the newest state of the last command, for the snapshot. Later news of an older command is ignored."""
        last = self._commanded
        is_last = last is None or command.command_id == last.command_id or command.requested_at > last.requested_at
        if is_last or command.state is CommandState.SENT:
            if last is None or command.command_id != last.command_id:
                self._commanded_at = self._clock.monotonic()
            self._commanded = command

    def _decide(self, group: asyncio.TaskGroup, wish: m.Decide, posted_at: float) -> m.Decided | None:
        """Decide at once when the cards are in memory and nothing is to be claimed, otherwise in a task of its own."""
        decision = self._decisions.at_once(wish)
        claim = None if decision is None else self._decisions.claim(wish, decision)
        if decision is None or claim is not None:
            group.create_task(self._decide_later(wish, decision, claim, posted_at), name=f"decide-{self.rules.lane.id}")
            return None
        return self._decided(wish, decision, posted_at)

    async def _decide_later(
        self, wish: m.Decide, decision: Decision | None, claim: OwnClaim | None, posted_at: float
    ) -> None:
        since = posted_at
        if decision is None:
            decision = await self._decisions.looked_up(wish)
            claim = self._decisions.claim(wish, decision)
            since = self._clock.monotonic()  # the look-up has a limit of its own
        decision = await self._decisions.claimed(wish, decision, claim, since=since)
        if decision.granted:
            # Until the machine takes the decision, other lanes must know of it.
            self._about_to_come = tuple(granted(self._decisions.rules[wish.direction], decision))
        if not self.post(self._decided(wish, decision, posted_at)):
            self._decisions.release(decision.claim)

    def _decided(self, wish: m.Decide, decision: Decision, posted_at: float) -> m.Decided:
        self.figures.decided(granted=decision.granted, seconds=self._clock.monotonic() - posted_at)
        for entry in self._decisions.noticed(wish, decision):
            self._context.recorder.put(entry)
        return m.Decided(number=wish.number, decision=decision)

    async def _send(self, wish: m.SendCommand) -> None:
        command_id = wish.command.command_id
        self._sending += 1
        try:
            async with asyncio.timeout_at(
                asyncio.get_running_loop().time() + self.rules.policy.command_seconds + _COMMAND_GRACE
            ):
                await self._drive(wish)
        except (DeadlinePassed, NotPermitted, LineDown) as error:
            self.post(m.CommandFailed(command_id, str(error), sent=False))
        except LinkError as error:
            self.post(m.CommandFailed(command_id, str(error), sent=True))
        except DriverError as error:
            self.post(m.CommandFailed(command_id, str(error), sent=False))
        except TimeoutError:
            self.post(m.CommandFailed(command_id, "the driver did not come back in time", sent=True))
        else:
            self.post(m.CommandAcknowledged(command_id, at=self._clock.monotonic()))
        finally:
            self._sending -= 1

    async def _drive(self, wish: m.SendCommand) -> None:
        match wish.command.action:
            case GateAction.OPEN:
                await self._gate.open(deadline=wish.deadline, forbidden=lambda: self._why_overtaken(wish))
            case GateAction.CLOSE:
                await self._gate.close(deadline=wish.deadline, forbidden=lambda: self._why_not(wish))
            case GateAction.STOP:
                await self._gate.stop(deadline=wish.deadline, forbidden=lambda: self._why_overtaken(wish))

    @property
    def locked_down(self) -> Words:
        """The reason of a lock-down, in one sentence; "" for none."""
        return self._latest.locked_down

    async def tried(self, credential: Credential, direction: str) -> Decision:
        """Return the decision that a credential would get here now. Nothing is opened or kept."""
        return await self._decisions.tried(credential, direction, arrived=self._now().stamp)

    def granted_vehicles(self) -> Iterator[Coming]:
        """Yield the vehicles that were granted a way here and have not passed yet."""
        yield from granted_vehicles(self.rules, self._state, self._decisions.rules)
        yield from self._about_to_come

    @property
    def closes_its_gate(self) -> bool:
        """True if a close that the gateway sent may still move the gate, or is being undone."""
        job = self._state.closing
        return job is not None and job.is_on_its_way

    def why_not_close(self) -> Words:
        """Return what forbids a close now by the newest reports, ahead of the inbox; "" for nothing."""
        return why_not_close(self.rules, self._latest, self._clock.monotonic())

    def _why_not(self, wish: m.SendCommand) -> str:
        """Return why this close must not go out, "" if it may. The driver asks right before the first byte.

        On a busy line, a later command may have taken its place.
        """
        return self._why_overtaken(wish) or str(self.why_not_close())

    def _why_overtaken(self, wish: m.SendCommand) -> str:
        """Return that a later command has taken this one's place, "" if none has."""
        return "" if wish.command.command_id == self._newest else "a later command has taken its place"

    def _look(self, event: m.LaneEvent) -> None:
        """Apply an event's readings and orders to `_latest` at once, ahead of the inbox."""
        self._latest = self._latest.observed(self.rules, event)

    def _vehicle(self, now: float) -> PointState:
        """Return the state of the arming loop. In a two-way lane, the far loop counts while it is on."""
        near, far = (
            loop.fresh(now, self.rules.policy.stale_seconds)
            for loop in (self._state.inputs.arming, self._state.inputs.far)
        )
        return PointState.ON if self.rules.two_way and far is PointState.ON else near

    def _shown_part(self) -> tuple[object, ...]:
        state = self._state
        inputs = state.inputs
        return (
            state.shown_phase,
            state.inputs.gate.position,
            tuple(inputs.reading(one.role, one.index).state for one in self.rules.inputs),
            state.note,
            state.stop_words,
            state.orders.in_force,
            state.troubles.present,
            self._commanded,
        )
