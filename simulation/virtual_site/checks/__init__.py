"""The checks, one for each promise. Each gets observations and returns a sentence when its promise is broken."""

from __future__ import annotations

from simulation.virtual_site import observations as seen
from simulation.virtual_site.checks.clock import ClockCheck
from simulation.virtual_site.checks.closing import ClosingCheck, ReopeningCheck
from simulation.virtual_site.checks.commands import ArrivalsCheck, CommandsCheck, DeadlinesCheck
from simulation.virtual_site.checks.decisions import AccessCheck, DelayCheck
from simulation.virtual_site.checks.passages import PassagesCheck
from simulation.virtual_site.checks.polls import PollsCheck
from simulation.virtual_site.checks.records import BooksCheck, DurableCheck
from simulation.virtual_site.checks.stopping import StoppingCheck
from simulation.virtual_site.witness import Check


class TasksCheck:
    """The rule that no task ends with an unexpected error, which its supervisor reports."""

    promise = "no task fails"
    wants = (seen.TaskFailed,)

    def see(self, observation: seen.Observation) -> str:
        """Judge an observation; return a sentence when it breaks the promise, otherwise ""."""
        return f"{observation.task}: {observation.error}" if isinstance(observation, seen.TaskFailed) else ""


def all_checks(
    *,
    stale: float,
    command_life: float,
    poll: float,
    clear: float = 1.0,
    clear_after_loss: float = 3.0,
    fire_lanes: frozenset[str] = frozenset(),
    sure_time_lanes: frozenset[str] = frozenset(),
    cards_with_days: frozenset[int] = frozenset(),
) -> tuple[Check, ...]:
    """Make new checks for one run. All times are those of the site and its lanes, in seconds.

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
        PassagesCheck(command_life=command_life),
        PollsCheck(poll=poll),
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
    "PollsCheck",
    "ReopeningCheck",
    "StoppingCheck",
    "TasksCheck",
    "all_checks",
]
