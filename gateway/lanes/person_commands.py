"""Commands of people for gates: recorded, then sent, unless a stop was given meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.errors import CommandRefused
from gateway.domain.events import Event, EventKind
from gateway.lanes.machine import messages as m
from gateway.lanes.recorder import Recorder
from gateway.lanes.runner import LaneRunner
from gateway.runtime.clock import Clock
from gateway.store import Entry

_RECORDED_WITHIN = 1.0
_STOPPED_SINCE = "a stop was given after it"


class PersonCommands:
    """The way of people's commands to the disk and to the lanes."""

    def __init__(self, *, recorder: Recorder, failing: Callable[[], str], clock: Clock, boot: str) -> None:
        """`failing` returns why nothing can be written now, "" if it can. `boot` makes the ids of commands unique."""
        self._recorder = recorder
        self._failing = failing
        self._clock = clock
        self._boot = boot
        self._given = 0
        self._stops = Counter[str]()

    async def give(
        self, runner: LaneRunner, *, action: GateAction, source: str, life: float, refusal: str, command_id: str = ""
    ) -> Command:
        """Record a command for a lane's gate and send it; return once it is on disk, or the disk was too slow.

        A stop is sent at once and recorded meanwhile. Any other command is recorded first, and is refused if a stop was
        given meanwhile: an older command must not move a gate that somebody has stopped.

        Args:
            runner: the lane's runner.
            action: what the gate is to do.
            source: who commands, `user:<name>` for a person.
            life: seconds until the command's deadline.
            refusal: why it must not be carried out, "" when it may.
            command_id: an id that the caller has already given it; "" to make one.

        Raises:
            CommandRefused: with the reason; the refusal is recorded.
        """
        asked_at, lane = self._clock.monotonic(), runner.rules.lane
        command = self._made(runner, action=action, source=source, life=life, command_id=command_id)
        who = source.removeprefix("user:")
        if refusal:
            await self._record(self._refused(command, who, refusal))
            raise CommandRefused(refusal)
        request = m.CommandRequested(command, asked_at + life)
        if action is GateAction.STOP:
            self._stops[lane.id] += 1
            runner.post(request)
        stops = self._stops[lane.id]
        event = self._event(EventKind.COMMAND_RECORDED, f"{action} by {who}", command)
        recorded = await self._record(Entry(events=(event,), commands=(command,)))
        if self._stops[lane.id] != stops and action is not GateAction.STOP:
            self._recorder.put(self._refused(command, who, _STOPPED_SINCE))
            raise CommandRefused(_STOPPED_SINCE)
        if action is not GateAction.STOP:
            runner.post(request)
        return replace(command, recorded=recorded)

    def settle(self, unfinished: Command) -> None:
        """Record a command that the last run left unfinished as of unknown outcome. It is not sent again."""
        reason = "the gateway restarted before the outcome was known"
        settled = replace(unfinished, state=CommandState.UNKNOWN, detail=reason)
        event = self._event(EventKind.COMMAND_UNKNOWN, f"{unfinished.action}: {reason}", unfinished)
        self._recorder.put(Entry(events=(event,), commands=(settled,)))

    def _made(self, runner: LaneRunner, *, action: GateAction, source: str, life: float, command_id: str) -> Command:
        now, lane = self._clock.wall().micros, runner.rules.lane
        self._given += 1
        return Command(
            command_id=command_id or f"{self._boot}-wish-{self._given}",
            device_id=lane.gate,
            lane_id=lane.id,
            action=action,
            source=source,
            requested_at=now,
            deadline_at=now + int(life * 1_000_000),
        )

    def _refused(self, command: Command, who: str, reason: str) -> Entry:
        refused = replace(command, state=CommandState.REFUSED, detail=reason)
        event = self._event(EventKind.COMMAND_REFUSED, f"{command.action} by {who}: {reason}", command)
        return Entry(events=(event,), commands=(refused,))

    def _event(self, kind: EventKind, text: str, command: Command) -> Event:
        stamp = self._clock.wall()
        return Event(
            kind=kind,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            description=text,
            device_id=command.device_id,
            lane_id=command.lane_id,
            data={"command_id": command.command_id, "action": command.action.value},
        )

    async def _record(self, entry: Entry) -> bool:
        """Queue an entry, and return whether it is on disk within a second. If not, it usually stays queued."""
        lost = self._recorder.lost
        self._recorder.put(entry)
        return await self._recorder.recorded(lost=lost, within=0 if self._failing() else _RECORDED_WITHIN)
