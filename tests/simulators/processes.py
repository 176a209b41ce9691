"""What the system tells of processes."""

from __future__ import annotations

import contextlib
from pathlib import Path


def children_of(process: int) -> list[int]:
    """The processes that any thread of a process has started, and that are still there."""
    found: list[int] = []
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += map(int, children.read_text().split())
    return found


def is_a_cutter(process: int) -> bool:
    """Whether it makes clips, and lives: of one that has ended the command is empty, or it is gone."""
    with contextlib.suppress(OSError):
        return b"gateway.camera_worker.cutter" in Path(f"/proc/{process}/cmdline").read_bytes()
    return False
