"""The access decision: each rule, and what no combination of them may ever grant."""

from __future__ import annotations

from dataclasses import replace
from datetime import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.domain.access import (
    AccessRules,
    Coming,
    Conditions,
    Ladder,
    Reason,
    Shown,
    Stance,
    decide,
    store_unavailable,
    words_of,
)
from gateway.domain.credentials import Card, CardStatus, Credential
from gateway.domain.plates import NearPlate
from gateway.domain.presence import AntiPassback, Apart, Area, Movement, Presence, Way
from gateway.domain.schedules import WEEK, Calendar, Schedule, Window

NOW = 1_769_774_400_000_000  # 2026-01-30T12:00Z, a Friday
HOUR = 3_600_000_000
READING = Credential(text="7")
GARAGE = Way(enters="garage")


def card(card_id=7, **fields):
    return Card(card_id, str(card_id), **fields)


def hours(begins, ends, *days):
    return Schedule(f"{begins}-{ends}", (Window(frozenset(days or WEEK), time(begins), time(ends)),))


def judged(found=None, **fields):
    cards = (found or card(),) if not isinstance(found, tuple) else found
    return decide(fields.pop("credential", READING), cards, now=fields.pop("now", NOW), **fields)


def failed(decision):
    return [result.rule for result in decision.trace if not result.passed]


def assert_denied(decision, rule, reason):
    assert (decision.granted, decision.reason, failed(decision)) == (False, reason, [rule])
    assert decision.trace[-1].rule == rule


def test_every_reason_has_a_sentence():
    assert len({words_of(reason) for reason in Reason}) == len(Reason)


def test_a_good_card_is_granted_with_every_rule_in_the_trace():
    decision = judged()
    assert (decision.granted, decision.reason, decision.notices) == (True, Reason.VALID_CARD, ())
    assert len(decision.trace) == 16
    assert failed(decision) == []


@pytest.mark.parametrize(
    ("found", "rule", "reason"),
    [
        ((), "known", Reason.UNKNOWN_CREDENTIAL),
        ((card(1), card(2)), "known", Reason.AMBIGUOUS_CREDENTIAL),
        (card(status=CardStatus.SUSPENDED), "status", Reason.SUSPENDED),
        (card(status=CardStatus.LOST), "status", Reason.LOST),
        (card(status=CardStatus.BLOCKED), "status", Reason.BLOCKED),
        (card(status=CardStatus.EXPIRED), "status", Reason.EXPIRED),
        (card(valid_from=NOW + 1), "validity", Reason.NOT_YET_VALID),
        (card(valid_until=NOW), "validity", Reason.EXPIRED),
    ],
)
def test_what_is_wrong_with_a_card(found, rule, reason):
    decision = judged(found)
    assert_denied(decision, rule, reason)
    assert str(decision.words())


def test_zones():
    rules = AccessRules(lane_id="north-entry", zones=frozenset({"7", "staff"}))
    assert judged(rules=rules).granted
    assert judged(card(zones=("staff",)), rules=rules).granted
    assert judged(card(zones=("north-entry",)), rules=rules).granted
    assert judged(card(zones=("8",))).granted, "a lane without zones does not ask"
    assert_denied(judged(card(zones=("8", "visitors")), rules=rules), "zone", Reason.WRONG_ZONE)


def test_schedules():
    rules = AccessRules(schedules={"day": hours(8, 18), "night": hours(22, 6)})
    assert judged(card(schedules=("day",)), rules=rules).granted
    assert judged(card(schedules=("night", "day")), rules=rules).granted
    assert judged(card(schedules=("any",))).granted, "a site without schedules does not ask"
    assert_denied(judged(card(schedules=("night",)), rules=rules), "schedule", Reason.OUTSIDE_SCHEDULE)
    assert_denied(judged(card(schedules=("any",)), rules=rules), "schedule", Reason.UNKNOWN_SCHEDULE)


