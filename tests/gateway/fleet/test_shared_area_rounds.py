"""Four gateways and three servers under faults, and the checker over what was recorded: it finds what is planted there.

`make shared-areas PLANT=...` plants faults into the product instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest
from shared_area_checker import Decided, History, Opened, Passed, faults_of, promises_are_tried
from shared_area_rounds import Outcome, run

pytestmark = pytest.mark.long("rounds of faults over gateways and servers")


@pytest.fixture(scope="module")
def outcome(tmp_path_factory) -> Outcome:
    return asyncio.run(run(tmp_path_factory.mktemp("rounds"), seconds=5, seed=11, pause=0.5))


def test_gateways_that_share_areas_keep_their_promises_through_faults(outcome):
    assert outcome.faults == ()
    assert outcome.counts["passages"] > 50
    assert any(one.claim for one in outcome.history.decided)


def claimed(history: History, *, direction: str = "entry") -> Decided:
    """A decision that was claimed, in the area that lets nobody in apart."""
    return next(one for one in history.decided if one.granted and one.claim and one.lane == f"deny-{direction}")


def a_claim_is_lost(history: History) -> None:
    gone = claimed(history).claim
    for revision in history.revisions:
        if revision.kind == "holder":
            revision.value["claims"] = [claim for claim in revision.value["claims"] if claim["id"] != gone]


def a_gate_opens_before_its_claim(history: History) -> None:
    one = claimed(history)
    history.decided[history.decided.index(one)] = replace(one, at=one.at - 1_000_000)


def two_gateways_claim_one_holder(history: History) -> None:
    one = claimed(history)
    for revision in history.revisions:
        if revision.kind == "holder" and any(claim["id"] == one.claim for claim in revision.value["claims"]):
            twin = {**revision.value["claims"][0], "id": "another", "by": "another"}
            revision.value["claims"].insert(0, twin)
            return


def a_claim_is_taken_over_the_limit(history: History) -> None:
    one = claimed(history)
    place = next(
        place
        for place, revision in enumerate(history.revisions)
        if revision.kind == "holder" and any(claim["id"] == one.claim for claim in revision.value["claims"])
    )
    count = replace(history.revisions[place], kind="count", key="another", value={"inside": {"deny": history.limit}})
    history.revisions.insert(place, count)


def a_holder_comes_in_twice(history: History) -> None:
    passed = next(one for one in history.passed if one.enters and one.area == "deny")
    history.passed.append(replace(passed, at=passed.at + 1, gateway="another"))


def two_vehicles_use_one_claim(history: History) -> None:
    one = claimed(history)
    history.decided.append(replace(one, gateway="gate-5"))


def the_area_is_over_its_limit(history: History) -> None:
    passed = next(one for one in history.passed if one.enters and one.area == "deny")
    history.passed += [replace(passed, holder=f"card:{number}") for number in range(history.limit + 1)]


def somebody_unknown_passes(history: History) -> None:
    history.passed[0] = replace(history.passed[0], holder="")


def somebody_is_let_in_without_a_claim(history: History) -> None:
    one = claimed(history)
    trace = one.trace.replace(" is claimed)", ")")
    history.decided[history.decided.index(one)] = replace(one, trace=trace)


def a_gate_opens_without_a_grant(history: History) -> None:
    history.opened.append(Opened("gate-1", "deny-entry", 1))


def a_gate_opens_twice_for_a_grant(history: History) -> None:
    history.killed.clear()
    history.opened.append(replace(history.opened[0], at=history.opened[0].at + 1))


def apart(history: History, lane: str, *, granted: bool, reason: str) -> None:
    """Add a decision that was made apart, in trouble."""
    begin, _ = history.troubles["gate-1"][0]
    trace = "shared area: passed (the other gateways cannot be asked); room: passed (1 of 50)"
    history.decided.append(Decided("gate-1", lane, begin + 1, granted, reason, "card:9", trace))


def apart_somebody_is_let_in_where_nobody_may(history: History) -> None:
    apart(history, "deny-entry", granted=True, reason="valid_card")


def apart_somebody_is_refused_where_all_may_come_in(history: History) -> None:
    apart(history, "allow-entry", granted=False, reason="area_full")


def apart_somebody_is_refused_who_is_not_inside(history: History) -> None:
    apart(history, "local-entry", granted=False, reason="anti_passback")


def apart_somebody_is_kept_inside_who_may_leave(history: History) -> None:
    apart(history, "deny-exit", granted=False, reason="anti_passback")


def apart_somebody_is_let_in_again_who_came_in_here(history: History) -> None:
    apart(history, "local-entry", granted=True, reason="valid_card")
    history.passed.append(Passed("gate-1", "local-entry", history.decided[-1].at - 1, "card:9"))


def all_are_decided_apart(history: History) -> None:
    history.troubles.clear()
    history.decided = [
        replace(one, trace=f"the other gateways cannot be asked; {one.trace}") for one in history.decided
    ]


def a_contradiction_is_told_that_is_none(history: History) -> None:
    history.told.append(("deny", "card:9"))


def a_contradiction_is_not_told(history: History) -> None:
    history.told.clear()
    passed = next(one for one in history.passed if one.enters and one.holder and one.area == "allow")
    history.passed.append(replace(passed, at=passed.at + 1))
    history.killed.clear()


def a_count_is_wrong(history: History) -> None:
    history.states["gate-2"]["counts"]["deny"] += 1


def a_place_is_wrong(history: History) -> None:
    last = max(history.passed, key=lambda one: one.at)
    history.states["gate-3"]["places"][last.holder] = "elsewhere"


def a_claim_is_left(history: History) -> None:
    last = next(one for one in reversed(history.revisions) if one.kind == "holder")
    last.value["claims"].append({"id": "left", "by": "gate-1", "at": 1, "leaves": "", "enters": "deny"})


def a_gateway_stays_apart(history: History) -> None:
    history.states["gate-4"]["apart"] = True


def test_a_run_in_which_nothing_happens_proves_nothing(outcome):
    idle = replace(outcome.history, decided=[], passed=[])
    assert len(list(promises_are_tried(idle))) == 2 * len(idle.rules)


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        (a_claim_is_lost, "which no revision holds"),
        (a_gate_opens_before_its_claim, "us before its claim was taken"),
        (two_gateways_claim_one_holder, "where another claim of the holder stood"),
        (a_claim_is_taken_over_the_limit, f"of {50}"),
        (a_holder_comes_in_twice, "is inside deny twice"),
        (two_vehicles_use_one_claim, "which another vehicle had"),
        (the_area_is_over_its_limit, "deny holds 51"),
        (somebody_unknown_passes, "somebody unknown passed"),
        (somebody_is_let_in_without_a_claim, "granted without a claim, and not apart"),
        (a_gate_opens_without_a_grant, "told to open at 1 without a grant"),
        (a_gate_opens_twice_for_a_grant, "for a grant that had its opening"),
        (apart_somebody_is_let_in_where_nobody_may, "apart, and not denied by the rule"),
        (apart_somebody_is_refused_where_all_may_come_in, "apart, and not let through by the rule"),
        (apart_somebody_is_kept_inside_who_may_leave, "apart, and not let out by the rule"),
        (apart_somebody_is_let_in_again_who_came_in_here, "against the last passage, which this gateway saw"),
        (apart_somebody_is_refused_who_is_not_inside, "apart, and not decided by the place"),
        (all_are_decided_apart, "were decided apart while nothing was in the way"),
        (a_contradiction_is_told_that_is_none, "is told as a contradiction, and is none"),
        (a_contradiction_is_not_told, "contradicts itself"),
        (a_count_is_wrong, "gate-2 counts"),
        (a_place_is_wrong, "gate-3 has 1 holders in the wrong place"),
        (a_claim_is_left, "is left"),
        (a_gateway_stays_apart, "gate-4 is apart at the end"),
    ],
)
def test_the_checker_finds(outcome, planted: Callable[[History], None], told: str):
    history = deepcopy(outcome.history)
    planted(history)
    assert [fault for fault in faults_of(history) if told in fault]
