"""The watchdog's checks: the event loop, the store's writer and the lines must each show progress."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from drivers.bus.bus import Bus
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Progress
from gateway.store import Store

_LOOP_MOVES_WITHIN = 5.0
_STORE_MOVES_WITHIN = 30.0
_BUS_MOVES_WITHIN = 5.0
_BUS_ANSWERS_WITHIN = 10.0
_BEAT_SECONDS = 1.0


class Watchdog:
    """Watchdog that looks once a second and reports to `progress` what has moved on."""

    def __init__(self, *, progress: Progress, store: Store, buses: Mapping[str, Bus], clock: Clock) -> None:
        self._progress = progress
        self._store = store
        self._buses = buses
        self._clock = clock

    def expect(self) -> None:
        """Begin to watch the progress of these parts."""
        self._progress.expect("loop", within=_LOOP_MOVES_WITHIN)
        self._progress.expect("store", within=_STORE_MOVES_WITHIN)
        for name in self._buses:
            self._progress.expect(f"bus {name}", within=_BUS_MOVES_WITHIN)

    async def run(self) -> None:
        """Tell of the loop by being here, of the writer and the lines by what they did since. Until cancelled."""
        commits = -1
        while True:
            self._progress.beat("loop")
            if self._store.commits != commits or not self._store.waiting:
                commits = self._store.commits
                self._progress.beat("store")
            for name, bus in self._buses.items():
                if bus.busy_since is None or self._clock.monotonic() - bus.busy_since < _BUS_ANSWERS_WITHIN:
                    self._progress.beat(f"bus {name}")
            await asyncio.sleep(_BEAT_SECONDS)
