"""OSDP readers on bad lines."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import asynccontextmanager

import pytest
from conformance import Conformance, Driven

from drivers.contract import CardPresented
from drivers.osdp.line import OsdpLine
from drivers.osdp.reader import OsdpReader

KEY = secrets.token_bytes(16)
FRESH_SECONDS = 0.6


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
        return Driven(OsdpReader(device_id=201, line=line, address=1), beside=(line.run,))

    async def stir(self):
        await asyncio.sleep(FRESH_SECONDS)  # what a reader tells sooner after it connected does not count
        self.cards += 1
        self.peripherals.present(1, self.cards, 26)

    def serves(self, report):
        return isinstance(report, CardPresented) and report.bits == self.cards

    def is_true(self, report):
        return not isinstance(report, CardPresented) or (report.bit_length == 26 and 1 <= report.bits <= self.cards)
