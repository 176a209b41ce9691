"""Registration of the site file's devices and cameras in the store, which also holds central's."""

from __future__ import annotations

import asyncio

import structlog

from gateway.domain.errors import StoreError
from gateway.runtime.clock import Clock
from gateway.site.models import Site
from gateway.store import KnownRecord, Records

log = structlog.get_logger(__name__)

_AGAIN_SECONDS = 5.0


class DeviceRegistration:
    """The registration of the site file's devices and cameras, retried every 5 s while the disk fails."""

    def __init__(self, *, devices: Records, cameras: Records, clock: Clock, site: Site) -> None:
        self._devices = devices
        self._cameras = cameras
        self._clock = clock
        self._site = site
        self._wanted = asyncio.Event()

    async def begin(self) -> None:
        """Register them now; if the disk fails, `run` tries again."""
        if not await self._noted():
            self._wanted.set()

    def declare(self, site: Site) -> None:
        """Have `run` register the devices and cameras of a changed site file."""
        self._site = site
        self._wanted.set()

    async def run(self) -> None:
        """Register each change, retrying until the disk takes it, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            if not await self._noted():
                self._wanted.set()
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _noted(self) -> bool:
        now, site = self._clock.wall().micros, self._site
        devices = [KnownRecord(id=item.id, name=item.name, kind=item.driver, at_site=True) for item in site.devices]
        cameras = [KnownRecord(id=item.id, name=item.name, kind="", at_site=True) for item in site.cameras]
        try:
            await self._devices.declare(devices, now=now)
            await self._cameras.declare(cameras, now=now)
        except StoreError as error:
            log.warning("devices_not_noted", error=str(error))
            return False
        return True