def test_a_lane_out_of_hours():
    assert judged(rules=AccessRules(schedule=hours(8, 18))).granted
    assert_denied(judged(rules=AccessRules(schedule=hours(13, 18))), "lane hours", Reason.LANE_CLOSED)


def passback(mode, way=GARAGE, minutes=10.0, by_owner=False):
    areas = {"garage": Area("garage", anti_passback=mode, minutes=minutes), "vip": Area("vip", anti_passback=mode)}
    return AccessRules(way=way, areas=areas, by_owner=by_owner)


def inside(since=NOW - HOUR, holder="card:7"):
    presence = Presence()
    presence.move(Movement(GARAGE, since, holder))
    return presence


def test_anti_passback_refuses_who_is_in_already_and_who_is_not():
    hard, out = passback(AntiPassback.HARD), passback(AntiPassback.HARD, GARAGE.back)
    assert judged(rules=hard).granted
    assert_denied(judged(rules=hard, presence=inside()), "anti-passback", Reason.ANTI_PASSBACK)
    assert judged(rules=out, presence=inside()).granted
    gone = inside()
    gone.move(Movement(GARAGE.back, NOW, "card:7"))
    assert_denied(judged(rules=out, presence=gone), "anti-passback", Reason.ANTI_PASSBACK)
    assert judged(rules=out).granted, "whose whereabouts are unknown may pass once"


def shared(apart, way=GARAGE):
    """A full area of hard anti-passback that gateways share, with the card inside, judged while nobody can be asked."""
    area = Area("garage", limit=1, anti_passback=AntiPassback.HARD, shared=True, apart=apart)
    rules = AccessRules(way=way, areas={"garage": area})
    return judged(rules=rules, presence=inside(), conditions=Conditions(apart=True))


def test_apart_the_rule_of_a_shared_area_holds_for_those_who_enter():
    assert shared(Apart.ALLOW).granted
    assert_denied(shared(Apart.DENY), "shared area", Reason.AREA_APART)
    assert_denied(shared(Apart.LOCAL), "anti-passback", Reason.ANTI_PASSBACK)
    for apart in Apart:
        assert "the other gateways cannot be asked" in shared(apart).traced()


@pytest.mark.parametrize("apart", Apart)
def test_while_the_other_gateways_can_be_asked_the_rule_of_being_apart_does_not_hold(apart):
    rules = AccessRules(way=GARAGE, areas={"garage": Area("garage", shared=True, apart=apart)})
    assert judged(rules=rules).granted


def test_apart_nobody_is_kept_inside_a_shared_area():
    gone = inside()
    gone.move(Movement(GARAGE.back, NOW, "card:7"))
    for apart in (Apart.ALLOW, Apart.DENY):
        area = Area("garage", anti_passback=AntiPassback.HARD, shared=True, apart=apart)
        rules = AccessRules(way=GARAGE.back, areas={"garage": area})
        assert judged(rules=rules, presence=gone, conditions=Conditions(apart=True)).granted
        assert_denied(judged(rules=rules, presence=gone), "anti-passback", Reason.ANTI_PASSBACK)


def test_an_area_that_is_not_shared_knows_of_no_other_gateways():
    decision = judged(rules=passback(AntiPassback.HARD), conditions=Conditions(apart=True))
    assert decision == judged(rules=passback(AntiPassback.HARD))
    assert "shared area" not in [result.rule for result in decision.trace]
    for apart in Apart:
        area = Area("garage", anti_passback=AntiPassback.HARD, apart=apart)
        rules = AccessRules(way=GARAGE, areas={"garage": area})
        kept = judged(rules=rules, presence=inside(), conditions=Conditions(apart=True))
        assert_denied(kept, "anti-passback", Reason.ANTI_PASSBACK)
        full = AccessRules(way=GARAGE, areas={"garage": Area("garage", limit=1, apart=apart)})
        kept = judged(rules=full, presence=Presence(counts={"garage": 1}), conditions=Conditions(apart=True))
        assert_denied(kept, "room", Reason.AREA_FULL)


