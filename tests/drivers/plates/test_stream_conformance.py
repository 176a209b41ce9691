"""Pulled plate cameras on bad lines."""

from __future__ import annotations

from contextlib import asynccontextmanager

from conformance import Conformance, Driven
from faulty_line import Fault

from drivers.contract import PlateSeen
from drivers.http_session import DeviceAccount
from drivers.link import LinkSpec
from drivers.plates.dahua import DAHUA
from drivers.plates.hikvision import HIKVISION
from drivers.plates.stream import PlateStream
from simulation.far_ends.plate_stream import PlateStreamFarEnd

ACCOUNT = DeviceAccount("gateway", "correct-horse-battery")


class _Stream(Conformance):
    drives = (PlateStream,)
    lines = ("tcp",)
    recovers_from = (Fault.DUPLICATED, Fault.ECHOED)  # spoilt bytes are TCP's own to find; HTTP has no check sum
    steady_under = (Fault.LATE,)  # the others would mix up what follows closely; TCP keeps its order
    numbered = True  # nobody asks
    make = "hikvision"
    dialect = HIKVISION

    @asynccontextmanager
    async def far_end(self, folder):
        self.vehicles = 0
        self.camera = PlateStreamFarEnd(make=self.make, account=ACCOUNT)
        async with self.camera.serve() as port:
            yield LinkSpec(f"tcp://127.0.0.1:{port}")

    def driven(self, near):
        url = near.url.replace("tcp://", "http://")
        return Driven(PlateStream(device_id=41, url=url, dialect=self.dialect, account=ACCOUNT, silence_seconds=1.0))

    async def stir(self):
        self.vehicles += 1
        self.camera.see(f"AB{self.vehicles}", vehicle=str(self.vehicles))

    def serves(self, report):
        return isinstance(report, PlateSeen) and report.plate == f"AB{self.vehicles}"

    def is_true(self, report):
        return not isinstance(report, PlateSeen) or report.plate in {f"AB{n + 1}" for n in range(self.vehicles)}


class TestHikvision(_Stream):
    pass


class TestDahua(_Stream):
    make = "dahua"
    dialect = DAHUA
