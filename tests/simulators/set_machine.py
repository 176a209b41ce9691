"""Clocks that a test sets by hand: a machine's, and a gateway's."""

from __future__ import annotations

import time

from gateway.runtime.clock import MachineClock, Stamp, SystemClock

NOON = 1_800_000_000_000_000


class SetMachine(MachineClock):
    """A machine whose clocks are set by hand."""

    def __init__(self, *, at: int = NOON, up: float = 1000.0, synchronised: bool = True) -> None:
        self.at, self.up, self.synchronised = at, up, synchronised
        self.mark: int | None = None

    def monotonic(self) -> float:
        return self.up

    def wall(self) -> int:
        return self.at

    def is_synchronised(self) -> bool:
        return self.synchronised

    def marked(self) -> int | None:
        return self.mark

    def wait(self, seconds: float) -> None:
        self.up += seconds
        self.at += int(seconds * 1_000_000)


class PushedMachine(MachineClock):
    """This machine, with a push of its wall hand; whether it is synchronised is said by the test."""

    def __init__(self, *, pushed: int = 0, synchronised: bool = True) -> None:
        self.pushed, self.synchronised = pushed, synchronised

    def wall(self) -> int:
        return time.time_ns() // 1_000 + self.pushed

    def is_synchronised(self) -> bool:
        return self.synchronised

    def marked(self) -> int | None:
        return None


class SetClock:
    """A gateway's clock whose seconds are set by hand. `stepped`: so many seconds its wall hand alone is ahead."""

    def __init__(self, seconds: float = 100.0) -> None:
        self.seconds, self.stepped = seconds, 0.0

    def monotonic(self) -> float:
        return self.seconds

    def wall(self) -> Stamp:
        return Stamp(NOON + int((self.seconds + self.stepped) * 1_000_000), trusted=True)


class PushedClock:
    """The system's clock, believed, with a push of both hands. `stepped`: so many seconds its wall hand alone."""

    def __init__(self, *, stepped: float = 0.0) -> None:
        self._system = SystemClock()
        self.pushed, self.stepped = 0.0, stepped
        self.trusted = True

    def monotonic(self) -> float:
        return self._system.monotonic() + self.pushed

    def wall(self) -> Stamp:
        ahead = int((self.pushed + self.stepped) * 1_000_000)
        return Stamp(self._system.wall().micros + ahead, trusted=self.trusted)
