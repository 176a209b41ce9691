"""Promise 2: no command is replayed; none acts after its deadline. And no gate opens without a reason."""

from __future__ import annotations

from gateway.domain.commands import FINAL_STATES, Command, CommandState, GateAction
from gateway.simulation import observations as seen

_DECISION_SECONDS = 1.0
_SLACK = 0.05


class CommandsCheck:
    """Each open on the wire needs a card or a person of the same life of the gateway, each reason counts once."""

    promise = "2 no command is replayed or late"
    wants = (seen.Presented, seen.Asked, seen.Wrote, seen.Acknowledged, seen.Started, seen.Ended)

    def __init__(self, *, command_life: float) -> None:
        self._life = command_life
        self._reasons: dict[str, list[float]] = {}
        self._states: dict[str, CommandState] = {}
        self._left_open: set[str] = set()

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        match observation:
            case seen.Presented():
                if observation.good is not False:
                    self._reason(observation.lane, observation.at + _DECISION_SECONDS + self._life)
            case seen.Asked(action=GateAction.OPEN):
                self._reason(observation.lane, observation.at + self._life)
            case seen.Wrote():
                return self._judge(observation)
            case seen.Acknowledged():
                faults = (self._follow(command) for command in observation.entry.commands)
                return next((fault for fault in faults if fault), "")
            case seen.Started():
                self._left_open.update(observation.unfinished)
            case seen.Ended():
                self._reasons.clear()
            case _:
                pass
        return ""

    def _reason(self, lane: str, until: float) -> None:
        self._reasons.setdefault(lane, []).append(until)

    def _judge(self, wrote: seen.Wrote) -> str:
        if wrote.at > wrote.deadline:
            return f"{wrote.action} went out in {wrote.lane} {wrote.at - wrote.deadline:.3f} s after its deadline"
        if wrote.action is not GateAction.OPEN:
            return ""
        reasons = sorted(until for until in self._reasons.get(wrote.lane, ()) if until + _SLACK >= wrote.at)
        if not reasons:
            return f"open went out in {wrote.lane} and neither a good card nor a person had asked for it in time"
        self._reasons[wrote.lane] = reasons[1:]
        return ""

    def _follow(self, command: Command) -> str:
        name, before = command.command_id, self._states.get(command.command_id)
        self._states[name] = command.state
        if command.state is CommandState.SENT:
            if name in self._left_open:
                return f"command {name} of an earlier life was sent"
            if before is CommandState.SENT:
                return f"command {name} was sent twice"
        if before in FINAL_STATES and command.state is not before:
            return f"command {name} was {before} and became {command.state}"
        return ""
