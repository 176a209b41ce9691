"""Commands of people for gates: recorded, then sent, unless a safer one of somebody else crosses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from gateway.domain.commands import Command, CommandState, GateAction, actor, command_text
from gateway.domain.errors import CommandRefused
from gateway.domain.events import Event, EventKind
from gateway.lanes.machine import messages as m
from gateway.lanes.recorder import Recorder
from gateway.lanes.runner import LaneRunner
from gateway.runtime.clock import Clock
from gateway.store import Entry
from gateway.texts import Text, Words, text

_RECORDED_WITHIN = 1.0
_UNSEEN_SECONDS = 1.0
"""So long nobody can have seen another person's command and judged it."""
_SAFER: Mapping[GateAction, tuple[GateAction, ...]] = MappingProxyType(
    {GateAction.STOP: (), GateAction.OPEN: (GateAction.STOP,), GateAction.CLOSE: (GateAction.STOP, GateAction.OPEN)}
)
"""The commands that win over one that crosses them."""


@dataclass(frozen=True, slots=True)
class _Given:
    """The last command of its kind for a gate: its number, who gave it, and when in monotonic seconds."""

    number: int
    source: str
    at: float


class PersonCommands:
    """The way of people's commands to the disk and to the lanes."""

    def __init__(self, *, recorder: Recorder, failing: Callable[[], str], clock: Clock, boot: str) -> None:
        """`failing` returns why nothing can be written now, "" if it can. `boot` makes the ids of commands unique."""
        self._recorder = recorder
        self._failing = failing
        self._clock = clock
        self._boot = boot
        self._given = 0
        self._last: dict[tuple[str, GateAction], _Given] = {}

    async def give(
        self, runner: LaneRunner, *, action: GateAction, source: str, life: float, refusal: Words, command_id: str = ""
    ) -> Command:
        """Record a command for a lane's gate and send it; return once it is on disk, or the disk was too slow.

        A stop is sent at once and recorded meanwhile. Any other command is recorded first, and is refused if a safer
        one was given meanwhile, or by somebody else within the second before: two people command by what they see,
        and neither has seen the other's command. A stop wins over all, an open over a close.

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
        asked_at = self._clock.monotonic()
        command = self._made(runner, action=action, source=source, life=life, command_id=command_id)
        given = _Given(self._given, source, asked_at)
        if refusal := refusal or self._crossed(command, given):
            await self._record(self._refused(command, refusal))
            raise CommandRefused(refusal)
        self._last[command.lane_id, action] = given
        request = m.CommandRequested(command, asked_at + life)
        if action is GateAction.STOP:
            runner.post(request)
        event = self._event(EventKind.COMMAND_RECORDED, command_text(action, source), command)
        recorded = await self._record(Entry(events=(event,), commands=(command,)))
        if overtaken := self._overtaken(command, given):
            self._recorder.put(self._refused(command, overtaken))
            raise CommandRefused(overtaken)
        if action is not GateAction.STOP:
            runner.post(request)
        return replace(command, recorded=recorded)

    def _crossed(self, command: Command, given: _Given) -> Words:
        """Say which safer command somebody else gave just before; "" for none."""
        for action in _SAFER[command.action]:
            other = self._last.get((command.lane_id, action))
            if other and other.source != given.source and given.at - other.at < _UNSEEN_SECONDS:
                return text(f"command.crossed_by.{action}", who=actor(other.source))
        return ""

    def _overtaken(self, command: Command, given: _Given) -> Words:
        """Say which safer command was given while this one was recorded; "" for none."""
        for action in _SAFER[command.action]:
            other = self._last.get((command.lane_id, action))
            if other and other.number > given.number:
                return text(f"command.overtaken_by.{action}")
        return ""

    def settle(self, unfinished: Command) -> None:
        """Record a command that the last run left unfinished as of unknown outcome. It is not sent again."""
        reason = text("command.restarted")
        settled = replace(unfinished, state=CommandState.UNKNOWN, detail=reason)
        said = text(f"event.command_unknown.{unfinished.action}", why=reason)
        event = self._event(EventKind.COMMAND_UNKNOWN, said, unfinished)
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

    def _refused(self, command: Command, reason: Words) -> Entry:
        refused = replace(command, state=CommandState.REFUSED, detail=reason)
        event = self._event(EventKind.COMMAND_REFUSED, command_text(command.action, command.source, reason), command)
        return Entry(events=(event,), commands=(refused,))

    def _event(self, kind: EventKind, said: Text, command: Command) -> Event:
        stamp = self._clock.wall()
        return Event(
            kind=kind,
            date_at=stamp.micros,
            clock_trusted=stamp.trusted,
            text=said,
            device_id=command.device_id,
            lane_id=command.lane_id,
            data={"command_id": command.command_id, "action": command.action.value},
        )

    async def _record(self, entry: Entry) -> bool:
        """Queue an entry, and return whether it is on disk within a second. If not, it usually stays queued."""
        lost = self._recorder.lost
        self._recorder.put(entry)
        return await self._recorder.recorded(lost=lost, within=0 if self._failing() else _RECORDED_WITHIN)
