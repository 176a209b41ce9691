"""Facts about the machine for the support bundle. Reads files and runs short programs, so it blocks."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("edge-gateway", "aiohttp", "aiortc", "av", "libosdp", "pydantic", "pymodbus", "structlog")
_PROGRAM_SECONDS = 10
_MOST_BYTES = 2_000_000
_OS_RELEASE = Path("/etc/os-release")


def versions() -> dict[str, object]:
    """Return the versions of packages, Python and the operating system."""
    return {
        "packages": {name: _version(name) for name in _PACKAGES},
        "python": sys.version,
        "machine": " ".join(platform.uname()[2:5]),
        "system": _read(_OS_RELEASE).splitlines()[:2],
    }


def disk(folders: tuple[Path, ...]) -> dict[str, object]:
    """Return the disk usage of the folders, the sizes of the files directly in them, and the mounts."""
    found: dict[str, object] = {"mounts": _read(Path("/proc/mounts")).splitlines()}
    for folder in folders:
        try:
            usage = shutil.disk_usage(folder)
            files = {one.name: one.stat().st_size for one in sorted(folder.iterdir()) if one.is_file()}
        except OSError as error:
            found[str(folder)] = error.strerror or "cannot be read"
        else:
            found[str(folder)] = {**usage._asdict(), "files": files}
    return found


def clock() -> dict[str, object]:
    """Return the wall time, the seconds since boot, and the state of time synchronisation."""
    return {
        "wall": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "up_seconds": round(time.clock_gettime(time.CLOCK_BOOTTIME)),
        "timedatectl": _told(("timedatectl", "show")).splitlines(),
    }


def load() -> dict[str, object]:
    """Return the load averages, the number of CPUs, and memory use of the machine and of this process."""
    memory = [line for line in _read(Path("/proc/meminfo")).splitlines() if line.startswith(("MemTotal", "MemAvail"))]
    own = [line for line in _read(Path("/proc/self/status")).splitlines() if line.startswith(("VmRSS", "Threads"))]
    return {"load": os.getloadavg(), "cpus": os.cpu_count(), "memory": memory, "process": own}


def journal(lines: int = 1000) -> str:
    """Return the last lines of the gateway's units in the systemd journal; "" when it cannot be read."""
    unit = "edge-gateway*"
    return _told(("journalctl", "--unit", unit, "--lines", str(lines), "--no-pager", "--output", "short-iso"))


def _told(words: tuple[str, ...]) -> str:
    """Return a program's output; "" when the program is missing, fails or takes over 10 s."""
    try:
        done = subprocess.run(
            words, capture_output=True, timeout=_PROGRAM_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout[-_MOST_BYTES:].decode(errors="replace") if done.returncode == 0 else ""


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")[:_MOST_BYTES]
    except OSError:
        return ""


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
