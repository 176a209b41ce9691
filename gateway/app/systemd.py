"""Messages to systemd: ready once the lanes are under control, the status in words, the heartbeat, and stopping.

The protocol of sd_notify(3): lines of `NAME=value` in one datagram to the socket that `$NOTIFY_SOCKET` names.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog

from gateway.lanes import Lanes
from gateway.runtime.clock import Clock
from gateway.site import Site
from gateway.store.engine.changes import Changes

if TYPE_CHECKING:
    from gateway.app.served_interface import ServedInterface
    from gateway.problems.problem import Verdict
    from gateway.recording import Recording


log = structlog.get_logger(__name__)

_MAX_STATUS = 400
_MOST_NAMED = 3

CONTROL_SECONDS = 15.0
_FIRST_SECONDS = 1.0


class Notify:
    """The socket of systemd. Without one, no message is sent; a failure is logged once, never raised.

    Attributes:
        watchdog_seconds: systemd ends this process if it is not fed for this long; None without a watchdog.
    """

    def __init__(self, *, address: str | None, watchdog_seconds: float | None = None) -> None:
        self.watchdog_seconds = watchdog_seconds
        self._address = address
        self._undelivered_ready = False
        self._failing = False

    @classmethod
    def take_from(cls, environ: MutableMapping[str, str] = os.environ) -> Notify:
        """Read systemd's variables from the environment, and remove them, so that children do not notify systemd."""
        address = environ.pop("NOTIFY_SOCKET", "")
        seconds = _watchdog_seconds(environ.pop("WATCHDOG_USEC", ""), environ.pop("WATCHDOG_PID", ""))
        if address and not address.startswith(("/", "@")):
            log.warning("notify_address_unknown", address=address)
            address = ""
        return cls(address=address or None, watchdog_seconds=seconds)

    def ready(self, status: str) -> None:
        """Tell systemd that the lanes are under control. If that fails, it is sent again with the next message."""
        self._undelivered_ready = True
        self._send(_status_line(status))

    def status(self, status: str) -> None:
        """Send one sentence for `systemctl status`."""
        self._send(_status_line(status))

    def feed(self, status: str) -> None:
        """Feed systemd's watchdog and send the status."""
        self._send("WATCHDOG=1", _status_line(status))

    def stopping(self) -> None:
        """Tell systemd that this process has begun to stop."""
        self._send("STOPPING=1", _status_line("stopping"))

    def _send(self, *lines: str) -> None:
        if self._address is None:
            return
        if self._undelivered_ready:
            lines = ("READY=1", *lines)
        name = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            # Not blocking: a stuck systemd must not block the loop.
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out:
                out.sendto("\n".join(lines).encode(), name)
        except OSError as error:
            if not self._failing:
                log.warning("notify_failed", error=str(error))
            self._failing = True
        else:
            self._failing = self._undelivered_ready = False


def _status_line(status: str) -> str:
    return "STATUS=" + " ".join(status.split())[:_MAX_STATUS]


def _watchdog_seconds(microseconds: str, pid: str) -> float | None:
    if pid and pid != str(os.getpid()):  # meant for another process of the unit
        return None
    if not microseconds:
        return None
    if not (microseconds.isascii() and microseconds.isdecimal()) or int(microseconds) == 0:
        log.warning("watchdog_interval_unknown", value=microseconds)
        return None
    return int(microseconds) / 1_000_000


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


@dataclass(kw_only=True, slots=True)
class SiteReadiness:
    """The readiness of the site, as systemd sees it. `site` returns the site in force."""

    site: Callable[[], Site]
    control: LaneControl
    recording: Recording
    interface: ServedInterface
    verdict: Callable[[], Verdict]
    notify: Notify

    async def tell(self) -> None:
        """Tell systemd `ready` once every device has answered or is known to be offline, at most after 15 s.

        The interface must be served by then, or known to fail. `gateway_ready` is logged only when it is served.
        """
        clock, changes = self.control.clock, self.control.changes
        until = clock.monotonic() + CONTROL_SECONDS
        await self.control.until(until)
        version = changes.version
        while self.interface.is_awaited and clock.monotonic() < until:
            version = await changes.beyond(version, within=1.0)
        self.notify.ready(self.status())
        if self.interface.fault:
            log.warning("lanes_ready_without_interface", why=self.interface.fault)
        while self.interface.fault:
            version = await changes.beyond(version, within=60.0)
        log.info("gateway_ready")

    def status(self) -> str:
        """Return the site's state in one line: its lanes, devices and cameras, and what is wrong."""
        site = self.site()
        offline = sum(device.online is False for device in self.control.lanes.devices())
        recording = sum(camera.condition == "recording" for camera in self.recording.cameras())
        text = (
            f"{site.site.name}: {len(site.lanes)} lanes, {offline} devices offline, "
            f"{recording} of {len(site.cameras)} cameras recording"
        )
        verdict = self.verdict()
        return "; ".join((text, str(verdict.headline), *map(str, verdict.not_ready[:_MOST_NAMED])))
