"""Commands to gates: recorded, sent, acknowledged, moved; or refused, or of unknown outcome."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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
    detail: str = ""
    recorded: bool = True
