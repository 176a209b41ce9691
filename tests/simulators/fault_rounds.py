"""Faults that are made, looked for wherever problems are shown, and mended."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import ClientSession
from forked import done
from stopwatch import Stopwatch

from gateway.domain.problems import ProblemKind
from gateway.problems.problem import SitePart

Key = tuple[str, str, str]
MACHINES_OWN = frozenset({ProblemKind.CLOCK_NOT_SET, ProblemKind.LOOP_HELD, ProblemKind.MEMORY_HIGH})
"""What a machine of tests may have of itself: its clock is set by nobody, and others use its processors and memory."""
SEEN_WITHIN = 5.0
_OVER_WITHIN = 100.0
_MOST_HELD_UP = 60.0
_ALIKE = ("title", "severity", "lanes", "means", "steps")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault and how it is mended.

    Attributes:
        kind, part, id: the problem that it is told as.
        make, mend: what is done to the far ends.
        after: seconds that the kind itself waits before it counts.
        stops: lanes that cannot work because of it.
    """

    kind: ProblemKind
    part: SitePart
    id: str = ""
    make: Callable[[], object]
    mend: Callable[[], object]
    after: float = 0.0
    stops: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """The key by which it is the same problem everywhere."""
        return self.kind.value, self.part.value, self.id


@dataclass
class Places:
    """The list of problems as each place shows it, by key, and the status of the readiness probe."""

    page: dict[Key, dict] = field(default_factory=dict)
    ready: dict[Key, dict] = field(default_factory=dict)
    doctor: dict[Key, dict] = field(default_factory=dict)
    metrics: set[Key] = field(default_factory=set)
    status: int = 0

    def agree_on(self, key: Key, *, present: bool) -> bool:
        """Return whether every place has it, or none."""
        return all((key in place) is present for place in (self.page, self.ready, self.doctor, self.metrics))


class Looking:
    """Looks at every place again and again, and lets faults wait for what is to be seen."""

    def __init__(self, *, http: ClientSession, data: Path, passed_over: Collection[ProblemKind] = MACHINES_OWN) -> None:
        """`http` asks the gateway over its local socket, which lies in its data folder `data`."""
        self._http = http
        self._data = data
        self._passed_over = passed_over
        self._looked = asyncio.Condition()
        self.places: Places | None = None

    async def run(self) -> None:
        """Look until cancelled. The command is run again once the page's list has changed."""
        while True:
            places = Places()
            places.page = self._by_key(json.loads(await self._asked("/status/now"))["snapshot"]["problems"])
            async with self._http.get("/health/ready") as answer:
                places.status = answer.status
                places.ready = self._by_key((await answer.json())["problems"])
            places.metrics = self._keys_of_metrics(await self._asked("/metrics"))
            if self.places is not None and self.places.doctor.keys() == places.page.keys():
                places.doctor = self.places.doctor
            else:
                places.doctor = await self._doctor()
            async with self._looked:
                self.places = places
                self._looked.notify_all()
            await asyncio.sleep(0.2)  # the pace of somebody who looks

    async def _doctor(self) -> dict[Key, dict]:
        said = await asyncio.to_thread(done, "gateway", "doctor", "--json", "--data", self._data)
        assert said.stderr == ""
        answer = json.loads(said.stdout)
        assert said.returncode == (1 if answer["problems"] else 0)
        return self._by_key(answer["problems"])

    async def _asked(self, path: str) -> str:
        async with self._http.get(path) as answer:
            assert answer.status == 200, path
            return await answer.text()

    async def until(self, condition: Callable[[Places], bool], *, within: float) -> float:
        """Wait for it; how long it took, without what the machine held up. Raises TimeoutError.

        A look takes seconds on a busy machine, which count only as far as the machine let it run.
        """
        watch = Stopwatch(children=True)
        async with asyncio.timeout(within + _MOST_HELD_UP), self._looked:
            while self.places is None or not condition(self.places):
                left = within - watch.seconds()
                if left <= 0:
                    raise TimeoutError
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._looked.wait(), left)
        return watch.seconds()

    def _by_key(self, problems: Iterable[dict]) -> dict[Key, dict]:
        found = {(one["kind"], one["part"], one["id"]): one for one in problems}
        return {key: one for key, one in found.items() if key[0] not in self._passed_over}

    def _keys_of_metrics(self, text: str) -> set[Key]:
        found = set()
        for line in text.splitlines():
            if line.startswith("edge_gateway_problem{"):
                labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', line))
                found.add((labels["kind"], labels["part"], labels["id"]))
        return {key for key in found if key[0] not in self._passed_over}


