"""Lines with libosdp's own peripherals on them, in a process of their own."""

import asyncio
import json
import os
import sys
import tty
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from osdp import CardFormat, Event, StatusReportType

from drivers.link import LinkSpec

PERIPHERAL = Path(__file__).with_name("peripheral.py")


class Peripherals:
    """Readers on a pseudo-terminal under a name that stays."""

    def __init__(self, path):
        self.path = path
        self.spec = LinkSpec(f"serial:{path}")
        self.shown = []
        self._process = None
        self._listening = None
        self._near = None

    async def plug_in(self, *readers):
        far, self._near = os.openpty()
        tty.setraw(self._near)
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(os.ttyname(self._near))
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            PERIPHERAL,
            str(far),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=[far],
        )
        os.close(far)
        self._process.stdin.write(json.dumps(readers).encode() + b"\n")
        async with asyncio.timeout(5):
            assert json.loads(await self._process.stdout.readline()) == {"ready": True}
        self._listening = asyncio.get_running_loop().create_task(self._listen(self._process))

    async def unplug(self):
        if self._process is None:
            return
        self.path.unlink(missing_ok=True)
        os.close(self._near)
        if self._process.returncode is None:
            self._process.kill()
        await self._listening
        await self._process.communicate()
        self._process = None

    def stop(self, signal_number):
        self._process.send_signal(signal_number)

    def present(self, address, bits, bit_length):
        size = (bit_length + 7) // 8
        data = (bits << (8 * size - bit_length)).to_bytes(size, "big")
        self._order(
            address=address,
            event=Event.CardRead,
            reader_no=0,
            format=CardFormat.Wiegand,
            direction=0,
            length=bit_length,
            data=data.hex(),
        )

    def type_keys(self, address, codes):
        self._order(address=address, event=Event.KeyPress, reader_no=0, data=codes.hex())

    def tamper(self, address, *, tampered):
        self._order(address=address, event=Event.Status, type=StatusReportType.Local, report=bytes([tampered, 0]).hex())

    def live(self, address, *, alive):
        self._order(address=address, alive=alive)

    def _order(self, **order):
        self._process.stdin.write(json.dumps(order).encode() + b"\n")

    async def _listen(self, process):
        while line := await process.stdout.readline():
            self.shown.append(json.loads(line))


@pytest.fixture
async def peripherals(tmp_path):
    line = Peripherals(tmp_path / "osdp")
    yield line
    await line.unplug()


@pytest.fixture
def connected_reader(running, listener):
    """A context in which a line and its readers run, reporting to the listener; it gives (line, readers)."""
    from drivers.osdp.line import OsdpLine
    from drivers.osdp.reader import OsdpReader

    @asynccontextmanager
    async def start(spec, keys):
        line = OsdpLine(name="north", spec=spec, keys=keys)
        readers = [OsdpReader(device_id=200 + address, line=line, address=address) for address in keys]
        async with running(line.run(), *(reader.run(listener) for reader in readers)):
            yield line, readers

    return start
