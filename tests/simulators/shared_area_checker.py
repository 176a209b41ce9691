"""The checker of a recorded history of shared areas. It knows the records and the decisions as they are on disk alone.

The history is every revision of the bucket in its order, the decisions and passages of each gateway from its database,
and when each gate was told to open. Nothing of the product's own rules is used here.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

Micros = int
_SLACK: Micros = 50_000
"""Clocks of one machine, read by several processes."""
_TOLD_WITHIN: Micros = 60_000_000
_UNSYNCED: Micros = 5_000_000
_OPENED_WITHIN: Micros = 5_000_000
"""The deadline of a command to a gate, by the site file's default."""
_MOST_LATE = 0.5
"""The share of claims that a busy machine may answer too late without a trouble of its own."""


@dataclass(frozen=True)
class Revision:
    """One message of the bucket: a holder's entry, or a gateway's counts."""

    number: int
    at: Micros
    kind: str
    key: str
    value: dict

    @property
    def holder(self) -> str:
        """The holder's name."""
        return base64.urlsafe_b64decode(self.key + "=" * (-len(self.key) % 4)).decode()


@dataclass(frozen=True)
class Decided:
    """A decision as a gateway recorded it."""

    gateway: str
    lane: str
    at: Micros
    granted: bool
    reason: str
    holder: str
    trace: str

    @property
    def area(self) -> str:
        """The area; lanes are called `area-direction`."""
        return self.lane.partition("-")[0]

    @property
    def enters(self) -> bool:
        """True if it was about coming in."""
        return self.lane.endswith("entry")

    @property
    def was_apart(self) -> bool:
        """True if it was decided without the other gateways."""
        return "other gateways cannot be asked" in self.trace

    @property
    def claim(self) -> str:
        """The claim that let it in, "" for none."""
        found = re.search(r"claim: passed \(.*, (\S+) is claimed\)", self.trace)
        return found[1] if found else ""


@dataclass(frozen=True)
class Passed:
    """A passage as a gateway recorded it."""

    gateway: str
    lane: str
    at: Micros
    holder: str

    @property
    def area(self) -> str:
        """The area."""
        return self.lane.partition("-")[0]

    @property
    def enters(self) -> bool:
        """True if it came in."""
        return self.lane.endswith("entry")


@dataclass(frozen=True)
class Opened:
    """A gate was told to open."""

    gateway: str
    lane: str
    at: Micros


@dataclass
class History:
    """Everything that was recorded.

    Attributes:
        limit: of each area.
        rules: each area's rule while apart.
        troubles: when the line of each gateway to the servers was in trouble, by gateway: beginning and end.
        killed: when each gateway was killed.
        all_died: when all servers were killed at once. They may lose what they acknowledged just before.
        told: the contradictions that were told: area, holder.
        states: what each gateway knows at the end: counts, places and whether it is apart.
    """

    limit: int
    rules: dict[str, str]
    revisions: list[Revision] = field(default_factory=list)
    decided: list[Decided] = field(default_factory=list)
    passed: list[Passed] = field(default_factory=list)
    opened: list[Opened] = field(default_factory=list)
    troubles: dict[str, list[tuple[Micros, Micros]]] = field(default_factory=dict)
    killed: dict[str, list[Micros]] = field(default_factory=dict)
    all_died: list[Micros] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    states: dict[str, dict] = field(default_factory=dict)

    def losses(self) -> dict[str, list[tuple[Micros, Micros]]]:
        """Return when each gateway was killed, each time after what it had last on disk: it writes in order."""
        ats: dict[str, list[Micros]] = defaultdict(list)
        for one in (*self.decided, *self.passed):
            ats[one.gateway].append(one.at)
        return {
            gateway: [(max((at for at in ats[gateway] if at <= kill), default=0), kill) for kill in kills]
            for gateway, kills in self.killed.items()
        }


