"""Messages to systemd: that the lanes are under control, and the state of the site in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from gateway.app.served_interface import ServedInterface
from gateway.app.systemd import Notify
from gateway.lanes import Lanes
from gateway.problems.problem import Verdict
from gateway.recording import Recording
from gateway.runtime.clock import Clock
from gateway.site import Site
from gateway.store.engine.changes import Changes

log = structlog.get_logger(__name__)

_CONTROL_SECONDS = 15.0
_FIRST_SECONDS = 1.0
_MOST_NAMED = 3


@dataclass(kw_only=True, slots=True)
class Readiness:
    """The readiness of the site, as systemd sees it. `site` may be replaced after a change of the site file."""

    site: Site
    lanes: Lanes
    recording: Recording
    interface: ServedInterface
    verdict: Callable[[], Verdict]
    changes: Changes
    notify: Notify
    clock: Clock

    async def tell(self) -> None:
        """Tell systemd `ready` once every device has answered or is known to be offline, at most after 15 s.

        The interface must be served by then, or known to fail. `gateway_ready` is logged only when it is served.
        """
        starting, until = self.interface.fault, self.clock.monotonic() + _CONTROL_SECONDS
        await self._until_controlled(until)
        log.info("lanes_under_control", silent=self.lanes.under_control())
        version = self.changes.version
        while self.interface.fault == starting and self.clock.monotonic() < until:
            version = await self.changes.beyond(version, within=1.0)
        self.notify.ready(self.status())
        if self.interface.fault:
            log.warning("lanes_ready_without_interface", why=self.interface.fault)
        while self.interface.fault:
            version = await self.changes.beyond(version, within=60.0)
        log.info("gateway_ready")

    async def lanes_first(self) -> None:
        """Wait until every device has answered or is known to be offline, for a moment at most."""
        await self._until_controlled(self.clock.monotonic() + _FIRST_SECONDS)

    async def _until_controlled(self, until: float) -> None:
        version = self.changes.version
        while self.lanes.under_control() and (left := until - self.clock.monotonic()) > 0:
            version = await self.changes.beyond(version, within=min(left, 1.0))

    def status(self) -> str:
        """Return the site's state in one line: its lanes, devices and cameras, and what is wrong."""
        offline = sum(device.online is False for device in self.lanes.devices())
        recording = sum(camera.condition == "recording" for camera in self.recording.cameras())
        text = (
            f"{self.site.site.name}: {len(self.site.lanes)} lanes, {offline} devices offline, "
            f"{recording} of {len(self.site.cameras)} cameras recording"
        )
        verdict = self.verdict()
        return "; ".join((text, verdict.headline, *verdict.not_ready[:_MOST_NAMED]))
