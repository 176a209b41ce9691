"""The wait of a start for its lanes to be under control: their devices have answered, or are known to be offline."""

from __future__ import annotations

from dataclasses import dataclass

import structlog

from gateway.lanes import Lanes
from gateway.runtime.clock import Clock
from gateway.store.engine.changes import Changes

log = structlog.get_logger(__name__)

CONTROL_SECONDS = 15.0
_FIRST_SECONDS = 1.0


@dataclass(kw_only=True, slots=True)
class LaneControl:
    """The wait until every device has answered or is known to be offline."""

    lanes: Lanes
    changes: Changes
    clock: Clock

    async def first(self) -> None:
        """Wait for a second at most: until then the lanes have the processor to themselves."""
        await self.until(self.clock.monotonic() + _FIRST_SECONDS)

    async def tell(self) -> None:
        """Log that the lanes are under control, at most after 15 s, with the devices that are silent by then."""
        await self.until(self.clock.monotonic() + CONTROL_SECONDS)
        log.info("lanes_under_control", silent=self.lanes.under_control())

    async def until(self, latest: float) -> None:
        """Wait until `latest` at most, by the monotonic clock."""
        version = self.changes.version
        while self.lanes.under_control() and (left := latest - self.clock.monotonic()) > 0:
            version = await self.changes.beyond(version, within=min(left, 1.0))
