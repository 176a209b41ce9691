"""Check that no task of the gateway ends with an unexpected error."""

from __future__ import annotations

from gateway.simulation import observations as seen


class TasksCheck:
    """Every failure that a supervisor had to catch is one."""

    promise = "no task fails"
    wants = (seen.TaskFailed,)

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        return f"{observation.task}: {observation.error}" if isinstance(observation, seen.TaskFailed) else ""
