"""The random faults of one request, called its fate. Pure: the same random numbers give the same fate."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from simulation.far_ends.central.answers import JsonObject
from simulation.far_ends.central.faults import Chances

_FURTHEST_SHIFT = 3

_T = TypeVar("_T")


class Before(Enum):
    """A fault before the request is carried out."""

    NOTHING = "nothing"
    LOST = "lost"
    HALF_OPEN = "half open"
    UNAUTHENTICATED = "unauthenticated"
    EXPIRED = "expired"
    FAILED = "failed"
    CRASHED = "crashed"
    REFUSED = "refused"


class After(Enum):
    """A fault of the answer to a request that was carried out."""

    NOTHING = "nothing"
    LOST = "lost"
    TORN = "torn"
    SILENT = "silent"
    SLOW = "slow"


class Bend(Enum):
    """A fault in a page of a list."""

    NOTHING = "nothing"
    TRUNCATED = "truncated"
    SHIFTED = "shifted"
    DOUBLED = "doubled"
    MISSING = "missing"
    MISCOUNTED = "miscounted"


@dataclass(frozen=True, slots=True)
class Fate:
    """The faults of one request. `where`, from 0 up to 1, selects the place in a page that is affected."""

    before: Before = Before.NOTHING
    after: After = After.NOTHING
    bend: Bend = Bend.NOTHING
    where: float = 0.0
    lateness: float = 0.0

    @property
    def shift(self) -> int:
        """The number of records by which a later page begins too early (negative) or too late."""
        if self.bend is not Bend.SHIFTED:
            return 0
        places = [step for step in range(-_FURTHEST_SHIFT, _FURTHEST_SHIFT + 1) if step]
        return places[int(self.where * len(places))]

    def bent(self, resource: str, answer: JsonObject) -> JsonObject:
        """Apply this fate to a list's answer; return any other answer unchanged."""
        records, count = answer.get(resource), answer.get("count")
        if not isinstance(records, list) or not isinstance(count, int):
            return answer
        place = int(self.where * len(records))
        match self.bend:
            case Bend.TRUNCATED:
                return {**answer, resource: records[:place]}
            case Bend.DOUBLED if records:
                return {**answer, resource: [*records[: place + 1], *records[place:]]}
            case Bend.MISSING:
                return {**answer, resource: [*records[:place], *records[place + 1 :]]}
            case Bend.MISCOUNTED:
                return {**answer, "count": max(0, count + (1 if self.where < 0.5 else -1) * (1 + place))}
            case _:
                return answer


def fate_of(chances: Chances, dice: random.Random) -> Fate:
    """Draw the next request's fate, with the same number of random draws for each fate."""
    before, after, bend, where, lateness = (dice.random() for _ in range(5))
    return Fate(
        before=_fallen(
            before,
            Before.NOTHING,
            (
                (chances.lost_requests, Before.LOST),
                (chances.half_open, Before.HALF_OPEN),
                (chances.unauthenticated, Before.UNAUTHENTICATED),
                (chances.expired_sessions, Before.EXPIRED),
                (chances.failures, Before.FAILED),
                (chances.crashes, Before.CRASHED),
                (chances.refusals, Before.REFUSED),
            ),
        ),
        after=_fallen(
            after,
            After.NOTHING,
            (
                (chances.lost_answers, After.LOST),
                (chances.torn_answers, After.TORN),
                (chances.silent_answers, After.SILENT),
                (chances.slow_bodies, After.SLOW),
            ),
        ),
        bend=_fallen(
            bend,
            Bend.NOTHING,
            (
                (chances.truncated_pages, Bend.TRUNCATED),
                (chances.shifted_pages, Bend.SHIFTED),
                (chances.duplicated_records, Bend.DOUBLED),
                (chances.missing_records, Bend.MISSING),
                (chances.wrong_counts, Bend.MISCOUNTED),
            ),
        ),
        where=where,
        lateness=lateness,
    )


def _fallen(throw: float, otherwise: _T, outcomes: Iterable[tuple[float, _T]]) -> _T:
    for chance, outcome in outcomes:
        if throw < chance:
            return outcome
        throw -= chance
    return otherwise