def faults_of(history: History) -> Iterator[str]:
    """Yield every way in which the history breaks a promise."""
    yield from claims_are_linearisable(history)
    yield from gates_open_for_claims(history)
    yield from apart_by_the_rule(history)
    yield from never_over_nor_twice(history)
    yield from contradictions_are_told(history)
    yield from books_are_equal(history)


def promises_are_tried(history: History) -> Iterator[str]:
    """Yield areas at which nothing happened that could have broken a promise. A short run may have some."""
    for area in history.rules:
        if not any(one.area == area and one.enters and one.claim for one in history.decided):
            yield f"nobody was let into {area} for a claim: nothing is proven"
        if not any(one.area == area for one in history.passed):
            yield f"nobody passed at {area}: nothing is proven"


@dataclass
class _Claimed:
    """A claim as it first stood in the bucket."""

    number: int
    at: Micros
    holder: str
    taken: int
    twins: int
    was_inside: bool
    left_after: Micros


def claims_are_linearisable(history: History) -> Iterator[str]:
    """Each granted claim took effect at one revision, between its decision's card and its gate, and was right there."""
    claimed = _replayed(history)
    by_holder: dict[str, list[Passed]] = defaultdict(list)
    used: set[str] = set()
    for passed in history.passed:
        by_holder[passed.holder].append(passed)
    for one in history.decided:
        if not one.claim or not one.granted:
            continue
        what = f"{one.gateway} {one.lane} {one.holder} at {one.at}"
        if one.claim in used:
            yield f"{what}: opened for claim {one.claim}, which another vehicle had"
        used.add(one.claim)
        found = claimed.get(one.claim)
        if found is None:
            if any(one.at - _SLACK <= died <= one.at + _UNSYNCED for died in history.all_died):
                continue
            yield f"{what}: opened for claim {one.claim}, which no revision holds"
            continue
        if found.at > one.at + _SLACK:
            yield f"{what}: opened {found.at - one.at} us before its claim was taken"
        if not one.enters:
            continue
        if found.twins:
            yield f"{what}: claimed at revision {found.number}, where another claim of the holder stood"
        if found.was_inside and not any(
            passed.gateway == one.gateway and not passed.enters and found.left_after < passed.at < one.at
            for passed in by_holder[one.holder]
        ):  # it knows of its own that the holder left
            yield f"{what}: claimed at revision {found.number}, where the holder was inside"
        if found.taken > history.limit:
            yield f"{what}: claimed at revision {found.number} as number {found.taken} of {history.limit}"


def _replayed(history: History) -> dict[str, _Claimed]:
    """Replay the bucket; return each claim as it was when it first stood there."""
    entries: dict[str, dict] = {}
    inside: dict[str, dict[str, int]] = {}
    coming: Counter[str] = Counter()
    claimed: dict[str, _Claimed] = {}
    for revision in history.revisions:
        if revision.kind == "count":
            inside[revision.key] = revision.value["inside"]
            continue
        before = entries.get(revision.holder, {"steps": [], "claims": []})
        coming.subtract(claim["enters"] for claim in before["claims"])
        coming.update(claim["enters"] for claim in revision.value["claims"])
        entries[revision.holder] = revision.value
        steps = revision.value["steps"]
        for claim in revision.value["claims"]:
            if claim["id"] in claimed or any(other["id"] == claim["id"] for other in before["claims"]):
                continue
            area = claim["enters"]
            leaving = any(other["leaves"] == area and other["by"] == claim["by"] for other in revision.value["claims"])
            claimed[claim["id"]] = _Claimed(
                revision.number,
                revision.at,
                revision.holder,
                taken=coming[area] + sum(one.get(area, 0) for one in inside.values()),
                twins=sum(other["enters"] == area and other["by"] != claim["by"] for other in revision.value["claims"]),
                left_after=steps[-1]["at"] if steps else 0,
                was_inside=bool(area) and bool(steps) and steps[-1]["enters"] == area and not leaving,
            )
    return claimed


