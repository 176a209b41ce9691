"""The demo's devices, made from the profiles with which the gateway drives them, and their occasional faults."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path

from drivers.http_session import DeviceAccount
from drivers.modbus.profile import load_unit_profile
from drivers.profile_file import SHIPPED_PROFILES
from drivers.serial_line.profile import load_gate_profile
from gateway.domain.errors import ConfigError
from gateway.site import find_profile
from simulation.demo.scene import CAMERA_ACCOUNT, CARDS_SENT, FieldLines
from simulation.far_ends.barrier import Barrier
from simulation.far_ends.central.seed import plate_of
from simulation.far_ends.line_devices import Misbehaviour
from simulation.far_ends.modbus_far_end import ModbusFarEnd
from simulation.far_ends.plate_stream import PlateStreamFarEnd
from simulation.far_ends.profile_wiring import ProfileWiring, relay_module
from simulation.far_ends.pseudo_terminal import PseudoTerminal
from simulation.far_ends.serial_devices import SerialBarrier
from simulation.far_ends.serial_far_end import SerialFarEnd
from simulation.far_ends.vehicles import DrivingLane, Presents

_HEARTBEAT_SECONDS = 0.5

_SHORTEST_CALM, _LONGEST_CALM = 20.0, 60.0
_MISHAP_SECONDS = 4.0


class PlateReaderFarEnd:
    """A plate camera that is used like a card reader: for each seeded card, it sees the plate of the card's vehicle.

    Args:
        account: the account that may read the camera's stream.
        cards: the text that a reader would send for each seeded card, in the list's order.
    """

    def __init__(self, *, account: DeviceAccount, cards: tuple[str, ...]) -> None:
        self.camera = PlateStreamFarEnd(make="hikvision", account=account, heartbeat_seconds=_HEARTBEAT_SECONDS)
        self._index = {card: index for index, card in enumerate(cards)}
        self._vehicles = count(1)

    def present(self, card: str) -> None:
        """Bring the vehicle of this card's holder into view; the camera reads it twice."""
        index = self._index.get(card)
        plate = "NOBODY1" if index is None else plate_of(index)
        self.camera.see(plate, vehicle=f"vehicle-{next(self._vehicles)}", times=2)


class CardReaderFarEnd(PseudoTerminal):
    """A card reader on a serial port, which sends a line for each card presented."""

    @property
    def url(self) -> str:
        """The port as a site file names it."""
        return f"serial:{self.path}"

    def present(self, card: str) -> None:
        """Hold a card to the reader: one whole line goes out."""
        self.write(f"{card}\r\n".encode("ascii"))

    def send(self, pieces: Iterable[bytes]) -> None:
        """Send raw bytes piece by piece: noise, torn lines, missing terminators."""
        for piece in pieces:
            self.write(piece)


class DemoDevices:
    """The devices of three lanes, each lane with gates and readers of another kind.

    A relay module on Modbus TCP with a card reader; a CAME barrier and an input module on a serial bus behind TCP, with
    a card reader; a barrier that takes words on a serial port, with a plate camera.
    """

    def __init__(self, *, folder: Path) -> None:
        self._folder = folder
        entry, exit_, south = (Barrier() for _ in range(3))
        self._readers = {name: CardReaderFarEnd(path=folder / f"{name}-reader") for name in ("entry", "exit")}
        self._plates = PlateReaderFarEnd(account=DeviceAccount(*CAMERA_ACCOUNT), cards=CARDS_SENT)
        relay = relay_module(entry)
        came = ProfileWiring.shipped("came-gard-ptx", barrier=exit_)
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
        """Serve all devices on their lines, while this context lasts."""
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
        """Until cancelled, make a device slow or unreliable for some seconds from time to time."""
        while True:
            await asyncio.sleep(dice.uniform(_SHORTEST_CALM, _LONGEST_CALM))
            if dice.random() < 0.5:
                self._bus.misbehave(2, Misbehaviour(late=0.12))
                self._bus.misbehave(3, Misbehaviour(piece_seconds=0.004))
            else:
                self._serial.misbehave(1, Misbehaviour(piece_seconds=0.004))
            await asyncio.sleep(_MISHAP_SECONDS)
            self._bus.misbehave(2)
            self._bus.misbehave(3)
            self._serial.misbehave(1)


def _shipped(name: str) -> Path:
    path = find_profile(name, (SHIPPED_PROFILES,))
    if path is None:
        raise ConfigError(f"the profile {name!r} that comes with the gateway is missing")
    return path
