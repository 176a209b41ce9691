"""The state of this machine's disks and memory, from files of the kernel. Reading may hang: call it in a thread.

The same files tell the number, the memory and the written bytes of this process and its descendants.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

DATA_FOLDER, MEDIA_FOLDER = "data folder", "media folder"
"""The names of the gateway's folders for people."""
_ROOT = Path("/")
_WORN_FROM = 9
"""eMMC's wear in tenths of its promised life: 9 means 80 % to 90 %, 11 means more than all of it."""
_PRE_END = {2: "80 % of its reserve is used up", 3: "its reserve is used up"}
_NO_LIMIT = 1 << 60
"""Limits from here on mean no limit: some kernels show a huge number for that."""

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_NAMES = {
    "gateway.camera_worker": "camera worker",
    "gateway.camera_worker.cutter": "clip cutter",
    "drivers.osdp.line_process": "OSDP line",
    "gateway.web.spreadsheet_process": "spreadsheet process",
}
"""The names of child processes by the module that they run; others count as "other"."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory in use and its limit, in bytes.

    Attributes:
        used: the memory that the gateway and its children use if its unit has a limit, else the whole machine; without
            memory that the kernel can reclaim.
        limit: the limit of the unit, else the machine's memory.
        of_unit: whether these are the unit's figures.
    """

    used: int
    limit: int
    of_unit: bool

    @property
    def share(self) -> float:
        """The used share of the limit."""
        return self.used / self.limit


@dataclass(frozen=True, slots=True)
class Room:
    """Room on the disk of a folder, in bytes.

    Attributes:
        free: what is free for the gateway.
        total: the size of the disk.
        databases: what the databases in the folder take.
        device: the disk's number.
    """

    free: int
    total: int
    databases: int
    device: int


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """Facts about the disks of the gateway's folders.

    Attributes:
        room: the room on the disk of each folder, by the folder's name.
        read_only: the names of folders whose disk is mounted read-only, one folder per disk.
        worn: the wear of worn disks in words, by the disk's name.
    """

    read_only: tuple[str, ...] = ()
    worn: Mapping[str, str] = field(default_factory=dict)
    room: Mapping[str, Room] = field(default_factory=dict)


def disk_facts(folders: Mapping[str, Path], *, root: Path = _ROOT) -> DiskFacts:
    """Read the facts about the disks of these folders, which are given by their names for people."""
    read_only: dict[int, str] = {}
    worn, room = {}, {}
    for name, folder in folders.items():
        try:
            disk_of, device = os.statvfs(folder), folder.stat().st_dev
        except OSError:
            continue  # a missing folder is reported by its owner
        block = disk_of.f_frsize
        room[name] = Room(disk_of.f_bavail * block, disk_of.f_blocks * block, _databases(folder), device)
        if disk_of.f_flag & os.ST_RDONLY:
            read_only.setdefault(device, name)  # two folders on one disk are one problem
        disk = (root / f"sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
        for part in (disk, disk.parent):  # a partition has no facts of its own
            if wear := _wear(part / "device"):
                worn[part.name] = wear
    return DiskFacts(tuple(read_only.values()), worn, room)


def _databases(folder: Path) -> int:
    taken = 0
    for file in folder.glob("*.db*"):
        with contextlib.suppress(OSError):  # some come and go with each commit
            taken += file.stat().st_size
    return taken


def _wear(device: Path) -> str:
    """Return the wear of an eMMC in words, "" for a disk that is not worn or does not report wear."""
    used = max((step for step in _numbers(device / "life_time")), default=0)
    reserve = _PRE_END.get(max(_numbers(device / "pre_eol_info"), default=0), "")
    if used > 10:
        return "it is used beyond the life that its maker promises"
    if used >= _WORN_FROM:
        return f"{10 * used} % of the life that its maker promises is used up"
    return reserve


def memory(*, root: Path = _ROOT) -> Memory | None:
    """Read the memory in use, None if the machine does not report it."""
    group = _group(root)
    limits = [limit for name in ("memory.max", "memory.high") for limit in _numbers(group / name)]
    current = next(_numbers(group / "memory.current"), None)
    if limits and current is not None and min(limits) < _NO_LIMIT:
        reclaimable = _table(group / "memory.stat").get("inactive_file", 0)
        return Memory(max(0, current - reclaimable), max(1, min(limits)), of_unit=True)
    machine = _table(root / "proc/meminfo")
    if not machine.get("MemTotal") or "MemAvailable" not in machine:
        return None
    total = machine["MemTotal"] * 1024
    return Memory(total - machine["MemAvailable"] * 1024, total, of_unit=False)


def _group(root: Path) -> Path:
    """Return the folder of this process's control group."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        if line.startswith("0::/"):
            return root / "sys/fs/cgroup" / line.removeprefix("0::/")
    return root / "sys/fs/cgroup"


def _table(path: Path) -> dict[str, int]:
    """Read a file with a name and a number on each line."""
    lines = (line.replace(":", " ").split() for line in _text(path).splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1 and words[1].isdecimal()}


def _numbers(path: Path) -> Iterator[int]:
    """Yield the decimal and hexadecimal numbers in a file; words such as "max" are skipped."""
    for word in _text(path).split():
        try:
            yield int(word, 0)
        except ValueError:
            continue


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError:
        return ""


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
