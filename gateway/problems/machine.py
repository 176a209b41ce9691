"""The problems of the machine that the gateway runs on. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import Problem, gateway_problem
from gateway.runtime.loop_watch import LongHold
from gateway.runtime.machine_state import DiskFacts, Memory

_MEGABYTE = 1_000_000


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
        yield gateway_problem(ProblemKind.DISK_READ_ONLY, f"the disk of the {folder} is read-only", folder)
    for disk, wear in machine.disks.worn.items():
        yield gateway_problem(ProblemKind.DISK_WORN, f"the disk {disk} wears out: {wear}", disk)
    if machine.slow_commits:
        yield gateway_problem(
            ProblemKind.DISK_SLOW, f"most records take more than {machine.slow_commits:g} s to reach the disk"
        )
    if (memory := machine.memory_high) is not None:
        whose = "the gateway's unit may have" if memory.of_unit else "this machine has"
        limit = memory.limit // _MEGABYTE
        text = f"less than a fifth of the {limit:,} MB of memory that {whose} is left"
        yield gateway_problem(ProblemKind.MEMORY_HIGH, text)
    if (hold := machine.loop_held) is not None:
        yield gateway_problem(ProblemKind.LOOP_HELD, _held_by(hold))
    if step := machine.clock_step:
        where = "ahead" if step > 0 else "back"
        yield gateway_problem(ProblemKind.CLOCK_STEPPED, f"the clock was set {where} by {_span(abs(step))}")


def size(count: int) -> str:
    """Return bytes in words: "12 MB", "1.3 GB"."""
    if count < 1000 * _MEGABYTE:
        return f"{count / _MEGABYTE:.0f} MB"
    return f"{count / (1000 * _MEGABYTE):,.1f} GB"


def _held_by(hold: LongHold) -> str:
    if not hold.busy:
        return "the gateway waits for this machine for more than half a second again and again"
    return "the gateway is busy for more than half a second again and again" + (f": {hold.task}" if hold.task else "")


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} minutes"
