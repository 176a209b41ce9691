"""Incidents: the lane's last two minutes, saved as a file at each alarm and when somebody asks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from gateway.domain.errors import NotFoundError, StoreError
from gateway.lanes.incident_files import incident_file
from gateway.lanes.tape import Incident
from gateway.runtime.clock import Clock, iso_utc

log = structlog.get_logger(__name__)

ENDING = ".incident"
AFTER_SECONDS = 5.0
"""How long after an alarm the tape is saved, so that the file also shows what followed."""
_EACH_SECONDS = 60.0
"""The shortest time between two files of the same lane that alarms cause."""
MOST_FILES = 100
_MODE = 0o640


@dataclass(frozen=True, slots=True)
class SavedIncident:
    """A file of an incident: its name, which holds its time and lane, and its size in bytes."""

    name: str
    size: int


class Incidents:
    """The folder of incident files. It keeps the newest hundred."""

    def __init__(self, *, folder: Path, clock: Clock, incident: Callable[[str], Incident]) -> None:
        """`incident` returns a lane's tape by the lane's id, and raises NotFoundError if there is none."""
        self._folder = folder
        self._clock = clock
        self._incident = incident
        self._due: dict[str, float] = {}
        self._saved_at: dict[str, float] = {}
        self._woken = asyncio.Event()

    def alarm(self, lane_id: str) -> None:
        """Have `run` save a lane's tape in `AFTER_SECONDS`; at most once a minute for each lane."""
        now = self._clock.monotonic()
        if lane_id not in self._due and now >= self._saved_at.get(lane_id, float("-inf")) + _EACH_SECONDS:
            self._due[lane_id] = now + AFTER_SECONDS
            self._woken.set()

    async def run(self) -> None:
        """Save tapes as they fall due, until cancelled. A disk error is only logged, and a lane that is gone too."""
        while True:
            now = self._clock.monotonic()
            for lane_id in [lane_id for lane_id, at in self._due.items() if at <= now]:
                del self._due[lane_id]
                self._saved_at[lane_id] = now
                try:
                    await self.save(lane_id)
                except (StoreError, NotFoundError) as error:
                    log.warning("incident_not_saved", lane=lane_id, error=str(error))
            self._woken.clear()
            wait = min(self._due.values(), default=now + _EACH_SECONDS) - self._clock.monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.05, wait)):
                    await self._woken.wait()

    async def save(self, lane_id: str) -> SavedIncident:
        """Save a lane's tape now. Raises NotFoundError if there is none, StoreError if it cannot be written."""
        incident = self._incident(lane_id)
        moment = iso_utc(self._clock.wall().micros).replace(":", "-")
        return await asyncio.to_thread(self._write, f"{moment}_{lane_id}{ENDING}", incident)

    async def saved(self) -> tuple[SavedIncident, ...]:
        """Return the files, the newest first."""
        return await asyncio.to_thread(self._files)

    def path_of(self, name: str) -> Path:
        """Return the path of a file that `saved` names. Raises NotFoundError for any other name."""
        path = self._folder / name
        if path.name != name or not name.endswith(ENDING) or not path.is_file():
            raise NotFoundError(f"there is no incident {name!r}")
        return path

    def _files(self) -> tuple[SavedIncident, ...]:
        found = sorted(self._folder.glob(f"*{ENDING}"), reverse=True)
        return tuple(SavedIncident(path.name, path.stat().st_size) for path in found)

    def _write(self, name: str, incident: Incident) -> SavedIncident:
        content = incident_file(incident)
        try:
            self._folder.mkdir(mode=0o750, exist_ok=True)
            unfinished = self._folder / f"{name}.new"
            with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _MODE), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(self._folder / name)
            for old in self._files()[MOST_FILES:]:
                (self._folder / old.name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"the incident cannot be written: {error.strerror}") from error
        return SavedIncident(name, len(content))