async def _do(act: Callable[[], object]) -> None:
    doing = act()
    if isinstance(doing, Awaitable):
        await doing


@dataclass
class Outcome:
    """The course of a fault: seconds until it was reported everywhere, and until it was over; or why not.

    Of several processes that waited at the same time, each wait is taken off, so that a time may be below 0.
    """

    told: float | None = None
    over: float | None = None
    wrong: str = ""


async def tried(fault: Fault, looking: Looking) -> Outcome:
    """Make the fault, look for it everywhere, mend it, and look that it is gone."""
    outcome = Outcome()
    assert looking.places is not None, "who looks has begun"
    await _do(fault.make)
    try:
        told = lambda places: places.agree_on(fault.key, present=True) and not _wrong_with(fault, places)  # noqa: E731
        outcome.told = await looking.until(told, within=fault.after + 20) - fault.after
    except TimeoutError:
        places = looking.places
        is_told = places.agree_on(fault.key, present=True)
        outcome.wrong = _wrong_with(fault, places) if is_told else f"not told everywhere: {sorted(places.page)}"
    await _do(fault.mend)
    with suppress(TimeoutError):
        outcome.over = await looking.until(
            lambda places: places.agree_on(fault.key, present=False), within=_OVER_WITHIN
        )
    if outcome.over is None:
        outcome.wrong += " not over"
    return outcome


def _wrong_with(fault: Fault, places: Places) -> str:
    """Return what is wrong with how the problem is told, "" when nothing is."""
    told = places.page[fault.key]
    if not (told["text"] and told["means"] and told["steps"] and told["since"]):
        return f"it lacks a text: {told}"
    if {*fault.stops} != {name.removesuffix(" lane") for name in told["lanes"]}:
        return f"it stops {told['lanes']}"
    if fault.stops and places.status != 503:
        return "the site counts as ready"
    for other in (places.ready, places.doctor):
        if any(other[fault.key][name] != told[name] for name in _ALIKE):
            return f"told differently: {other[fault.key]} {told}"
    return ""


async def all_tried(parts: Iterable[list[Fault]], looking: Looking) -> list[tuple[Fault, Outcome]]:
    """Try the faults: those of one part one after the other, those of different parts at the same time.

    Prints what became of each.
    """

    async def one_by_one(faults: list[Fault]) -> list[tuple[Fault, Outcome]]:
        return [(fault, await tried(fault, looking)) for fault in faults]

    table = [row for part in await asyncio.gather(*map(one_by_one, parts)) for row in part]
    for fault, outcome in table:
        times = f"told after {_shown(outcome.told)}, over after {_shown(outcome.over)}"
        print(f"{fault.kind:26} {fault.id:8} {times} {outcome.wrong}")
    return table


def _shown(seconds: float | None) -> str:
    return "   -   " if seconds is None else f"{max(seconds, 0.0):5.1f} s"


def faulty(table: Iterable[tuple[Fault, Outcome]]) -> list[tuple[str, str, Outcome]]:
    """Return the faults that were not told alike in time, or are not over."""
    late = (row for row in table if row[1].wrong or row[1].told is None or row[1].told > SEEN_WITHIN)
    return [(fault.kind.value, fault.id, outcome) for fault, outcome in late]
