"""A line and its readers that report to a listener."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from osdp_peripherals import Peripherals

from drivers.contract import DeviceConnected
from drivers.osdp.line import OsdpLine
from drivers.osdp.reader import OsdpReader

FRESH_SECONDS = 0.6
"""What a reader tells sooner after it connected does not count."""


@pytest.fixture
async def peripherals(tmp_path):
    line = Peripherals(tmp_path / "osdp")
    yield line
    await line.unplug()


@pytest.fixture
def connected_reader(running, listener):
    """A context in which a line and its readers run, reporting to the listener; it gives (line, readers)."""

    @asynccontextmanager
    async def start(spec, keys, *, connected=0):
        """With `connected`, first so many readers connect, and what they read counts."""
        line = OsdpLine(name="north", spec=spec, keys=keys)
        readers = [OsdpReader(device_id=200 + address, hold_seconds=0, line=line, address=address) for address in keys]
        async with running(line.run(), *(reader.run(listener) for reader in readers)):
            if connected:
                await listener.until(lambda: len(listener.of(DeviceConnected)) == connected)
                await asyncio.sleep(FRESH_SECONDS)  # what a reader tells sooner after it connected does not count
            yield line, readers

    return start
