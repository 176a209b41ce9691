"""The travel time of a lane's gate, from the acknowledged command to the limit it was sent to. Pure.

Only a travel from one limit to the other is timed, and not if the gate stops, turns round, gets another command or
loses its controller on the way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from drivers.contract import GatePosition
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind
from gateway.domain.travels import TRAVEL_SECONDS
from gateway.lanes.machine import messages as m
from gateway.store import Entry

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