def gates_open_for_claims(history: History) -> Iterator[str]:
    """No gate was told to open without a recorded grant just before, except when its gateway died on the way."""
    grants = defaultdict(list)
    for one in history.decided:
        if one.granted:
            grants[one.gateway, one.lane].append(one.at)
            if not one.claim and not one.was_apart:
                yield f"{one.gateway} {one.lane} {one.holder} at {one.at}: granted without a claim, and not apart"
    losses = history.losses()
    opened: set[tuple[str, str, Micros]] = set()
    for gate in sorted(history.opened, key=lambda one: one.at):
        if any(on_disk <= gate.at <= killed for on_disk, killed in losses.get(gate.gateway, ())):
            continue
        before = [at for at in grants[gate.gateway, gate.lane] if -_SLACK <= gate.at - at < _OPENED_WITHIN]
        grant = gate.gateway, gate.lane, max(before, default=0)
        if not before:
            yield f"{gate.gateway} {gate.lane}: told to open at {gate.at} without a grant"
        elif grant in opened:
            yield f"{gate.gateway} {gate.lane}: told to open at {gate.at} for a grant that had its opening"
        opened.add(grant)


def apart_by_the_rule(history: History) -> Iterator[str]:
    """Without the others exactly the area's rule holds, and a gateway is mostly without them only in trouble."""
    passages: dict[tuple[str, str], list[Passed]] = defaultdict(list)
    for passed in sorted(history.passed, key=lambda one: one.at):
        passages[passed.area, passed.holder].append(passed)
    calm = [one for one in history.decided if not _is_in_trouble(history, one)]
    if sum(one.was_apart for one in calm) > len(calm) * _MOST_LATE:
        yield f"{sum(one.was_apart for one in calm)} of {len(calm)} were decided apart while nothing was in the way"
    for one in history.decided:
        if not one.was_apart:
            continue
        what = f"{one.gateway} {one.lane} {one.holder} at {one.at}"
        rule = history.rules[one.area]
        if rule == "deny" and one.enters and (one.granted or one.reason != "area_apart"):
            yield f"{what}: apart, and not denied by the rule ({one.reason})"
        if rule == "deny" and not one.enters and not one.granted:
            yield f"{what}: apart, and not let out by the rule ({one.reason})"
        if rule == "allow" and not one.granted:
            yield f"{what}: apart, and not let through by the rule ({one.reason})"
        if rule == "local":
            yield from _by_local_knowledge(history.limit, one, what)
            last = next((seen for seen in reversed(passages[one.area, one.holder]) if seen.at < one.at), None)
            claimed = "on its way in" in one.trace
            if last is not None and last.gateway == one.gateway and not claimed and not _agrees(one, last):
                yield f"{what}: apart, and against the last passage, which this gateway saw ({one.reason})"


def _agrees(one: Decided, last: Passed) -> bool:
    """Return whether a decision follows from the holder's last passage, if nothing else forbids the way."""
    return not one.granted if last.enters is one.enters else one.reason != "anti_passback"


def _is_in_trouble(history: History, one: Decided) -> bool:
    return any(begin <= one.at <= end for begin, end in history.troubles.get(one.gateway, ()))


def _by_local_knowledge(limit: int, one: Decided, what: str) -> Iterator[str]:
    """Yield where a decision went against what it saw here."""
    if not one.granted and one.reason not in ("anti_passback", "area_full"):
        yield f"{what}: apart, and denied by neither presence nor count ({one.reason})"
    if not one.enters:
        return
    room = re.search(r"room: \w+ \((\d+) of \d+(?:, (\d+) on their way in)?\)", one.trace)
    if one.granted and (room is None or int(room[1]) + int(room[2] or 0) >= limit):
        yield f"{what}: apart, and let in over the local count"
    seen = f"last seen entering {one.area}" in one.trace
    if seen is not (one.reason == "anti_passback") and "on its way in" not in one.trace:
        yield f"{what}: apart, and not decided by the place that is known here"


