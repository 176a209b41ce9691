"""Changes of the running site: only the lines, devices and lanes that a changed site file concerns are restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog

from gateway.app.devices import Field, Kept, build_field
from gateway.app.running_field import RunningField
from gateway.app.served_interface import ServedInterface
from gateway.domain.errors import ConfigError
from gateway.domain.problems import ProblemKind
from gateway.lanes import Lanes
from gateway.problems.problem import Part, Verdict
from gateway.runtime.clock import Clock
from gateway.runtime.process_settings import loop_first
from gateway.site import Difference, Secrets, Site
from gateway.site.line_locks import LineLocks
from gateway.site.running_site import RunningSite

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 0.05
_TAKES_BACK = frozenset({ProblemKind.INTERFACE_NOT_SERVED, ProblemKind.INPUTS_ALL_ON})
"""Kinds of problems for which a change is taken back though they stop no lane."""


def hindrances(verdict: Verdict, interface: ServedInterface) -> dict[tuple[str, ...], str]:
    """Return what keeps lanes or the interface from working, for which a change is taken back: sentences by keys."""
    found = {
        one.key: f"{one.name}: {one.text}" if one.part is Part.LANE and not one.lanes else str(one.sentence)
        for one in verdict.problems
        if one.lanes or one.kind in _TAKES_BACK
    }
    return found | ({("interface",): "the interface is not served yet"} if interface.is_changing else {})


@dataclass(kw_only=True, eq=False)
class SiteChanges:
    """The application of changed sites, one after the other.

    The steps that can fail are taken before any part is stopped. If a later step fails all the same, the gateway stops:
    its next start reverts the change, and all lanes work again. Lanes are ended only at a moment when all lanes that
    the change concerns are free of vehicles; no other task runs between that check and their end.

    Attributes:
        site: the site in force.
        site_path: its file, beside which profiles are looked up.
        secrets: the site's secrets.
        clock: the clock for the wait.
        field: its lines and devices.
        lanes: its lanes.
        locks: the locks on its lines; None without locks.
        others: applies the changes that concern neither lines nor devices nor lanes.
        stop: stops the gateway.
    """

    site: Site
    site_path: Path
    secrets: Secrets
    clock: Clock
    field: RunningField
    lanes: Lanes
    locks: LineLocks | None
    others: Callable[[Site, Difference], Awaitable[None]]
    stop: Callable[[], None]

    async def take(self, site: Site, found: Difference, wait: float, are_free: Callable[[], bool]) -> None:
        """Apply a changed site. If it raises ConfigError, nothing was changed.

        Args:
            site: the changed site.
            found: its difference from the site in force.
            wait: the seconds to wait for its lanes to be free.
            are_free: returns whether a person says that nobody is in them, whatever their inputs say.
        """
        kept = Kept(self.field.field, without_links=found.links, without_devices=found.devices)
        build = partial(build_field, site, site_path=self.site_path, clock=self.clock, secrets=self.secrets, kept=kept)
        built = await asyncio.to_thread(loop_first, build)  # it reads profiles, and may import drivers
        if self.locks is not None:
            self.locks.claim(site.links)
        try:
            await self._wait_for_lanes(found.lanes, within=wait, are_free=are_free)
        except BaseException:  # also when cancelled: lines that will not be used must not stay locked
            if self.locks is not None:
                self.locks.keep_only(self.site.links)
            raise
        try:
            await self._change(site, found, built)
        except Exception:  # whatever it is: a restart is better than a gateway without its lanes
            log.critical("site_change_broke_off", exc_info=True)
            self.stop()
            raise

    async def _change(self, site: Site, found: Difference, built: Field) -> None:
        await self.lanes.halt(found.lanes)
        await self.field.halt(links=found.links, devices=found.devices)
        self.lanes.change(site, field=built, lanes=found.lanes, devices=found.devices)
        self.field.change(built)
        await self.field.close_unused()
        self.site = site
        if self.locks is not None:
            self.locks.keep_only(site.links)
        await self.others(site, found)

    async def _wait_for_lanes(self, lanes: frozenset[str], *, within: float, are_free: Callable[[], bool]) -> None:
        """Wait until no vehicle is in these lanes and their gates stand still. Raises ConfigError."""
        until = self.clock.monotonic() + within
        while waits := self.lanes.why_not_changed(lanes, are_free=are_free()):
            if self.clock.monotonic() >= until:
                raise ConfigError(
                    f"{waits}; nothing was changed within {within:g} s: try again when it is free, or if nobody is"
                    " there and its inputs are wrong, run edge-gateway reload --now"
                )
            await asyncio.sleep(_LOOK_SECONDS)


async def reload_when_asked(site_file: RunningSite, asked: asyncio.Event) -> None:
    """Reload the site file each time that the event is set, until cancelled."""
    while True:
        await asked.wait()
        asked.clear()
        await site_file.reload()
