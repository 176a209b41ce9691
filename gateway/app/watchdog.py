"""The watchdog: it watches the loop, the store's writer and the lines, and feeds systemd's while all make progress."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import structlog

from drivers.bus.bus import Bus
from gateway.app.systemd import Notify
from gateway.runtime.clock import Clock
from gateway.runtime.supervision import Progress
from gateway.store import Store

log = structlog.get_logger(__name__)

_LONGEST_PERIOD = 5.0
_LOOP_MOVES_WITHIN = 5.0
_STORE_MOVES_WITHIN = 30.0
_BUS_MOVES_WITHIN = 5.0
_BUS_ANSWERS_WITHIN = 10.0
_BEAT_SECONDS = 1.0


class Watchdog:
    """A check of each part once a second, which reports to `progress` the parts that have made progress."""

    def __init__(
        self, *, progress: Progress, store: Store, buses: Callable[[], Mapping[str, Bus]], clock: Clock
    ) -> None:
        """`buses` returns the present lines. Whoever closes a line must also remove it from `progress`."""
        self._progress = progress
        self._store = store
        self._buses = buses
        self._expected: dict[str, Bus] = {}
        self._clock = clock

    def expect(self) -> None:
        """Expect progress of each part from now on."""
        self._progress.expect("loop", within=_LOOP_MOVES_WITHIN)
        self._progress.expect("store", within=_STORE_MOVES_WITHIN)
        self._expect_lines()

    def _expect_lines(self) -> None:
        buses = dict(self._buses())
        for name, bus in buses.items():
            if self._expected.get(name) is not bus:
                self._progress.expect(f"bus {name}", within=_BUS_MOVES_WITHIN)
        self._expected = buses

    async def run(self) -> None:
        """Report progress of the loop, the writer and the lines once a second, until cancelled.

        The loop makes progress by running this task.
        """
        commits = -1
        while True:
            self._progress.beat("loop")
            if self._store.commits != commits or not self._store.waiting:
                commits = self._store.commits
                self._progress.beat("store")
            self._expect_lines()
            for name, bus in self._expected.items():
                if bus.busy_since is None or self._clock.monotonic() - bus.busy_since < _BUS_ANSWERS_WITHIN:
                    self._progress.beat(f"bus {name}")
            await asyncio.sleep(_BEAT_SECONDS)


async def feed_watchdog(*, notify: Notify, progress: Progress, status: Callable[[], str]) -> None:
    """Feed systemd's watchdog while every expected part makes progress, until cancelled.

    While a part is stuck, the watchdog is not fed, and the status names the part. `status` returns the sentence that is
    shown otherwise; it is called at each feeding and must not block.
    """
    period = min(notify.watchdog_seconds / 4, _LONGEST_PERIOD) if notify.watchdog_seconds else _LONGEST_PERIOD
    reported: tuple[str, ...] = ()
    while True:
        stuck = progress.stuck()
        if stuck:
            notify.status(f"stuck: {', '.join(stuck)}")
        else:
            notify.feed(status())
        if stuck != reported:
            if stuck:
                log.error("parts_stuck", parts=stuck)
            else:
                log.info("parts_moving_again", parts=reported)
            reported = stuck
        await asyncio.sleep(period)
