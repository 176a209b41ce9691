"""The doors that a grant opens, and those that no grant ever opens."""

from __future__ import annotations

from datetime import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.access import AccessRules, Conditions, Ladder, Reason, Shown, Stance, decide
from gateway.domain.credentials import Card, CardStatus, Credential
from gateway.domain.grants import Grant, LaneGrants, by_lanes
from gateway.domain.presence import AntiPassback, Area, Movement, Presence, Way
from gateway.domain.schedules import WEEK, Schedule, Window

NOW = 1_769_774_400_000_000  # 2026-01-30T12:00Z, a Friday
HOUR = 3_600_000_000
CODE = "738291640551"
NIGHTS = Schedule("nights", (Window(frozenset(WEEK), time(22), time(23)),))
LANE = AccessRules(lane_id="entry", zones=frozenset({"north"}), schedules={"nights": NIGHTS})


def grant(number=1, *, user_id="17", until=NOW + HOUR, code=CODE, lane_id="entry"):
    return Grant(number, code, user_id, 101, lane_id, NOW - HOUR, until, "key:till")


def grants(*given_ones, lane_id="entry"):
    return by_lanes(given_ones).get(lane_id, LaneGrants())


def card(**fields):
    return Card(7, "7", **{"owner": "17", **fields})


def by_card(found, *given_ones, rules=LANE, now=NOW, **fields):
    return decide(Credential(text="7"), (found,), now=now, rules=rules, grants=grants(*given_ones), **fields)


def by_code(*given_ones, rules=LANE, now=NOW, text=CODE, **fields):
    return decide(Credential(text=text), (), now=now, rules=rules, grants=grants(*given_ones), **fields)


def seen(decision, rule):
    return next(result.seen for result in decision.trace if result.rule == rule)


def test_a_code_opens_its_lane_and_the_trace_names_the_grant_without_its_code():
    decision = by_code(grant(), text=f" {CODE} ")
    assert (decision.granted, decision.reason, decision.grant) == (True, Reason.GRANT, 1)
    assert seen(decision, "known") == "grant 1 of 17"
    assert CODE not in str(decision.trace)
    assert CODE not in repr(grant())


def test_a_code_opens_no_other_lane():
    assert not by_code(grant(lane_id="exit")).granted
    assert by_code(grant(lane_id="exit")).reason is Reason.UNKNOWN_CREDENTIAL


def test_a_code_ends_at_its_moment_and_a_permanent_one_never():
    assert by_code(grant(), now=NOW + HOUR - 1).granted
    ended = by_code(grant(), now=NOW + HOUR)
    assert (ended.granted, ended.reason) == (False, Reason.EXPIRED)
    assert by_code(grant(until=None), now=NOW + 10_000 * HOUR).granted


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"zones": ("south",)}, "zone"),
        ({"schedules": ("nights",)}, "schedule"),
        ({"schedules": ("unheard-of",)}, "schedule"),
        ({"valid_until": NOW - HOUR}, "validity"),
        ({"valid_from": NOW + HOUR}, "validity"),
    ],
)
def test_a_users_card_opens_where_and_when_it_would_not_by_itself(fields, rule):
    assert not by_card(card(**fields)).granted
    decision = by_card(card(**fields), grant())
    assert (decision.granted, decision.reason, decision.grant) == (True, Reason.GRANT, 1)
    assert "grant 1 of 17 lets it pass" in seen(decision, rule)
    ended = by_card(card(**fields), grant(until=NOW - 1))
    assert not ended.granted
    assert "grant 1 of 17 ended" in seen(ended, rule)
    assert not by_card(card(**fields), grant(user_id="18")).granted


def test_a_good_card_needs_no_grant():
    decision = by_card(card(), grant())
    assert (decision.reason, decision.grant) == (Reason.VALID_CARD, None)


def test_of_several_grants_the_one_that_stands_counts():
    decision = by_card(card(zones=("south",)), grant(1, until=NOW - 1), grant(2, code="2"), grant(3, until=1, code="3"))
    assert (decision.granted, decision.grant) == (True, 2)


def test_a_holder_is_known_by_name_only_where_no_owner_is_known():
    nameless = card(zones=("south",), owner="", holder="A. Meyer")
    assert by_card(nameless, grant(user_id="A. Meyer")).granted
    assert not by_card(card(zones=("south",), owner="4", holder="A. Meyer"), grant(user_id="A. Meyer")).granted


@pytest.mark.parametrize(("stance", "granted"), [(Stance.SECURE, False), (Stance.USUAL, True), (Stance.OPEN, True)])
def test_an_untrusted_clock_goes_by_the_ladder(stance, granted):
    rules = AccessRules(lane_id="entry", zones=frozenset({"north"}), ladder=Ladder(clock=stance))
    doubt = Conditions(clock_trusted=False)
    assert by_code(grant(), rules=rules, conditions=doubt).granted is granted
    assert by_card(card(zones=("south",)), grant(), rules=rules, conditions=doubt).granted is granted
    assert by_code(grant(until=None), rules=rules, conditions=doubt).granted
    late = by_code(grant(), rules=rules, conditions=doubt, now=NOW + 2 * HOUR)
    assert late.granted is (stance is Stance.OPEN)


def test_a_clock_that_went_back_does_not_bring_an_ended_grant_to_life():
    doubt = Conditions(clock_trusted=False, listed_at=NOW + 2 * HOUR)
    assert by_code(grant(), conditions=doubt).reason is Reason.EXPIRED


def test_what_the_lane_asks_is_asked_of_codes_too():
    rules = AccessRules(
        lane_id="entry",
        way=Way(enters="garage"),
        areas={"garage": Area("garage", anti_passback=AntiPassback.HARD)},
    )
    presence = Presence()
    assert by_code(grant(), rules=rules, presence=presence).granted
    presence.move(Movement(rules.way, NOW, holder="card:-1"))
    assert by_code(grant(), rules=rules, presence=presence).reason is Reason.ANTI_PASSBACK
    assert by_code(grant(), rules=AccessRules(lane_id="entry", asks_pin=True)).reason is Reason.NO_PIN


def test_a_listed_card_with_the_same_text_goes_before_a_code():
    listed = Card(9, CODE, status=CardStatus.BLOCKED)
    decision = decide(Credential(text=CODE), (listed,), now=NOW, rules=LANE, grants=grants(grant()))
    assert decision.reason is Reason.BLOCKED


@settings(max_examples=150, deadline=None)
@given(
    status=st.sampled_from([one for one in CardStatus if one is not CardStatus.ACTIVE]),
    zones=st.sampled_from([(), ("north",), ("south",)]),
    until=st.sampled_from([None, NOW - HOUR, NOW + HOUR]),
    granted_until=st.sampled_from([None, NOW + HOUR]),
    ladder=st.builds(Ladder, *[st.sampled_from(Stance)] * 4),
    trusted=st.booleans(),
)
def test_no_grant_opens_for_a_card_that_the_list_holds_back(status, zones, until, granted_until, ladder, trusted):
    rules = AccessRules(lane_id="entry", zones=frozenset({"north"}), ladder=ladder)
    held_back = card(status=status, zones=zones, valid_until=until)
    decision = by_card(
        held_back, grant(until=granted_until), rules=rules, conditions=Conditions(clock_trusted=trusted), shown=Shown()
    )
    assert not decision.granted
