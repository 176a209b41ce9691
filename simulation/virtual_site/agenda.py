"""The agenda of a day, which follows from the seed: vehicles in bursts, and faults, mostly while vehicles are there."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from simulation.virtual_site.plan import Plan
from simulation.virtual_site.surroundings import dice_of

_DAY = 86_400.0
_RUSH_HOURS = (7.0, 8.0, 12.0, 17.0, 18.0)
_BURST_SECONDS = 45.0
_PER_BURST = 8


class Fault(StrEnum):
    """A kind of fault. The value is the text that people read."""

    AWAY = "controller without power"
    LOSING = "requests and replies lost"
    LATE = "late replies"
    JAMMED = "line jammed"
    STUCK = "input stuck"
    CHATTER = "input chattering"
    DROPOUT = "loop drops out under vehicles"
    LOCKED = "gate locked by key"
    BROKEN = "controller in fault"
    STOPS = "stops that fail"
    HAND = "something in the beam"
    CUT = "line cut"
    DEAF = "controller starts again"
    MODULE_AWAY = "input module without power"
    MODULE_SILENT = "input module silent"
    FIRE = "fire alarm"
    CENTRAL_AWAY = "central away"
    DISK_HANGS = "disk hangs"
    CLOCK_STEP = "clock steps"
    CARD = "card suspended and reinstated"
    POWER_CUT = "power cut"
    RESTART = "restart"


_PER_DAY: dict[Fault, float] = {
    Fault.AWAY: 3,
    Fault.LOSING: 6,
    Fault.LATE: 5,
    Fault.JAMMED: 5,
    Fault.STUCK: 4,
    Fault.CHATTER: 4,
    Fault.DROPOUT: 4,
    Fault.LOCKED: 2,
    Fault.BROKEN: 1,
    Fault.STOPS: 8,
    Fault.HAND: 8,
    Fault.CUT: 16,
    Fault.DEAF: 10,
    Fault.MODULE_AWAY: 8,
    Fault.MODULE_SILENT: 10,
    Fault.FIRE: 2,
    Fault.CENTRAL_AWAY: 1,
    Fault.DISK_HANGS: 3,
    Fault.CLOCK_STEP: 2,
    Fault.CARD: 3,
    Fault.POWER_CUT: 1.2,
    Fault.RESTART: 0.3,
}
_LASTS: dict[Fault, tuple[float, float]] = {
    Fault.AWAY: (2, 30),
    Fault.LOSING: (5, 40),
    Fault.LATE: (10, 40),
    Fault.JAMMED: (10, 40),
    Fault.STUCK: (5, 60),
    Fault.CHATTER: (1, 5),
    Fault.DROPOUT: (20, 90),
    Fault.LOCKED: (10, 40),
    Fault.BROKEN: (5, 30),
    Fault.STOPS: (60, 300),
    Fault.HAND: (0.5, 15),
    Fault.CUT: (0.4, 5),
    Fault.DEAF: (0.05, 0.3),
    Fault.MODULE_AWAY: (2, 30),
    Fault.MODULE_SILENT: (4, 40),
    Fault.FIRE: (5, 60),
    Fault.CENTRAL_AWAY: (600, 10_000),
    Fault.DISK_HANGS: (0.5, 12),
    Fault.CLOCK_STEP: (30, 3_600),
    Fault.CARD: (300, 7_200),
    Fault.POWER_CUT: (1, 300),
    Fault.RESTART: (1, 10),
}


@dataclass(frozen=True, slots=True)
class Vehicle:
    """The arrival of a vehicle. `card`, 0.0 to 1.0, picks a card from the list of good or of bad ones."""

    at: float
    lane: int
    good: bool
    card: float
    backs_out: bool
    tailgated: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """The begin of a fault. `chance`, 0.0 to 1.0, determines its details."""

    at: float
    kind: Fault
    lane: int
    seconds: float
    chance: float


@dataclass(frozen=True, slots=True)
class Wish:
    """A person's command, which `action`, 0.0 to 1.0, picks. The person stops the gate after `stops_after` seconds."""

    at: float
    lane: int
    action: float
    stops_after: float | None = None


Happening = Vehicle | Trouble | Wish


def day(plan: Plan, number: int) -> list[Happening]:
    """List the happenings of one day in order."""
    dice = dice_of(plan.seed, f"day-{number}")
    start, length = number * _DAY, min(_DAY, plan.seconds - number * _DAY)
    share = length / _DAY
    bursts = [start + _hour(dice) * 3600.0 * share for _ in range(max(1, round(plan.vehicles * share / _PER_BURST)))]
    happenings: list[Happening] = []
    for lane in range(plan.lanes):
        happenings += [_vehicle(dice, dice.choice(bursts), lane) for _ in range(round(plan.vehicles * share))]
    for kind, usual in _PER_DAY.items():
        happenings += [
            _trouble(dice, plan, kind, dice.choice(bursts)) for _ in range(_times(dice, usual * share * plan.faults))
        ]
    for _ in range(_times(dice, 12 * share)):
        at = dice.choice(bursts) + dice.uniform(0, _BURST_SECONDS)
        happenings.append(Wish(at, dice.randrange(plan.lanes), dice.random(), _stops_after(dice)))
    happenings += _wishes_at_a_hanging_disk(plan, number, happenings)
    return sorted(happenings, key=lambda happening: happening.at)


def _wishes_at_a_hanging_disk(plan: Plan, number: int, happenings: list[Happening]) -> Iterator[Wish]:
    """Iterate over commands right after the disk began to hang, a case that chance alone would give once in months."""
    dice = random.Random(f"{plan.seed}-day-{number}-disk")  # noqa: S311 (chance of a simulation)
    for trouble in happenings:
        if isinstance(trouble, Trouble) and trouble.kind is Fault.DISK_HANGS:
            at = trouble.at + dice.uniform(0.0, 0.5)
            for lane in range(plan.lanes):
                yield Wish(at, lane, dice.random())


def _hour(dice: random.Random) -> float:
    """Choose the hour of a burst: half of them in the rush hours, none in a day's last quarter of an hour.

    So everything that begins on a day also ends on it.
    """
    return dice.choice(_RUSH_HOURS) + dice.random() if dice.random() < 0.5 else dice.uniform(0.05, 23.75)


def _vehicle(dice: random.Random, burst: float, lane: int) -> Vehicle:
    return Vehicle(
        at=burst + dice.uniform(0, _BURST_SECONDS),
        lane=lane,
        good=dice.random() < 0.85,
        card=dice.random(),
        backs_out=dice.random() < 0.04,
        tailgated=dice.random() < 0.06,
    )


def _trouble(dice: random.Random, plan: Plan, kind: Fault, burst: float) -> Trouble:
    return Trouble(
        at=burst + dice.uniform(-5.0, _BURST_SECONDS + 20.0),
        kind=kind,
        lane=dice.randrange(plan.lanes),
        seconds=dice.uniform(*_LASTS[kind]),
        chance=dice.random(),
    )


def _stops_after(dice: random.Random) -> float | None:
    """Choose after how many seconds a person stops the gate; None for half of all commands."""
    return dice.uniform(0.1, 2.0) if dice.random() < 0.5 else None


def _times(dice: random.Random, mean: float) -> int:
    """Choose a whole number that is `mean` on average."""
    return int(mean) + (dice.random() < mean % 1)
