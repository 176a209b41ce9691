"""The Hikvision barrier on bad lines."""

from __future__ import annotations

from contextlib import asynccontextmanager

from conformance import Conformance, Driven
from faulty_line import Fault

from drivers.contract import GateMoved, GatePosition
from drivers.hikvision.barrier import HikvisionBarrier
from drivers.http_session import DeviceAccount
from drivers.link import LinkSpec
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.hikvision_barrier import HikvisionBarrierFarEnd

ACCOUNT = DeviceAccount("gateway", "correct-horse-battery")


class TestHikvisionBarrier(Conformance):
    drives = (HikvisionBarrier,)
    lines = ("tcp",)
    recovers_from = (Fault.DUPLICATED, Fault.ECHOED)  # spoilt bytes are TCP's own to find; HTTP has no check sum
    numbered = True  # HTTP keeps question and answer together
    fresh_within = None  # nothing changes at a barrier that stands still, so that nothing can be stirred

    @asynccontextmanager
    async def far_end(self, folder):
        self.far = HikvisionBarrierFarEnd(barrier=Barrier(), account=ACCOUNT)
        async with self.far.serve() as port:
            yield LinkSpec(f"tcp://127.0.0.1:{port}")

    def commanded(self):
        return len(self.far.obeyed)

    def driven(self, near):
        url = near.url.replace("tcp://", "http://")
        return Driven(HikvisionBarrier(device_id=101, url=url, account=ACCOUNT, poll_seconds=0.1))

    def is_true(self, report):
        return not isinstance(report, GateMoved) or report.position is GatePosition.CLOSED
