"""The support bundle of a running gateway: named texts, each masked, in a compressed archive."""

from __future__ import annotations

import asyncio
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic_core import to_jsonable_python

from gateway.domain.errors import StoreError
from gateway.domain.events import RecordedEvent
from gateway.lanes.incidents import Incidents, SavedIncident
from gateway.lines.site_lines import SiteLines
from gateway.problems.found import SiteState
from gateway.problems.problem import Verdict
from gateway.runtime.clock import Clock, iso_utc
from gateway.store.events.events import Events
from gateway.support.masking import Masking

_EVENTS = 1000
MOST_BYTES = 4_000_000
_README = """Support bundle of an edge gateway.

Cut out: secrets, accounts and queries in addresses, keys, tokens, PINs, comments of the site file, and the numbers of
cards but their last two digits. Texts of events still name people and plates: pass it on only to whom they may know.
"""

_PACKAGES = ("edge-gateway", "aiohttp", "aiortc", "av", "libosdp", "pydantic", "pymodbus", "structlog")
_PROGRAM_SECONDS = 10
_MOST_BYTES = 2_000_000
_OS_RELEASE = Path("/etc/os-release")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A bundle: the name of its file, and its content."""

    name: str
    content: bytes


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportContext:
    """Parts of the gateway that a bundle tells of.

    Attributes:
        site_path: the site file.
        data: the data folder.
        verdict, state: return the present problems and the present state of the site.
        lines: the polled lines.
        events: the stored events.
        incidents: the saved incidents of lanes.
        log: returns the last lines of the log.
        masking: the masking of secrets.
        clock: the clock for the bundle's time.
    """

    site_path: Path
    data: Path
    verdict: Callable[[], Verdict]
    state: Callable[[], SiteState]
    lines: SiteLines
    events: Events
    incidents: Incidents
    log: Callable[[], tuple[str, ...]]
    masking: Masking
    clock: Clock


@dataclass(frozen=True, slots=True)
class SupportBundle:
    """The maker of bundles."""

    context: SupportContext

    async def make(self) -> Bundle:
        """Collect and pack a bundle. If the store cannot be read, its events are missing, and the bundle says why."""
        stamp = self.context.clock.wall()
        told: dict[str, object] = {"now": iso_utc(stamp.micros), "clock_trusted": stamp.trusted}
        events: tuple[RecordedEvent, ...] = ()
        try:
            events = await self.context.events.latest(limit=_EVENTS)
        except StoreError as error:
            told["events"] = str(error)
        incidents = await self._incidents()
        values = {
            "verdict.json": self.context.verdict(),
            "state.json": self.context.state(),
            "frames.json": {name: self.context.lines.frames.since(name, 0) for name in self.context.lines.polled},
            "scans.json": {name: self.context.lines.scans.of(name) for name in self.context.lines.polled},
            "events.json": [_event(event) for event in events],
            "incidents.json": incidents,
            "gateway.json": told,
        }
        name = f"edge-gateway-{iso_utc(stamp.micros)[:19].replace(':', '')}"
        pack = partial(self._packed, values, name=name, at=stamp.micros // 1_000_000)
        return Bundle(name=f"{name}.tar.gz", content=await asyncio.to_thread(pack))

    async def log_tail(self, most: int) -> tuple[str, ...]:
        """Return the last `most` lines of the log, oldest first, masked as in a bundle."""
        lines = self.context.log()[-most:]
        return await asyncio.to_thread(lambda: tuple(map(self.context.masking.log_line, lines)))

    async def _incidents(self) -> tuple[SavedIncident, ...]:
        try:
            return await self.context.incidents.saved()
        except OSError:
            return ()

    def _packed(self, values: dict[str, object], *, name: str, at: int) -> bytes:
        masking = self.context.masking
        texts = {file: json_text(value, masking) for file, value in values.items()}
        log = "\n".join(map(masking.log_line, self.context.log()))
        media = self.context.data / "media"
        return archive(
            {
                **texts,
                "log.txt": log,
                **machine_texts(masking, site_path=self.context.site_path, folders=(self.context.data, media)),
            },
            name=name,
            at=at,
            masking=masking,
        )


def machine_texts(masking: Masking, *, site_path: Path, folders: tuple[Path, ...]) -> dict[str, str]:
    """Return the texts that need no running gateway: the site file, versions, and facts of the machine. Blocks."""
    try:
        site = masking.site_file(site_path.read_text("utf-8", "replace"))
    except OSError as error:
        site = f"# {site_path}: {error.strerror}\n"
    return {
        "site.toml": site,
        "versions.json": json_text(versions()),
        "disk.json": json_text(disk(folders)),
        "clock.json": json_text(clock()),
        "load.json": json_text(load()),
        "journal.txt": "\n".join(map(masking.journal_line, journal().splitlines())),
    }


def _event(event: RecordedEvent) -> dict[str, object]:
    """Return an event without its data, which may contain a card's number."""
    return {
        "id": event.id,
        "at": iso_utc(event.date_at),
        "type": event.type,
        "name": event.name,
        "description": event.description,
        "device": event.device_id,
        "lane": event.lane_id,
    }


def json_text(value: object, masking: Masking | None = None) -> str:
    """Return a value as JSON; with `masking`, its secrets and card numbers are masked."""
    plain = to_jsonable_python(value, fallback=str, inf_nan_mode="strings")
    shown = plain if masking is None else masking.value("", plain)
    return json.dumps(shown, indent=1, ensure_ascii=False) + "\n"


def archive(texts: Mapping[str, str], *, name: str, at: int, masking: Masking) -> bytes:
    """Pack the texts, by file name, into an archive with a folder of this name.

    Each text is masked once more; of a text over 4 MB only the end is kept. `at` is the files' time in seconds since
    1970.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for file, text in {"README.txt": _README, **texts}.items():
            content = masking.text(text).encode(errors="replace")[-MOST_BYTES:]
            entry = tarfile.TarInfo(f"{name}/{file}")
            entry.size, entry.mtime, entry.mode = len(content), at, 0o600
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()
