"""Changes of the running site: only the lines, devices and lanes that a changed site file concerns are restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import structlog

from gateway.app.contexts import LanesContext
from gateway.app.devices import Field, KeptDevices, build_field
from gateway.app.served_interface import ServedInterface
from gateway.domain.errors import ConfigError
from gateway.domain.problems import ProblemKind
from gateway.problems.problem import SitePart, Verdict
from gateway.runtime.process_settings import loop_first
from gateway.site import Difference, Site
from gateway.site.running_site import RunningSite

log = structlog.get_logger(__name__)

_LOOK_SECONDS = 0.05
_TAKES_BACK = frozenset({ProblemKind.INTERFACE_NOT_SERVED, ProblemKind.INPUTS_ALL_ON})
"""Kinds of problems for which a change is taken back though they stop no lane."""


def hindrances(verdict: Verdict, interface: ServedInterface) -> dict[tuple[str, ...], str]:
    """Return what keeps lanes or the interface from working, for which a change is taken back: sentences by keys."""
    found = {
        one.key: f"{one.name}: {one.text}" if one.part is SitePart.LANE and not one.lanes else str(one.sentence)
        for one in verdict.problems
        if one.lanes or one.kind in _TAKES_BACK
    }
    return found | ({("interface",): "the interface is not served yet"} if interface.is_changing else {})


class SiteChanges:
    """The application of changed sites, one after the other.

    The steps that can fail are taken before any part is stopped. If a later step fails all the same, the gateway stops:
    its next start reverts the change, and all lanes work again. Lanes are ended only at a moment when all lanes that
    the change concerns are free of vehicles; no other task runs between that check and their end.
    """

    def __init__(
        self, base: LanesContext, *, site: Site, others: Callable[[Site, Difference], Awaitable[None]]
    ) -> None:
        """`others` applies the changes that concern neither lines nor devices nor lanes."""
        self._base = base
        self._locks = base.run.locks
        self._site = site
        self._others = others

    async def take(self, site: Site, found: Difference, wait: float, are_free: Callable[[], bool]) -> None:
        """Apply a changed site. If it raises ConfigError, nothing was changed.

        Args:
            site: the changed site.
            found: its difference from the site in force.
            wait: the seconds to wait for its lanes to be free.
            are_free: returns whether a person says that nobody is in them, whatever their inputs say.
        """
        run, clock = self._base.run, self._base.clock
        kept = KeptDevices(self._base.field.field, without_links=found.links, without_devices=found.devices)
        build = partial(build_field, site, site_path=run.files.path, clock=clock, secrets=run.secrets, kept=kept)
        built = await asyncio.to_thread(loop_first, build)  # it reads profiles, and may import drivers
        if self._locks is not None:
            self._locks.claim(site.links)
        try:
            await self._wait_for_lanes(found.lanes, within=wait, are_free=are_free)
        except BaseException:  # also when cancelled: lines that will not be used must not stay locked
            if self._locks is not None:
                self._locks.keep_only(self._site.links)
            raise
        try:
            await self._change(site, found, built)
        except Exception:  # whatever it is: a restart is better than a gateway without its lanes
            log.critical("site_change_broke_off", exc_info=True)
            self._base.stop()
            raise

    async def _change(self, site: Site, found: Difference, built: Field) -> None:
        lanes, field = self._base.lanes, self._base.field
        await lanes.halt(found.lanes)
        await field.halt(links=found.links, devices=found.devices)
        lanes.change(site, field=built, lanes=found.lanes, devices=found.devices)
        field.change(built)
        await field.close_unused()
        self._site = site
        if self._locks is not None:
            self._locks.keep_only(site.links)
        await self._others(site, found)

    async def _wait_for_lanes(self, lanes: frozenset[str], *, within: float, are_free: Callable[[], bool]) -> None:
        """Wait until no vehicle is in these lanes and their gates stand still. Raises ConfigError."""
        clock = self._base.clock
        until = clock.monotonic() + within
        while waits := self._base.lanes.why_not_changed(lanes, are_free=are_free()):
            if clock.monotonic() >= until:
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
