"""A simulated device made from its profile: it has exactly what the profile describes.

It is as unhelpful as real devices. It refuses addresses that it does not have, and invalid coil values. When its power
goes, it loses the settings that prepare it and starts with others. Without the heartbeat, its watchdog switches its
outputs off.
"""

from __future__ import annotations

from typing import Protocol, Self

from drivers.contract import GatePosition
from drivers.modbus.frames import Read, Refusal, Reply, Table, Values, Write, WriteMany, Written, coil_word
from drivers.modbus.profile import (
    Command,
    GateProfile,
    Preparation,
    PulseBy,
    RegisterPosition,
    UnitProfile,
    load_profile,
)
from drivers.profile_file import SHIPPED_PROFILES
from simulation.far_ends.barrier import BarrierState, Wish

_ILLEGAL_ADDRESS = Refusal(2)
_ILLEGAL_VALUE = Refusal(3)
_PATIENCE = 3
Place = tuple[Table, int]


class Controller(Protocol):
    """A barrier's controller as a device is wired to it."""

    def command(self, wish: Wish, *, now: float) -> None:
        """Act on a pulse at a terminal."""
        ...

    def state(self, *, now: float) -> BarrierState:
        """Return the terminals."""
        ...


class ProfileWiring:
    """The `Wiring` of a barrier to the device that a profile describes.

    Points called `closed_limit`, `open_limit`, `arming_loop`, `closing_loop`, `photocell` and `fault` follow the
    barrier; `turn` sets all others.

    Args:
        profile: the profile of a gate, or of a module that has points alone.
        barrier: the barrier that is wired to the device.
    """

    def __init__(self, *, profile: UnitProfile, barrier: Controller) -> None:
        self._profile = profile
        self._barrier = barrier
        self._commands = _commands(profile)
        self._turned: dict[str, bool] = {}
        self._numbers: dict[str, int] = {}
        self._settings: dict[Place, int] = {}
        self._outputs: dict[Place, int] = {}
        self._beat: tuple[int, float] | None = None
        self.expired = False
        self.power_cycle()

    @classmethod
    def shipped(cls, name: str, *, barrier: Controller) -> Self:
        """Wire a barrier to the device of a shipped gate profile."""
        return cls(profile=load_profile(SHIPPED_PROFILES / f"{name}.toml"), barrier=barrier)

    def turn(self, point: str, *, on: bool) -> None:
        """Set a point that does not follow the barrier."""
        self._turned[point] = on

    def measure(self, reading: str, number: int) -> None:
        """Set a reading to this number, as its registers hold it."""
        self._numbers[reading] = number

    def power_cycle(self) -> None:
        """Cut the power and give it back: all outputs are off, and settings are the factory's."""
        self._outputs.clear()
        self._beat, self.expired = None, False
        self._settings = {self._place(part.write, part.address): _shipped(part) for part in self._profile.prepare}

    def read(self, read: Read, *, now: float) -> Reply:
        """Return the values of the tables; refuse all of them when one address does not exist."""
        registers = self._registers(now)
        values = [registers.get((read.table, read.address + place)) for place in range(read.count)]
        whole = [self._profile.ordered(read.table, value) for value in values if value is not None]
        return Values(tuple(whole)) if len(whole) == read.count > 0 else _ILLEGAL_ADDRESS

    def write(self, write: Write | WriteMany, *, now: float) -> Reply:
        """Take a setting, a heartbeat or a command."""
        table, address, value = _single(write)
        if value is None:
            return _ILLEGAL_VALUE
        place = (table, address)
        value = self._profile.ordered(table, value)
        if place in self._settings or place in {self._place(p.write, p.address) for p in self._profile.prepare}:
            self._settings[place] = int(bool(value)) if table is Table.COIL else value
            self.expired, self._beat = False, None
            return Written()
        beat = self._profile.heartbeat
        if beat is not None and place == self._place(beat.write, beat.address):
            if self._beat is None or self._beat[0] != value:
                self._watch(now)
                self._beat = (value, now)
            return Written()
        return self._command(place, value, write, now)

    def wish_of(self, write: Write | WriteMany) -> Wish | None:
        """Return the command that a write is, or None."""
        return next((wish for wish, command in self._commands if self._profile.write_of(command) == write), None)

    def _command(self, place: Place, value: int, write: Write | WriteMany, now: float) -> Reply:
        here = [
            (wish, command) for wish, command in self._commands if self._place(command.write, command.address) == place
        ]
        if not here:
            return _ILLEGAL_ADDRESS
        known = {_single(self._profile.write_of(command))[2] for _, command in here}
        if place[0] is Table.COIL and value not in known | {coil_word(on=True), coil_word(on=False)}:
            return _ILLEGAL_VALUE
        self._watch(now)
        wish = self.wish_of(write)
        if wish is not None and not self.expired:
            self._barrier.command(wish, now=now)
        registers = any(command.pulse_by is PulseBy.HOST for _, command in here)
        self._outputs[place] = value if registers and not self.expired else 0
        return Written()

    def _registers(self, now: float) -> dict[Place, int]:
        """Return all registers of the device at `now`."""
        self._watch(now)
        registers: dict[Place, int] = {}
        for block in self._profile.blocks:
            first = self._profile.wire_address(block.address)
            registers.update({(block.table, first + place): 0 for place in range(block.count)})
        for _, command in self._commands:
            place = self._place(command.write, command.address)
            registers[place] = int(bool(self._outputs.get(place, 0)))
        registers.update(self._settings)
        self._hold_points(registers, now)
        self._hold_readings(registers)
        if isinstance(self._profile, GateProfile) and isinstance(self._profile.position, RegisterPosition):
            source = self._profile.position
            position = self._barrier.state(now=now).position
            registers[self._place(source.table, source.address)] = _number_of(source, position)
        beat = self._profile.heartbeat
        if beat is not None:
            registers[self._place(beat.write, beat.address)] = 0 if self._beat is None else self._beat[0]
            if beat.expired is not None:
                registers[self._place(beat.expired.table, beat.expired.address)] = (
                    beat.expired.equals if self.expired else 0
                )
        return registers

    def _hold_points(self, registers: dict[Place, int], now: float) -> None:
        wired = self._barrier.state(now=now).points
        for name, point in self._profile.points.items():
            on = self._turned.get(name, wired.get(name, False)) != point.inverted
            place = self._place(point.table, point.address)
            registers[place] = registers.get(place, 0) | ((1 if point.mask is None else point.mask) if on else 0)

    def _hold_readings(self, registers: dict[Place, int]) -> None:
        for name, reading in self._profile.readings.items():
            number = self._numbers.get(name, 0)
            words = [number >> 16 * place & 0xFFFF for place in range(reading.words)]
            if (reading.word_order or self._profile.word_order) == "high_first":
                words.reverse()
            table, first = self._place(reading.table, reading.address)
            for place, word in enumerate(words):
                registers.setdefault((table, first + place), 0)
                if name in self._numbers:
                    registers[table, first + place] = word

    def _watch(self, now: float) -> None:
        """Run the watchdog from the first heartbeat on."""
        beat = self._profile.heartbeat
        if beat is None or self._beat is None or now - self._beat[1] <= _PATIENCE * beat.every_ms / 1000:
            return
        self.expired = True
        self._outputs.clear()

    def _place(self, table: Table, address: int) -> Place:
        return table, self._profile.wire_address(address)


def relay_module(barrier: Controller) -> ProfileWiring:
    """Wire a barrier to a plain module with six inputs and three pulse coils."""
    return ProfileWiring.shipped("relay-barrier", barrier=barrier)


def _commands(profile: UnitProfile) -> tuple[tuple[Wish, Command], ...]:
    if not isinstance(profile, GateProfile):
        return ()
    named = (
        (Wish.OPEN, profile.commands.open),
        (Wish.CLOSE, profile.commands.close),
        (Wish.STOP, profile.commands.stop),
    )
    return tuple((wish, command) for wish, command in named if command is not None)


def _single(write: Write | WriteMany) -> tuple[Table, int, int | None]:
    if isinstance(write, Write):
        return write.table, write.address, write.value
    return Table.HOLDING_REGISTER, write.address, write.values[0] if len(write.values) == 1 else None


def _shipped(part: Preparation) -> int:
    """Return the factory setting, which differs from the wanted one: that is why the profile prepares it."""
    return int(part.value) ^ 1


def _number_of(source: RegisterPosition, position: GatePosition) -> int:
    numbers = [number for number, means in source.values.items() if means is position]
    numbers += [rule.equals for rule in source.when if rule.is_ is position]
    return numbers[0] if numbers else 0
