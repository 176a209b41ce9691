"""The system's facts about processes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def children_of(process: int) -> list[int]:
    """The processes that any thread of a process has started, and that are still there."""
    found: list[int] = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += map(int, children.read_text().split())
    return found


def tree(root: int) -> list[int]:
    """A process and all below it."""
    return [root, *(below for child in children_of(root) for below in tree(child))]


def cpu_seconds(processes: list[int]) -> float:
    """User and system time of these processes."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def megabytes(processes: list[int]) -> tuple[float, float]:
    """Resident memory of these processes: their sum, and with shared pages counted once (PSS)."""
    rss = pss = 0
    for process in processes:
        for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "Rss":
                rss += int(value.split()[0])
            elif name == "Pss":
                pss += int(value.split()[0])
    return rss / 1000, pss / 1000


def is_a_cutter(process: int) -> bool:
    """Return whether it makes clips, and lives: the command of an ended process is empty, or it is gone."""
    with contextlib.suppress(OSError):
        return b"gateway.camera_worker.cutter" in Path(f"/proc/{process}/cmdline").read_bytes()
    return False
