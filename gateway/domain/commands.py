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
    """A command on disk. Times are wall micros UTC.

    Attributes:
        command_id: unique for ever, made where the command was made.
        source: who wanted it: `lane`, or `user:<name>`.
        deadline_at: after this it must not act.
        detail: why it was refused or is unknown.
        recorded: False: carried out though the disk has not taken it. It is recorded once the disk does.
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