def test_anti_passback_goes_by_areas():
    deeper = passback(AntiPassback.HARD, Way(leaves="garage", enters="vip"))
    assert judged(rules=deeper, presence=inside()).granted
    gone = inside()
    gone.move(Movement(GARAGE.back, NOW, "card:7"))
    assert_denied(judged(rules=deeper, presence=gone), "anti-passback", Reason.ANTI_PASSBACK)


def test_soft_anti_passback_notes():
    decision = judged(rules=passback(AntiPassback.SOFT), presence=inside())
    assert (decision.granted, decision.notices) == (True, (Reason.ANTI_PASSBACK,))


def test_timed_anti_passback_ends():
    rules = passback(AntiPassback.TIMED)
    assert judged(rules=rules, presence=inside(NOW - HOUR)).granted
    for since in (NOW - HOUR // 60, NOW + HOUR):
        assert_denied(judged(rules=rules, presence=inside(since)), "anti-passback", Reason.ANTI_PASSBACK)


@pytest.mark.parametrize("mode", [AntiPassback.HARD, AntiPassback.TIMED])
def test_a_card_whose_vehicle_is_on_its_way_in_lets_no_second_one_in(mode):
    coming = Shown(coming=(Coming("north-entry", GARAGE, "card:7"),))
    assert_denied(judged(rules=passback(mode), shown=coming), "anti-passback", Reason.ANTI_PASSBACK)
    assert judged(card(8), rules=passback(mode), shown=coming).granted, "another card"
    assert judged(rules=passback(mode, GARAGE.back), shown=coming).granted, "another way"
    assert judged(rules=passback(AntiPassback.OFF), shown=coming).granted


def test_vehicles_on_their_way_in_take_room():
    rules = AccessRules(way=GARAGE, areas={"garage": Area("garage", limit=2)})
    one, two = ((Coming("north-entry", GARAGE, f"card:{number}"),) for number in (1, 2))
    assert judged(rules=rules, shown=Shown(coming=one)).granted
    assert_denied(judged(rules=rules, shown=Shown(coming=one + two)), "room", Reason.AREA_FULL)
    leaving = (Coming("north-exit", GARAGE.back, "card:1"), Coming("south-exit", GARAGE.back, "card:2"))
    assert judged(rules=rules, shown=Shown(coming=leaving)).granted


def test_anti_passback_by_owner():
    rules = passback(AntiPassback.HARD, by_owner=True)
    presence = inside(holder="owner:9000")
    assert_denied(judged(card(8, owner="9000"), rules=rules, presence=presence), "anti-passback", Reason.ANTI_PASSBACK)
    assert judged(card(8), rules=rules, presence=presence).granted


def test_a_decision_moves_nobody():
    presence = Presence()
    assert judged(rules=passback(AntiPassback.HARD), presence=presence).granted
    assert judged(rules=passback(AntiPassback.HARD), presence=presence).granted, "a back-out costs nothing"
    assert presence.whereabouts("card:7") is None


def test_a_full_area():
    rules = AccessRules(way=GARAGE, areas={"garage": Area("garage", limit=2)})
    assert judged(rules=rules, presence=Presence(counts={"garage": 1})).granted
    full = Presence(counts={"garage": 2})
    assert_denied(judged(rules=rules, presence=full), "room", Reason.AREA_FULL)
    assert judged(rules=AccessRules(way=GARAGE.back, areas=rules.areas), presence=full).granted


def test_the_first_person_opens_an_area_for_the_local_day():
    rules = AccessRules(way=GARAGE, areas={"garage": Area("garage", first_person=True)}, calendar=Calendar())
    assert_denied(judged(rules=rules), "first person", Reason.FIRST_PERSON_AWAITED)
    assert judged(card(first_person=True), rules=rules).granted
    assert judged(rules=rules, presence=Presence(opened={"garage": NOW - HOUR})).granted
    yesterday = Presence(opened={"garage": NOW - 13 * HOUR})
    assert_denied(judged(rules=rules, presence=yesterday), "first person", Reason.FIRST_PERSON_AWAITED)


@pytest.mark.parametrize(
    ("own", "shown", "reason"),
    [
        ("4719", Shown(pin="4719"), None),
        ("4719", Shown(), Reason.PIN_MISSING),
        ("4719", Shown(pin="4718"), Reason.WRONG_PIN),
        ("4719", Shown(pin="4719", pin_locked=True), Reason.PIN_LOCKED),
        ("", Shown(pin="4719"), Reason.NO_PIN),
        ("", Shown(), Reason.NO_PIN),
    ],
)
def test_pins(own, shown, reason):
    rules = AccessRules(asks_pin=True)
    decision = judged(card(pin=own), rules=rules, shown=shown)
    assert decision.notices == (), "nobody is forced"
    if reason is None:
        assert decision.granted
    else:
        assert_denied(decision, "PIN", reason)
    assert judged(card(pin=own), shown=shown).granted, "where none is asked for, none is looked at"


@pytest.mark.parametrize(("own", "typed"), [("4719", "4710"), ("4711", "4712")])
def test_the_pin_of_duress_opens_and_is_noted_where_a_pin_is_asked(own, typed):
    forced = judged(card(pin=own), rules=AccessRules(asks_pin=True), shown=Shown(pin=typed))
    assert (forced.granted, forced.notices) == (True, (Reason.DURESS,))
    assert judged(card(pin=own), shown=Shown(pin=typed)).notices == ()
    locked = judged(card(pin=own), rules=AccessRules(asks_pin=True), shown=Shown(pin=typed, pin_locked=True))
    assert (locked.reason, locked.notices) == (Reason.PIN_LOCKED, (Reason.DURESS,))


def test_a_plate_has_no_pin_so_it_opens_nothing_where_one_is_asked():
    plate, rules = Credential(plate="ABC123"), AccessRules(asks_pin=True)
    for shown in (Shown(), Shown(pin="4711")):
        assert_denied(judged(card(pin="4711"), credential=plate, rules=rules, shown=shown), "PIN", Reason.PIN_MISSING)


def test_a_lane_that_stays_open_without_a_clock_waits_for_no_first_person():
    areas = {"garage": Area("garage", first_person=True)}
    unsure = Conditions(clock_trusted=False)
    opens = AccessRules(way=GARAGE, areas=areas, calendar=Calendar(), ladder=Ladder(clock=Stance.OPEN))
    assert judged(rules=opens, conditions=unsure).granted
    assert_denied(judged(rules=opens), "first person", Reason.FIRST_PERSON_AWAITED)


def test_a_lane_that_stays_open_without_a_clock_asks_for_no_hours():
    opens, unsure = Ladder(clock=Stance.OPEN), Conditions(clock_trusted=False)
    closed = AccessRules(schedule=hours(13, 18), ladder=opens)
    assert judged(rules=closed, conditions=unsure).granted
    assert_denied(judged(rules=closed), "lane hours", Reason.LANE_CLOSED)
    night = AccessRules(schedules={"night": hours(22, 6)}, ladder=opens)
    assert judged(card(schedules=("night",)), rules=night, conditions=unsure).granted
    assert_denied(judged(card(schedules=("night",)), rules=night), "schedule", Reason.OUTSIDE_SCHEDULE)


@pytest.mark.parametrize("limits", [{"valid_from": NOW - HOUR}, {"valid_until": NOW + HOUR}, {"schedules": ("day",)}])
def test_a_secure_lane_needs_a_sure_clock_for_cards_of_some_time_alone(limits):
    rules = AccessRules(schedules={"day": hours(8, 18)}, ladder=Ladder(clock=Stance.SECURE))
    unsure = Conditions(clock_trusted=False)
    assert judged(card(**limits), rules=rules).granted
    assert_denied(judged(card(**limits), rules=rules, conditions=unsure), "clock", Reason.CLOCK_UNTRUSTED)
    assert judged(rules=rules, conditions=unsure).granted, "a card for all times"


@pytest.mark.parametrize(
    "asks_time",
    [
        {"schedule": hours(8, 18)},
        {"areas": {"garage": Area("garage", first_person=True)}},
        {"areas": {"garage": Area("garage", anti_passback=AntiPassback.TIMED)}},
    ],
)
def test_a_secure_lane_whose_own_rules_ask_for_the_time_needs_a_sure_clock(asks_time):
    rules = AccessRules(way=GARAGE, ladder=Ladder(clock=Stance.SECURE), **asks_time)
    assert judged(card(first_person=True), rules=rules).granted
    unsure = judged(card(first_person=True), rules=rules, conditions=Conditions(clock_trusted=False))
    assert_denied(unsure, "clock", Reason.CLOCK_UNTRUSTED)


def test_two_credentials():
    rules = AccessRules(two_credentials=True)
    first = judged(rules=rules)
    assert_denied(first, "second credential", Reason.SECOND_CREDENTIAL_AWAITED)
    assert_denied(judged(rules=rules, shown=Shown(first=first.card)), "second credential", first.reason)
    assert judged(card(8), rules=rules, shown=Shown(first=first.card)).granted


def test_duress_opens_and_is_noted_even_when_refused():
    assert judged(card(duress=True)).notices == (Reason.DURESS,)
    assert judged(card(duress=True)).granted
    refused = judged(card(duress=True, status=CardStatus.LOST))
    assert (refused.granted, refused.notices) == (False, (Reason.DURESS,))


def test_a_blocked_plate_stops_every_card():
    blocked = card(9, status=CardStatus.BLOCKED)
    assert_denied(judged(shown=Shown(plates=(blocked,))), "vehicle", Reason.BLOCKED_PLATE)
    by_plate = judged(blocked, credential=Credential(plate="AB123CD"))
    assert_denied(by_plate, "status", Reason.BLOCKED_PLATE)


STALE = Conditions(listed_at=NOW - 10 * HOUR)


def on_ladder(**stances):
    return AccessRules(ladder=Ladder(**stances), stale_after=5 * HOUR)


def test_a_stale_card_list():
    assert judged(rules=on_ladder(), conditions=STALE).granted
    secure = on_ladder(stale_cards=Stance.SECURE)
    assert_denied(judged(rules=secure, conditions=STALE), "card list", Reason.CARDS_STALE)
    assert judged(rules=secure, conditions=Conditions(listed_at=NOW)).granted
    open_ = on_ladder(stale_cards=Stance.OPEN)
    unknown = judged((), rules=open_, conditions=STALE)
    assert (unknown.granted, unknown.reason) == (True, Reason.FAIL_OPEN)
    assert not judged((), rules=open_, conditions=Conditions(listed_at=NOW)).granted
    assert not judged(card(status=CardStatus.LOST), rules=open_, conditions=STALE).granted
    blocked = Shown(plates=(card(9, status=CardStatus.BLOCKED),))
    assert not judged((), rules=open_, conditions=STALE, shown=blocked).granted
    assert_denied(judged((card(1), card(2)), rules=open_, conditions=STALE), "known", Reason.AMBIGUOUS_CREDENTIAL)


def test_an_untrusted_clock():
    untrusted, bound = Conditions(clock_trusted=False), card(valid_until=NOW)
    assert_denied(judged(bound, conditions=untrusted), "validity", Reason.EXPIRED)
    secure = on_ladder(clock=Stance.SECURE)
    assert_denied(judged(bound, rules=secure, conditions=untrusted), "clock", Reason.CLOCK_UNTRUSTED)
    assert judged(rules=secure, conditions=untrusted).granted, "nothing about this card depends on time"
    assert judged(bound, rules=on_ladder(clock=Stance.OPEN), conditions=untrusted).granted


def test_a_clock_that_lags_behind_what_is_known_does_not_make_cards_too_young():
    lagging = Conditions(clock_trusted=False, listed_at=NOW)
    young = card(valid_from=NOW - HOUR)
    assert judged(young, now=5, conditions=lagging).granted
    assert not judged(young, now=5, conditions=Conditions(clock_trusted=True, listed_at=NOW)).granted


def test_card_and_grant_end_by_the_least_that_it_can_be():
    stepped = Conditions(clock_trusted=False, at_least=NOW - HOUR)
    assert judged(card(valid_until=NOW - 1), conditions=stepped).granted
    assert_denied(judged(card(valid_until=NOW - HOUR), conditions=stepped), "validity", Reason.EXPIRED)
    listed = Conditions(clock_trusted=False, at_least=NOW - HOUR, listed_at=NOW)
    assert_denied(judged(card(valid_until=NOW - 1), conditions=listed), "validity", Reason.EXPIRED)


def test_a_store_that_takes_nothing():
    assert judged(conditions=Conditions(recording=False)).granted
    secure = on_ladder(records=Stance.SECURE)
    assert_denied(judged(rules=secure, conditions=Conditions(recording=False)), "records", Reason.NOTHING_RECORDED)


def test_a_card_list_that_cannot_be_read():
    assert (store_unavailable().granted, store_unavailable().reason) == (False, Reason.STORE_UNAVAILABLE)
    assert not store_unavailable(on_ladder(no_cards=Stance.USUAL)).granted
    assert store_unavailable(on_ladder(no_cards=Stance.OPEN)).reason is Reason.FAIL_OPEN


def test_a_misread_plate_only_where_the_lane_allows_it():
    near = Shown(near=(NearPlate("AB10OCD", card()),))
    read = Credential(plate="AB1O0CD")
    assert not judged((), credential=read, shown=near).granted
    decision = judged((), credential=read, shown=near, rules=AccessRules(near_plates=True))
    assert (decision.granted, decision.reason) == (True, Reason.NEAR_PLATE)
    late = (NearPlate("AB10OCD", card(zones=("8",))),)
    rules = AccessRules(near_plates=True, zones=frozenset({"7"}))
    assert_denied(judged((), credential=read, shown=Shown(near=late), rules=rules), "zone", Reason.WRONG_ZONE)


def test_a_denied_plate_names_the_listed_one_that_looks_the_same_also_where_no_misread_plate_counts():
    latin, cyrillic, misread = "A123BC77", "А123ВС77", "A123BC7Z"  # noqa: RUF001
    near = Shown(near=(NearPlate(cyrillic, card()),))
    decision = judged((), credential=Credential(plate=latin), shown=near)
    assert (decision.granted, decision.reason, decision.card) == (False, Reason.UNKNOWN_CREDENTIAL, None)
    assert decision.trace[-1].seen == (
        f"{latin}, which looks like plate {cyrillic}, listed in letters of another alphabet"
    )
    assert judged((), credential=Credential(plate=misread), shown=near).trace[-1].seen == misread


cards = st.builds(
    Card,
    card_id=st.integers(1, 3),
    number=st.just("7"),
    status=st.sampled_from([CardStatus.ACTIVE] * 6 + list(CardStatus)),
    valid_from=st.sampled_from([None, None, NOW - 1, NOW + 1]),
    valid_until=st.sampled_from([None, None, NOW - 1, NOW + 1]),
    zones=st.sampled_from([(), ("a",), ("b",)]),
    schedules=st.sampled_from([(), ("day",), ("night",), ("none",)]),
    first_person=st.booleans(),
    duress=st.booleans(),
)
modes = st.sampled_from(list(AntiPassback))
areas = st.builds(
    Area, st.just("garage"), st.sampled_from([None, 1, 5]), modes, st.just(10.0), st.sampled_from([False, False, True])
)
stances = st.sampled_from(list(Stance))
all_rules = st.builds(
    AccessRules,
    lane_id=st.just("lane"),
    zones=st.sampled_from([frozenset(), frozenset("a")]),
    way=st.sampled_from([Way(), GARAGE, GARAGE.back]),
    areas=areas.map(lambda area: {"garage": area}),
    schedules=st.sampled_from([{}, {"day": hours(8, 18), "night": hours(22, 6)}]),
    schedule=st.sampled_from([None, None, hours(8, 18), hours(13, 18)]),
    two_credentials=st.booleans(),
    ladder=st.builds(Ladder, stances, stances, stances, stances),
    stale_after=st.sampled_from([None, HOUR]),
)


def _presence(count, moves):
    presence = Presence(counts={"garage": count})
    for way, at, holder in moves:
        presence.move(Movement(way, at, f"card:{holder}"))
    return presence


presences = st.builds(
    _presence,
    st.integers(0, 3),
    st.lists(st.tuples(st.sampled_from([GARAGE, GARAGE.back]), st.integers(NOW - HOUR, NOW), st.integers(1, 3))),
)


@settings(max_examples=600, deadline=None)
@given(
    found=st.lists(cards, max_size=2),
    rules=all_rules,
    presence=presences,
    conditions=st.builds(
        Conditions, st.booleans(), st.booleans(), st.sampled_from([None, NOW, NOW - 2 * HOUR]), st.just(None)
    )
    | st.builds(Conditions, st.just(False), st.booleans(), st.none(), st.just(NOW - HOUR)),
    first=st.none() | cards,
)
def test_nothing_is_granted_against_a_hard_rule_and_a_refusal_names_its_rule(found, rules, presence, conditions, first):
    def look():
        return decide(
            READING, found, now=NOW, rules=rules, presence=presence, conditions=conditions, shown=Shown(first)
        )

    decision = look()
    assert decision == look(), "a decision is a function"
    assert failed(decision) == ([] if decision.granted else [decision.trace[-1].rule])
    assert not decision.granted or len({card.card_id for card in found}) < 2
    if not decision.granted or not found:
        fails_open = rules.ladder.stale_cards is Stance.OPEN and conditions.listed_at == NOW - 2 * HOUR
        assert not decision.granted or (fails_open and rules.stale_after is not None)
        return
    (seven,) = found[:1]
    timeless = not conditions.clock_trusted and rules.ladder.clock is Stance.OPEN
    area, entering = rules.areas["garage"], rules.way.enters == "garage"
    assert seven.status is CardStatus.ACTIVE
    assert timeless or seven.valid_from is None or seven.valid_from <= NOW
    assert timeless or seven.valid_until is None or seven.valid_until > (conditions.at_least or NOW)
    assert not rules.zones or not seven.zones or seven.zones == ("a",)
    assert not rules.schedules or not seven.schedules or seven.schedules[0] != "none"
    assert timeless or not rules.schedules or not seven.schedules or seven.schedules == ("day",)
    assert timeless or rules.schedule is None or rules.schedule.name == "8-18"
    assert not entering or area.limit is None or presence.count("garage") < area.limit
    assert not rules.two_credentials or (first is not None and first.card_id != seven.card_id)
    last = presence.whereabouts(f"card:{seven.card_id}")
    if area.anti_passback is AntiPassback.HARD and rules.way and last is not None:
        assert (last.area_id == "garage") != entering
    assert conditions.recording or rules.ladder.records is not Stance.SECURE


def test_a_clock_that_shows_1970_is_not_before_the_earliest_possible_time():
    card = Card(7, "0007", valid_from=NOW - HOUR, valid_until=NOW + HOUR, aliases=("text:0007",))
    never_set = Conditions(clock_trusted=False, at_least=NOW)
    assert decide(Credential(text="0007"), (card,), now=100, conditions=never_set).granted
    ended = replace(card, valid_until=NOW)
    assert decide(Credential(text="0007"), (ended,), now=100, conditions=never_set).reason is Reason.EXPIRED
