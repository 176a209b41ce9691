"""Footage that was stamped before the clock was right gets its true time when it is."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from gateway.recording.index import FootageIndex
from gateway.runtime.clock import Clock, offset_of
from gateway.store import Store

log = structlog.get_logger(__name__)


class ClockCorrection:
    """Looks whether there is footage to be put right. Belongs before anything is deleted."""

    def __init__(
        self, *, store: Store, index: FootageIndex, clock: Clock, boot_id: str, moved: Callable[[], None]
    ) -> None:
        """Take the collaborators. `moved` is called when footage got other times."""
        self._store = store
        self._index = index
        self._clock = clock
        self._boot_id = boot_id
        self._moved = moved

    async def look(self) -> None:
        """Put right what can be, if the clock is trusted now. Raises StoreError."""
        offset = offset_of(self._clock, self._boot_id)
        if not offset.trusted or not offset.boot_id:
            return
        segments = await self._store.clock_corrections.correct(offset)
        if segments:
            log.info("footage_times_corrected", segments=segments)
            await self._index.look_again()
            self._moved()
