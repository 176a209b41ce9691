"""The last time at which the clock was trusted, on disk: after any start it is the earliest possible time."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import structlog

from gateway.runtime.clock import Clock, TrustedTime
from gateway.runtime.durable_files import sync_folder

log = structlog.get_logger(__name__)

_NAME = "trusted-time.json"
_LOOK_SECONDS = 10.0
_KEEP_SECONDS = 60.0
_DRIFT_MICROS = 100_000

RELEASED: Final = datetime(2026, 11, 28, tzinfo=UTC)
"""The day on which this release was made, set with the version. It cannot be earlier on a box that runs it."""
RELEASED_AT: Final = int(RELEASED.timestamp()) * 1_000_000
"""The same in wall micros."""


def read_trusted_time(folder: Path) -> TrustedTime | None:
    """Return the last trusted time from the data folder, None if there is none or it cannot be read."""
    try:
        kept = json.loads((folder / _NAME).read_text("ascii"))
        return TrustedTime(str(kept["boot_id"]), int(kept["monotonic"]), int(kept["at"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        log.warning("trusted_time_not_read", error=str(error))
        return None


def keep_trusted_time(folder: Path, moment: TrustedTime) -> None:
    """Store the last trusted time durably in the data folder, in place of the one before. Blocks. Raises OSError."""
    path, draft = folder / _NAME, folder / f"{_NAME}.new"
    with draft.open("w", encoding="ascii") as file:
        os.fchmod(file.fileno(), 0o640)
        json.dump(asdict(moment), file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_folder(folder)


class TrustedTimeFile:
    """Stores the last trusted time on disk: once a minute while the clock is trusted, and after each correction."""

    def __init__(self, *, folder: Path, clock: Clock, boot_id: str, look: float = _LOOK_SECONDS) -> None:
        """Keep the collaborators. `look`: the seconds between two looks at the clock."""
        self._folder = folder
        self._clock = clock
        self._boot_id = boot_id
        self._look = look
        self._kept: TrustedTime | None = None

    async def run(self) -> None:
        """Store the time until cancelled. If the disk refuses, it is tried again at the next look."""
        while True:
            wall, monotonic = self._clock.wall(), int(self._clock.monotonic() * 1_000_000)
            moment = TrustedTime(self._boot_id, monotonic, wall.micros)
            if wall.trusted and self._is_due(moment):
                try:
                    await asyncio.to_thread(keep_trusted_time, self._folder, moment)
                except OSError as error:
                    log.debug("trusted_time_not_kept", error=str(error))
                else:
                    self._kept = moment
            await asyncio.sleep(self._look)

    def _is_due(self, moment: TrustedTime) -> bool:
        kept = self._kept
        if kept is None or moment.monotonic - kept.monotonic >= _KEEP_SECONDS * 1_000_000:
            return True
        return abs((moment.at - moment.monotonic) - (kept.at - kept.monotonic)) > _DRIFT_MICROS
