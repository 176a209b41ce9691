"""Lines with libosdp's own peripherals on them, in a process of their own."""

import asyncio
import contextlib
import json
import os
import sys
import tty
from pathlib import Path

import pytest
from osdp import CardFormat, Event, StatusReportType

from drivers.contract import CardPresented
from drivers.link import LinkSpec

PERIPHERAL = Path(__file__).with_name("osdp_peripheral.py")


class Peripherals:
    """Readers on a pseudo-terminal under a name that stays."""

    def __init__(self, path):
        self.path = path
        self.spec = LinkSpec(f"serial:{path}")
        self.shown = []
        self.lateness = 0
        self._process = None
        self._listening = None
        self._near = None

    async def plug_in(self, *readers, manner="good"):
        far, self._near = os.openpty()
        tty.setraw(self._near)
        self.path.unlink(missing_ok=True)
        self.path.symlink_to(os.ttyname(self._near))
        await self.serve(far, *readers, manner=manner)

    async def serve(self, far, *readers, manner="good"):
        """Put readers at the far end of a line; its descriptor is theirs from now on."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            PERIPHERAL,
            str(far),
            manner,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            pass_fds=[far],
        )
        os.close(far)
        self._process.stdin.write(json.dumps(readers).encode() + b"\n")
        async with asyncio.timeout(30):
            assert json.loads(await self._process.stdout.readline()) == {"ready": True}
        self._listening = asyncio.get_running_loop().create_task(self._listen(self._process))

    async def unplug(self):
        if self._process is None:
            return
        self.path.unlink(missing_ok=True)
        if self._near is not None:
            os.close(self._near)
        if self._process.returncode is None:
            self._process.kill()
        await self._listening
        await self._process.communicate()
        self._process = self._near = None

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

    async def read(self, listener, address, bits, bit_length):
        """Present a card until it has been read. Again only where the machine kept the readers from answering in time:
        they believe then that it was told, and keep it no longer. Tells how many times it was presented.
        """
        before = len(listener.of(CardPresented))
        for times in range(1, 9):
            late = self.lateness
            self.present(address, bits, bit_length)
            with contextlib.suppress(TimeoutError):
                await listener.hears(lambda: len(listener.of(CardPresented)) > before, within=5)
                return times
            assert self.lateness > late, f"a card was lost; reports: {listener.reports[-12:]}"
        pytest.fail("this machine never lets the readers answer in time")

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
            said = json.loads(line)
            if "late" in said:
                self.lateness += 1
            else:
                self.shown.append(said)
