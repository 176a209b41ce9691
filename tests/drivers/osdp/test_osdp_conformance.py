"""OSDP readers on bad lines."""

from __future__ import annotations

import asyncio
import secrets
import time
from contextlib import asynccontextmanager

import pytest
from conformance import Conformance, Driven

from drivers.contract import CardPresented
from drivers.osdp.line import OsdpLine
from drivers.osdp.reader import OsdpReader

pytestmark = pytest.mark.long("libosdp in two processes, in its own time")

KEY = secrets.token_bytes(16)
FRESH_SECONDS = 0.6
LATE_SECONDS = 0.05
"""Much sooner than the 0.2 s after which a panel gives an answer up."""


@asynccontextmanager
async def _late_turns():
    """Meanwhile the times by which the loop, and so the line in it, ran late are collected."""
    late = []

    async def watch():
        while True:
            began = time.monotonic()
            await asyncio.sleep(0.01)  # measures how late the loop is
            if (passed := time.monotonic() - began) > LATE_SECONDS:
                late.append(passed)

    task = asyncio.get_running_loop().create_task(watch())
    try:
        yield late
    finally:
        task.cancel()


class TestOsdpReader(Conformance):
    drives = (OsdpReader,)
    lines = ("serial",)
    offline_seconds = 5.0
    online_seconds = 8.0
    told_once = True
    numbered = True
    longest_block = 0.1  # a process is started, and the kernel holds whoever starts one until it has begun
    fresh_within = None  # the reader is asked all the time; what it tells bears a number and is told once

    @pytest.fixture(autouse=True)
    def _given(self, peripherals):
        self.peripherals = peripherals

    @asynccontextmanager
    async def far_end(self, folder):
        self.cards = 0
        await self.peripherals.plug_in({"address": 1, "key": KEY.hex()})
        yield self.peripherals.spec

    def driven(self, near):
        line = OsdpLine(name="north", spec=near, keys={1: KEY})
        return Driven(OsdpReader(device_id=201, hold_seconds=0, line=line, address=1), beside=(line.run,))

    async def served(self, rig, *, since):
        """See `Conformance`. A card is presented again where the machine kept the line or the readers from answering in
        time: libosdp's peripherals believe then that they told it, and keep it no longer.
        """
        for _ in range(8):
            late = self.peripherals.lateness
            async with _late_turns() as turns:
                await self.stir()
                try:
                    async with asyncio.timeout(self.online_seconds):
                        while not any(self.serves(report) for report in rig.heard.reports[since:]):
                            await rig.heard.next()
                except TimeoutError:
                    assert turns or self.peripherals.lateness > late, f"a card was lost: {rig.heard.reports[-8:]}"
                else:
                    return
        pytest.fail("this machine never lets the readers answer in time")

    async def stir(self):
        await asyncio.sleep(FRESH_SECONDS)  # what a reader tells sooner after it connected does not count
        self.cards += 1
        self.peripherals.present(1, self.cards, 26)

    def serves(self, report):
        return isinstance(report, CardPresented) and report.bits == self.cards

    def is_true(self, report):
        return not isinstance(report, CardPresented) or (report.bit_length == 26 and 1 <= report.bits <= self.cards)
