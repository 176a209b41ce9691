"""Notices on changed cards: those cards are fetched at once, and while notices come, whole pulls are rare.

Notices may be lost, so they replace no pull for long. A full pull comes each hour, and as soon as a notice is missing;
the usual pulls come again when notices end.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import islice
from typing import Final

import structlog

from gateway.central.pull.pull import DownSync
from gateway.domain.errors import CentralRefused, CentralUnavailable, StoreError
from gateway.runtime.clock import Clock

log = structlog.get_logger(__name__)

SWEEP_SECONDS: Final = 3600.0
SILENT_SECONDS: Final = 900.0
"""So long after the last notice, also an empty one, notices count as coming."""
_MOST_WAITING = 200
_AT_A_TIME = 5
"""Cards that are fetched before any of them is stored, so that the first ones wait for few requests."""
_LOOK_SECONDS = 30.0
_AGAIN_SECONDS = 2.0


class CardNotices:
    """The cards that central has noticed as changed. Keep `run` alive as a task."""

    def __init__(self, *, down: DownSync, clock: Clock, pull_soon: Callable[[], None], pull_seconds: float) -> None:
        """`pull_seconds`: the usual time between pulls, over which pulls are spread when notices end."""
        self._down = down
        self._clock = clock
        self._pull_soon = pull_soon
        self._pull_seconds = pull_seconds
        self._ids: dict[int, None] = {}  # the longest noticed first
        self._since = self._last_at = float("-inf")
        self._last_number: int | None = None
        self._rests = False
        self._pull_at = float("inf")
        self._moved = asyncio.Event()

    @property
    def coming(self) -> bool:
        """True while notices come."""
        return self._clock.monotonic() - self._last_at < SILENT_SECONDS

    def apart(self, seconds: float, *, began: float) -> float:
        """Return how far apart pulls are that would otherwise be `seconds` apart, after one that began then.

        They rest only if notices came during all of that pull: what changed before may be in neither.
        """
        self._rests = self.coming and self._since <= began
        return max(seconds, SWEEP_SECONDS) if self._rests else seconds

    def take(self, card_ids: Collection[int], *, number: int | None) -> None:
        """Take a notice; an empty one says that notices come. If `number` is not the next one, pull at once as well."""
        now = self._clock.monotonic()
        self._since = self._since if self.coming else now
        self._last_at = now
        expected = (number, None) if self._last_number is None else (self._last_number, self._last_number + 1, None)
        self._last_number = number
        fits = len(self._ids) + len(card_ids) <= _MOST_WAITING
        if fits:
            self._add(card_ids)
        if number not in expected or not fits:
            self._pull_soon()

    def lost(self) -> None:
        """Note that notices may be missed from now on."""
        self._last_at, self._last_number = float("-inf"), None
        self._moved.set()

    async def run(self) -> None:
        """Fetch noticed cards, until cancelled. Raises StoreError."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_LOOK_SECONDS, max(0.0, self._pull_at - self._clock.monotonic()))):
                    await self._moved.wait()
            self._moved.clear()
            now = self._clock.monotonic()
            if self._rests and not self.coming:
                self._rests = False
                self._pull_at = now + random.uniform(0, self._pull_seconds)  # noqa: S311 (spreads load on central)
            if now >= self._pull_at:
                self._pull_at = float("inf")
                self._pull_soon()
            if self._ids:
                await self._fetch()

    async def _fetch(self) -> None:
        wanted = frozenset(islice(self._ids, _AT_A_TIME))
        for number in wanted:
            del self._ids[number]
        if self._ids:
            self._moved.set()
        try:
            done = await self._down.fetch_cards(wanted)
        except CentralUnavailable as error:
            log.info("noticed_cards_wait", count=len(wanted), error=str(error))
            self._add(wanted)
            await asyncio.sleep(_AGAIN_SECONDS)
        except StoreError:
            self._add(wanted)
            raise
        except CentralRefused as error:
            log.warning("noticed_cards_refused", count=len(wanted), error=str(error))
            self._pull_soon()
        else:
            if not done:
                self._pull_soon()  # central does not answer for single cards

    def _add(self, card_ids: Collection[int]) -> None:
        self._ids |= dict.fromkeys(card_ids)
        self._moved.set()
