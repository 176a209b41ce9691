"""When each problem of the site began, on disk: one that outlasts a restart keeps its beginning."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import structlog

from gateway.domain.wall_time import WallMicros
from gateway.runtime.clock import Clock
from gateway.runtime.durable_files import write_durably

log = structlog.get_logger(__name__)

Key = tuple[str, ...]
_NAME = "problems.json"
_KEEP_SECONDS = 60.0


class BeginsFile:
    """The beginnings of the present problems in the data folder, written once a minute at most."""

    def __init__(self, *, folder: Path, clock: Clock) -> None:
        """Keep the collaborators."""
        self._path = folder / _NAME
        self._clock = clock
        self._kept: dict[Key, WallMicros] = {}
        self._kept_at = float("-inf")

    async def read(self) -> dict[Key, WallMicros]:
        """Return what the last run has kept, nothing if there is none or it cannot be read."""
        try:
            text = await asyncio.to_thread(self._path.read_text, "utf-8")
            self._kept = {tuple(map(str, key)): int(since) for key, since in json.loads(text)}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, TypeError) as error:
            log.warning("problem_begins_not_read", error=str(error))
        return dict(self._kept)

    async def keep(self, begins: Mapping[Key, WallMicros]) -> None:
        """Keep the beginnings if they have changed and it is time. If the disk refuses, it is tried again later."""
        now = self._clock.monotonic()
        if begins == self._kept or now < self._kept_at + _KEEP_SECONDS:
            return
        self._kept_at = now
        text = json.dumps(list(begins.items()))
        try:
            await asyncio.to_thread(write_durably, self._path, text.encode())
        except OSError as error:
            log.debug("problem_begins_not_kept", error=str(error))
        else:
            self._kept = dict(begins)