def never_over_nor_twice(history: History) -> Iterator[str]:
    """Yield holders inside twice, and vehicles over the limit, in the area that lets nobody in apart."""
    inside: dict[str, set[str]] = defaultdict(set)
    vehicles: Counter[str] = Counter()
    for one in sorted(history.passed, key=lambda one: one.at):
        if not one.holder:
            yield f"{one.gateway} {one.lane}: somebody unknown passed at {one.at}, though every vehicle has a card"
        if history.rules[one.area] != "deny":
            continue
        vehicles[one.area] += 1 if one.enters else -1
        here = inside[one.area]
        if not one.enters:
            here.discard(one.holder)
            continue
        if one.holder in here:
            yield f"{one.holder} is inside {one.area} twice: came in at {one.gateway} at {one.at}"
        here.add(one.holder)
        if vehicles[one.area] > history.limit:
            yield f"{one.area} holds {vehicles[one.area]}: {one.holder} came in at {one.gateway} at {one.at}"


def contradictions_are_told(history: History) -> Iterator[str]:
    """Yield what is told as a contradiction and is none, and those that no kill can have lost and nobody tells."""
    told, losses = Counter(history.told), history.losses()
    found: Counter[tuple[str, str]] = Counter()
    certain: Counter[tuple[str, str]] = Counter()
    by_holder: dict[tuple[str, str], list[Passed]] = defaultdict(list)
    for one in sorted(history.passed, key=lambda one: one.at):
        if one.holder:
            by_holder[one.area, one.holder].append(one)
    for key, passages in by_holder.items():
        for before, after in pairwise(passages):
            if before.enters is after.enters:
                found[key] += 1
                certain[key] += not any(_may_be_lost(losses.get(one.gateway, ()), one) for one in (before, after))
        if passages and not passages[0].enters:
            found[key] += 1
    apart = {(one.area, one.holder) for one in history.decided if one.was_apart}
    for key in told:
        if not found[key] and key not in apart:
            yield f"{key[1]} in {key[0]} is told as a contradiction, and is none"
    for key, count in certain.items():
        if count and not told[key]:
            yield f"{key[1]} in {key[0]} contradicts itself {count} times, and nobody tells"


def _may_be_lost(losses: Iterable[tuple[Micros, Micros]], one: Passed) -> bool:
    """Return whether the gateway died soon after: what others did not know then, is known by its last place alone."""
    return any(one.at <= killed and on_disk <= one.at + _TOLD_WITHIN for on_disk, killed in losses)


def books_are_equal(history: History) -> Iterator[str]:
    """At the end all gateways know the same, and it is what was recorded."""
    counts = dict.fromkeys(history.rules, 0)
    places: dict[str, str] = {}
    for one in sorted(history.passed, key=lambda one: one.at):
        counts[one.area] += 1 if one.enters else -1
        if one.holder:
            places[one.holder] = one.area if one.enters else ""
    counts = {area: max(0, count) for area, count in counts.items()}
    for gateway, state in history.states.items():
        if state["apart"]:
            yield f"{gateway} is apart at the end"
        if state["counts"] != counts:
            yield f"{gateway} counts {state['counts']}, recorded were {counts}"
        wrong = [holder for holder, place in places.items() if state["places"].get(holder) != place]
        if wrong:
            first = wrong[0]
            yield (
                f"{gateway} has {len(wrong)} holders in the wrong place, such as {first}:"
                f" {state['places'].get(first)!r} instead of {places[first]!r}"
            )
    open_claims = {}
    for revision in history.revisions:
        if revision.kind == "holder":
            open_claims[revision.holder] = revision.value["claims"]
    for holder, claims in open_claims.items():
        if claims:
            yield f"a claim of {holder} is left: {json.dumps(claims)}"
