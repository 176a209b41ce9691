"""Commands to gates: recorded, sent, acknowledged, moved; or refused, or of unknown outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.texts import Text, Words, text

LANE = "lane"
"""The source of a lane's own commands."""
SCHEDULE = "schedule"
"""The source of the orders of a lane's timetable."""
CENTRAL_EVENT = "central, event "
"""The source of a command of central, with the number of its event behind it."""
_USER = "user:"


class GateAction(StrEnum):
    """Actions of a gate."""

    OPEN = "open"
    CLOSE = "close"
    STOP = "stop"


class CommandState(StrEnum):
    """Progress of a command. The last three states are final."""

    RECORDED = "recorded"
    SENT = "sent"
    ACKNOWLEDGED = "acknowledged"
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"


FINAL_STATES = frozenset({CommandState.DONE, CommandState.REFUSED, CommandState.UNKNOWN})


@dataclass(frozen=True, slots=True)
class Command:
    """A command to a gate, as it is recorded. Times are wall micros UTC.

    Attributes:
        command_id: an id that is never used again, made where the command was made.
        source: who gave it: `lane`, or `user:<name>`.
        deadline_at: from then on it must not act.
        detail: why it was refused, or why its outcome is unknown.
        recorded: False if it was carried out before it was on disk; it is then recorded once writes succeed.
    """

    command_id: str
    device_id: int
    lane_id: str
    action: GateAction
    source: str
    requested_at: int
    deadline_at: int
    state: CommandState = CommandState.RECORDED
    detail: Words = ""
    recorded: bool = True


def actor(source: str) -> Text | str:
    """Name for people who gave a command or an order: a person by name, the lane, its schedule or central."""
    if source.startswith(CENTRAL_EVENT):
        return text("actor.central", event=source.removeprefix(CENTRAL_EVENT))
    if source == LANE:
        return text("actor.lane")
    return text("actor.schedule") if source == SCHEDULE else source.removeprefix(_USER)


def command_text(action: GateAction, source: str, why: Words = "") -> Text:
    """Tell for people that somebody gave this command, and why it was not carried out or may not have been."""
    if why:
        return text(f"event.command_for.{action}", who=actor(source), why=why)
    return text(f"event.command.{action}", who=actor(source))
