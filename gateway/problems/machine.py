"""The problems of the machine that the gateway runs on. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, gateway_problem
from gateway.runtime.loop_watch import LongHold
from gateway.runtime.machine_state import DATA_FOLDER, MEDIA_FOLDER, DiskFacts, Memory
from gateway.texts import Text, text

_MEGABYTE = 1_000_000
_FOLDERS = {DATA_FOLDER: "data", MEDIA_FOLDER: "media"}


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineState:
    """State of the machine.

    Attributes:
        disks: facts about the disks of the gateway's folders.
        memory_high: the memory in use if it runs short, else None.
        slow_commits: the duration that most commits exceed, in seconds; 0 while commits are quick.
        loop_held: the last long hold of the event loop if holds recur, else None.
        clock_step: the seconds by which the trusted clock was recently set; 0 if it was not.
    """

    disks: DiskFacts = field(default_factory=DiskFacts)
    memory_high: Memory | None = None
    slow_commits: float = 0.0
    loop_held: LongHold | None = None
    clock_step: float = 0.0


def problems_of_machine(machine: MachineState) -> Iterator[Problem]:
    """Yield the problems of disks, memory, processor and clock."""
    for folder in machine.disks.read_only:
        yield gateway_problem(ProblemKind.DISK_READ_ONLY, text(f"problem.disk_read_only.{_FOLDERS[folder]}"), folder)
    for disk, wear in machine.disks.worn.items():
        yield gateway_problem(ProblemKind.DISK_WORN, text("problem.disk_worn.text", disk=disk, why=wear), disk)
    if machine.slow_commits:
        said = text("problem.disk_slow.text", seconds=machine.slow_commits)
        yield gateway_problem(ProblemKind.DISK_SLOW, said)
    if (memory := machine.memory_high) is not None:
        whose = "unit" if memory.of_unit else "machine"
        said = text(f"problem.memory_high.{whose}", limit=memory.limit // _MEGABYTE)
        yield gateway_problem(ProblemKind.MEMORY_HIGH, said)
    if (hold := machine.loop_held) is not None:
        yield gateway_problem(ProblemKind.LOOP_HELD, _held_by(hold))
    if step := machine.clock_step:
        where = "ahead" if step > 0 else "back"
        yield gateway_problem(ProblemKind.CLOCK_STEPPED, text(f"problem.clock_stepped.{where}", span=_span(abs(step))))


def size(count: int) -> Text:
    """Return bytes in words: "12 MB", "1.3 GB"."""
    if count < 1000 * _MEGABYTE:
        return text("size.mb", amount=round(count / _MEGABYTE))
    return text("size.gb", amount=round(count / (1000 * _MEGABYTE), 1))


def _held_by(hold: LongHold) -> Text:
    if not hold.busy:
        return text("problem.loop_held.waits")
    return text("problem.loop_held.task", task=hold.task) if hold.task else text("problem.loop_held.busy")


def _span(seconds: float) -> Text:
    if seconds < 120:
        return text("span.seconds", count=round(seconds))
    return text("span.minutes", count=round(seconds / 60))
