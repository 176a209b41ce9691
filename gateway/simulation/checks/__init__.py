"""The checks, one per promise. Each is fed with observations and says in one sentence what breaks its promise."""

from __future__ import annotations

from gateway.simulation import observations as seen
from gateway.simulation.checks.clock import ClockCheck
from gateway.simulation.checks.closing import ClosingCheck, ReopeningCheck
from gateway.simulation.checks.commands import ArrivalsCheck, CommandsCheck, DeadlinesCheck
from gateway.simulation.checks.decisions import AccessCheck, DelayCheck
from gateway.simulation.checks.passages import PassagesCheck
from gateway.simulation.checks.records import BooksCheck, DurableCheck
from gateway.simulation.checks.stopping import StoppingCheck
from gateway.simulation.witness import Check


class TasksCheck:
    """The rule that no task ends by an error that nobody expected: its supervisor reports each."""

    promise = "no task fails"
    wants = (seen.TaskFailed,)

    def see(self, observation: seen.Observation) -> str:
        """See `Check`."""
        return f"{observation.task}: {observation.error}" if isinstance(observation, seen.TaskFailed) else ""


def all_checks(
    *,
    stale: float,
    command_life: float,
    clear: float = 1.0,
    clear_after_loss: float = 3.0,
    fire_lanes: frozenset[str] = frozenset(),
    sure_time_lanes: frozenset[str] = frozenset(),
    cards_with_days: frozenset[int] = frozenset(),
) -> tuple[Check, ...]:
    """Make fresh checks for one run; the times are the site's and its lanes', in seconds.

    `fire_lanes` have a fire input. `sure_time_lanes` refuse `cards_with_days` while the clock is not trusted.
    """
    return (
        ClosingCheck(stale=stale, clear=clear, clear_after_loss=clear_after_loss, fire_lanes=fire_lanes),
        ReopeningCheck(),
        StoppingCheck(),
        CommandsCheck(command_life=command_life, stale=stale),
        DeadlinesCheck(command_life=command_life),
        ArrivalsCheck(),
        DurableCheck(),
        BooksCheck(),
        DelayCheck(sure_time_lanes=sure_time_lanes),
        ClockCheck(sure_time_lanes=sure_time_lanes, cards_with_days=cards_with_days),
        AccessCheck(),
        PassagesCheck(),
        TasksCheck(),
    )


__all__ = [
    "AccessCheck",
    "ArrivalsCheck",
    "BooksCheck",
    "ClockCheck",
    "ClosingCheck",
    "CommandsCheck",
    "DeadlinesCheck",
    "DelayCheck",
    "DurableCheck",
    "PassagesCheck",
    "ReopeningCheck",
    "StoppingCheck",
    "TasksCheck",
    "all_checks",
]
