"""The demo's devices, made from the profiles that the gateway drives them by, and what goes wrong at times."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from drivers.http_session import Account
from drivers.modbus.profile import load_profile, load_unit_profile
from drivers.profile_file import SHIPPED_PROFILES
from drivers.serial_line.profile import load_gate_profile
from gateway.demo.barrier import Barrier
from gateway.demo.card_reader import CardReaderFarEnd
from gateway.demo.modbus_far_end import Misbehaviour, ModbusFarEnd
from gateway.demo.plate_reader import PlateReaderFarEnd
from gateway.demo.profile_wiring import ProfileWiring
from gateway.demo.scene import CAMERA_ACCOUNT, CARDS_SENT, FieldLines
from gateway.demo.serial_devices import SerialBarrier
from gateway.demo.serial_far_end import SerialFarEnd, SerialManners
from gateway.demo.vehicles import DrivingLane, Presents
from gateway.domain.errors import ConfigError
from gateway.site import find_profile

_SHORTEST_CALM, _LONGEST_CALM = 20.0, 60.0
_MISHAP_SECONDS = 4.0


class DemoDevices:
    """The devices of three lanes, each lane with gates and readers of another kind.

    A relay module on Modbus TCP with a card reader; a CAME barrier and an input module on a serial bus behind TCP, with
    a card reader; a barrier that takes words on a serial port, with a plate camera.
    """

    def __init__(self, *, folder: Path) -> None:
        self._folder = folder
        entry, exit_, south = (Barrier(closes_itself=False) for _ in range(3))
        self._readers = {name: CardReaderFarEnd(path=folder / f"{name}-reader") for name in ("entry", "exit")}
        self._plates = PlateReaderFarEnd(account=Account(*CAMERA_ACCOUNT), cards=CARDS_SENT)
        relay = ProfileWiring(profile=load_profile(_shipped("relay-barrier")), barrier=entry)
        came = ProfileWiring(profile=load_profile(_shipped("came-gard-ptx")), barrier=exit_)
        inputs = ProfileWiring(profile=load_unit_profile(_shipped("inputs-8")), barrier=exit_)
        words = SerialBarrier(profile=load_gate_profile(_shipped("line-barrier")), barrier=south)
        self._tcp = ModbusFarEnd(units={1: relay})
        self._bus = ModbusFarEnd(units={2: came, 3: inputs}, framing="rtu")
        self._serial = SerialFarEnd(devices={1: words})
        self.lanes: dict[str, DrivingLane[Presents]] = {
            "entry": DrivingLane(barrier=entry, reader=self._readers["entry"]),
            "exit": DrivingLane(barrier=exit_, reader=self._readers["exit"]),
            "south": DrivingLane(barrier=south, reader=self._plates),
        }

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[FieldLines]:
        """All of them on their lines, while this context lasts."""
        async with AsyncExitStack() as stack:
            for reader in self._readers.values():
                reader.plug_in()
                stack.callback(reader.unplug)
            barrier = self._folder / "south-barrier"
            await stack.enter_async_context(self._serial.serial(path=barrier))
            yield FieldLines(
                entry_modbus_port=await stack.enter_async_context(self._tcp.tcp()),
                exit_bus_port=await stack.enter_async_context(self._bus.tcp()),
                south_barrier=f"serial:{barrier}",
                south_plates_port=await stack.enter_async_context(self._plates.camera.serve()),
                readers={name: reader.url for name, reader in self._readers.items()},
            )

    async def have_mishaps(self, *, dice: random.Random) -> None:
        """Now and then a device is slow or talks haltingly for some seconds, until cancelled."""
        while True:
            await asyncio.sleep(dice.uniform(_SHORTEST_CALM, _LONGEST_CALM))
            if dice.random() < 0.5:
                self._bus.misbehave(2, Misbehaviour(late=0.12))
                self._bus.misbehave(3, Misbehaviour(piece_seconds=0.004))
            else:
                self._serial.behave(1, SerialManners(piece_seconds=0.004))
            await asyncio.sleep(_MISHAP_SECONDS)
            self._bus.misbehave(2)
            self._bus.misbehave(3)
            self._serial.behave(1)


def _shipped(name: str) -> Path:
    path = find_profile(name, (SHIPPED_PROFILES,))
    if path is None:
        raise ConfigError(f"the profile {name!r} that comes with the gateway is missing")
    return path
