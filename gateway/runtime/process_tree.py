"""This process and its descendants: their number, their memory, and the bytes that they wrote to the disk."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_NAMES = {
    "gateway.camera_worker": "camera worker",
    "gateway.camera_worker.cutter": "clip cutter",
    "drivers.osdp.line_process": "OSDP line",
    "gateway.web.spreadsheet_process": "spreadsheet process",
}
"""The names of child processes by the module that they run; others count as "other"."""


@dataclass(frozen=True, slots=True)
class ProcessFigures:
    """One process: its kind, its resident memory, and what it wrote to the disk, in bytes."""

    name: str
    resident: int
    written: int


def processes(proc: Path = Path("/proc")) -> tuple[ProcessFigures, ...]:
    """Read the figures of this process and all its descendants. Blocks on files of the kernel: call it in a thread.

    The kernel adds the written bytes of an ended child to its parent's. A process that ends meanwhile is left out.
    """
    return tuple(_below(os.getpid(), "gateway", proc))


def _below(pid: int, name: str, proc: Path) -> Iterator[ProcessFigures]:
    folder = proc / str(pid)
    with contextlib.suppress(OSError, ValueError):  # it has ended, or the kernel does not show these figures
        yield ProcessFigures(name, _resident(folder), _written(folder))
    for child in _children(folder):
        yield from _below(child, _name(proc / str(child)), proc)


def _children(folder: Path) -> Iterator[int]:
    """Yield the children that any thread of a process started."""
    with contextlib.suppress(OSError):
        for thread in (folder / "task").iterdir():
            with contextlib.suppress(OSError):  # the thread has ended, or the kernel does not list children
                yield from map(int, (thread / "children").read_text("ascii").split())


def _resident(folder: Path) -> int:
    return int((folder / "statm").read_text("ascii").split()[1]) * _PAGE_BYTES


def _written(folder: Path) -> int:
    """Return the bytes that the process sent to the disk, without writes that were cancelled (proc(5), `io`)."""
    lines = (folder / "io").read_text("ascii").splitlines()
    figures = {name: int(value) for name, _, value in (line.partition(":") for line in lines)}
    return max(0, figures["write_bytes"] - figures["cancelled_write_bytes"])


def _name(folder: Path) -> str:
    try:
        words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return "other"
    return next((_NAMES[word] for word in words if word in _NAMES), "other")
