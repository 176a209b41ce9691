"""Wiring of a simulated barrier to the tables of a Modbus device."""

from __future__ import annotations

from types import MappingProxyType
from typing import Protocol

from drivers.modbus.messages import Read, Refusal, Reply, Table, Values, Write, WriteMany, Written, coil_word
from simulation.far_ends.barrier import Barrier, Wish

_ILLEGAL_ADDRESS = Refusal(2)
_ILLEGAL_VALUE = Refusal(3)


class Wiring(Protocol):
    """A unit as the far end uses it, once for each request."""

    def read(self, read: Read, *, now: float) -> Reply:
        """Return the values, or a refusal."""
        ...

    def write(self, write: Write | WriteMany, *, now: float) -> Reply:
        """Obey, or refuse."""
        ...

    def wish_of(self, write: Write | WriteMany) -> Wish | None:
        """Return the command that a write is, or None."""
        ...


class RelayWiring:
    """A barrier as `relay-barrier.toml` describes it: six discrete inputs, three pulse coils."""

    _WISHES = (Wish.OPEN, Wish.CLOSE, Wish.STOP)

    def __init__(self, *, barrier: Barrier) -> None:
        self._barrier = barrier

    def read(self, read: Read, *, now: float) -> Reply:
        """Return discrete inputs 0 to 5, and the coils, which always read as off because the module ends its pulses."""
        if read.table is Table.COIL:
            return _slice((0,) * len(self._WISHES), read)
        if read.table is not Table.DISCRETE_INPUT:
            return _ILLEGAL_ADDRESS
        state = self._barrier.state(now=now)
        inputs = (
            state.closed_limit,
            state.open_limit,
            state.arming_loop,
            state.closing_loop,
            state.photocell,
            state.fault,
        )
        return _slice(tuple(int(value) for value in inputs), read)

    def write(self, write: Write | WriteMany, *, now: float) -> Reply:
        """Treat a coil switched on as a pulse."""
        if isinstance(write, WriteMany) or write.table is not Table.COIL or write.address >= len(self._WISHES):
            return _ILLEGAL_ADDRESS
        if write.value not in {coil_word(on=True), coil_word(on=False)}:
            return _ILLEGAL_VALUE
        wish = self.wish_of(write)
        if wish is not None:
            self._barrier.command(wish, now=now)
        return Written()

    def wish_of(self, write: Write | WriteMany) -> Wish | None:
        """Open, close or stop when the coil is switched on."""
        if isinstance(write, WriteMany) or write.table is not Table.COIL or write.value != coil_word(on=True):
            return None
        return self._WISHES[write.address] if write.address < len(self._WISHES) else None


class CameWiring:
    """A barrier as `came-gard-ptx.toml` describes it: state and percentage in registers, commands as outputs."""

    _WISHES = MappingProxyType({0: Wish.STOP, 1: Wish.OPEN, 3: Wish.CLOSE})
    _STATE_ADDRESS = 100

    def __init__(self, *, barrier: Barrier) -> None:
        self._barrier = barrier

    def read(self, read: Read, *, now: float) -> Reply:
        """Return holding registers 40101 (state) and 40102 (per cent open)."""
        if read.table is not Table.HOLDING_REGISTER or read.address < self._STATE_ADDRESS:
            return _ILLEGAL_ADDRESS
        state = self._barrier.state(now=now)
        if state.closed_limit and not state.moving:
            number = 17
        elif state.open_limit and not state.moving:
            number = 16
        else:
            number = {1: 32, -1: 33, 0: 19}[state.moving]
        shifted = Read(read.table, read.address - self._STATE_ADDRESS, read.count)
        return _slice((number, round(state.opening * 100)), shifted)

    def write(self, write: Write | WriteMany, *, now: float) -> Reply:
        """Treat an output switched on as a pulse."""
        wish = self.wish_of(write)
        if wish is None:
            return _ILLEGAL_ADDRESS
        self._barrier.command(wish, now=now)
        return Written()

    def wish_of(self, write: Write | WriteMany) -> Wish | None:
        """Return the command of an output switched on."""
        on = isinstance(write, Write) and write.table is Table.COIL and write.value == coil_word(on=True)
        return self._WISHES.get(write.address) if on else None


def _slice(values: tuple[int, ...], read: Read) -> Reply:
    if read.count < 1 or read.address + read.count > len(values):
        return _ILLEGAL_ADDRESS
    return Values(values[read.address : read.address + read.count])
