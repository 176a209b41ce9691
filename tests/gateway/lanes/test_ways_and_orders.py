"""Two-way lanes, what an opening is worth, standing orders, and what readers read."""

from __future__ import annotations

import pytest
from lane_rules import POINT, changed

from drivers.contract import Feedback, GatePosition, PointState
from gateway.domain.access import AccessRules, decide
from gateway.domain.commands import CommandState, GateAction
from gateway.domain.credentials import Card, Credential
from gateway.domain.events import EventKind as E
from gateway.domain.passages import PassageOutcome as P
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LEAVING_SECONDS
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.snapshots import Phase

ON, OFF = PointState.ON, PointState.OFF
CARD_READ = Credential(text="0007")
OPEN, CLOSE, STOP = GateAction.OPEN, GateAction.CLOSE, GateAction.STOP


@pytest.fixture
def make_lane(rules, make_script):
    def make(**changes):
        lane = make_script(changed(rules, **changes))
        lane.ready()
        return lane

    return make


@pytest.fixture
def two_way(make_lane):
    return make_lane(direction="two-way", far=POINT, far_readers=frozenset({103}))


def ends(lane):
    return [(passage.direction, passage.outcome) for passage in lane.passages]


# Two-way lanes


def test_entry_through_a_two_way_lane_does_not_arm_the_other_side(two_way):
    lane = two_way
    lane.let_in()
    lane.closing(ON)
    lane.arming(OFF)
    lane.wait(0.5)
    lane.far(ON)
    lane.closing(OFF)
    assert ends(lane) == [("entry", P.PASSED)]
    assert lane.state.visits.phase is Phase.IDLE
    lane.wait(1)
    lane.far(OFF)
    lane.wait(1)
    lane.far(ON)
    assert lane.state.visits.phase is Phase.ARMED, "a vehicle that wants out"


def test_far_loop_reached_only_after_the_passage_still_belongs_to_the_leaver(two_way):
    lane = two_way
    lane.far(ON)
    lane.card(reader=103)
    lane.open_gate()
    lane.closing(ON)
    lane.far(OFF)
    lane.closing(OFF)
    assert ends(lane) == [("exit", P.PASSED)]
    lane.wait(1)
    lane.arming(ON)
    assert lane.state.visits.phase is Phase.IDLE
    lane.arming(OFF)
    assert lane.events.count(E.VEHICLE_ARRIVED) == 1
    lane.arming(ON)
    assert lane.state.visits.phase is Phase.ARMED


def test_vehicle_that_waited_on_the_other_side_is_next(two_way):
    lane = two_way
    lane.let_in()
    lane.far(ON)
    lane.wait(1)
    lane.closing(ON)
    lane.arming(OFF)
    lane.closing(OFF)
    assert ends(lane) == [("entry", P.PASSED)]
    assert lane.state.visits.phase is Phase.ARMED
    lane.card(reader=103)
    assert lane.actions()[-1] is OPEN


def test_loop_that_stays_on_after_the_leaver_is_a_vehicle(two_way):
    lane = two_way
    lane.let_in()
    lane.closing(ON)
    lane.arming(OFF)
    lane.far(ON)
    lane.closing(OFF)
    lane.wait(LEAVING_SECONDS + 0.1)
    assert lane.state.visits.phase is Phase.ARMED


def test_card_at_the_reader_of_the_empty_side_does_not_open(two_way):
    two_way.arming(ON)
    two_way.card(reader=103)
    two_way.wait(1)
    assert two_way.sent == []
    assert two_way.events[-1] is E.CARD_IGNORED


def test_the_vehicle_at_the_reader_asks_when_both_sides_wait(two_way):
    lane = two_way
    lane.arming(ON)
    lane.wait(1)
    lane.far(ON)
    lane.card(reader=103)
    lane.open_gate()
    lane.closing(ON)
    lane.far(OFF)
    lane.closing(OFF)
    assert ends(lane) == [("exit", P.PASSED)]


def test_back_out_of_a_two_way_lane_though_another_waits_opposite(two_way):
    lane = two_way
    lane.let_in()
    lane.far(ON)
    lane.arming(OFF)
    lane.wait(lane.rules.lane.back_out_seconds + 0.1)
    assert ends(lane) == [("entry", P.BACKED_OUT)]
    assert lane.state.visits.phase is Phase.ARMED


# What an opening is worth


def test_counted_openings_are_each_owed_a_passage_before_the_gate_closes(make_lane):
    lane = make_lane(vend="counted")
    for _ in range(3):
        lane.wish(OPEN)
    lane.open_gate()
    lane.wait(300)
    assert CLOSE not in lane.actions(), "no timer closes it meanwhile"
    for left in (2, 1, 0):
        lane.arming(ON)
        lane.drive_through()
        assert (CLOSE in lane.actions()) is (left == 0)
    assert ends(lane) == [("entry", P.PASSED)] * 3


def test_counted_lane_decides_on_the_vehicle_behind_while_the_first_passes(make_lane):
    lane = make_lane(vend="counted")
    lane.let_in()
    lane.next_arrives()
    lane.card()
    assert lane.events.count(E.ACCESS_GRANTED) == 2
    assert lane.actions() == [OPEN], "it is open"
    lane.arming(OFF)
    lane.closing(OFF)
    assert ends(lane) == [("entry", P.PASSED)] * 2, "bumper to bumper, each with its own decision"
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]


@pytest.fixture
def one_behind(make_lane):
    """A counted lane: the decision on the vehicle behind is awaited while the first passes."""
    lane = make_lane(vend="counted")
    lane.let_in()
    lane.next_arrives()
    lane.do(m.CardRead(102, CARD_READ, lane.at))
    assert len(lane.asked) == 2
    return lane


def test_grant_that_comes_once_the_first_vehicle_has_left_opens_for_the_one_behind(one_behind):
    lane = one_behind
    lane.closing(OFF)
    assert ends(lane) == [("entry", P.PASSED)]
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.answer(granted=True)
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    lane.open_gate()
    lane.drive_through()
    assert ends(lane) == [("entry", P.PASSED)] * 2


def test_denial_that_comes_once_the_first_vehicle_has_left_opens_nothing(one_behind):
    lane = one_behind
    lane.closing(OFF)
    lane.answer(granted=False)
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]
    assert lane.events[-1] is E.ACCESS_DENIED


@pytest.mark.parametrize("first_has_left", [False, True])
def test_grant_for_the_vehicle_behind_that_comes_after_a_lock_down_gives_no_right(one_behind, first_has_left):
    lane = one_behind
    lane.order(OrderKind.LOCK_DOWN)
    if first_has_left:
        lane.closing(OFF)
    lane.answer(granted=True)
    assert lane.events.count(E.ACCESS_DENIED) == 1
    lane.closing(OFF)
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]
    assert ends(lane) == [("entry", P.PASSED)]


def test_lock_down_asks_for_no_decision_on_the_vehicle_behind(make_lane):
    lane = make_lane(vend="counted")
    lane.let_in()
    lane.order(OrderKind.LOCK_DOWN)
    lane.next_arrives()
    lane.card()
    assert len(lane.asked) == 1
    assert lane.events.count(E.ACCESS_GRANTED) == 1


def test_counted_back_out_takes_only_its_own_right_back(make_lane):
    lane = make_lane(vend="counted")
    lane.arming(ON)
    lane.card()
    lane.wish(OPEN)
    lane.open_gate()
    lane.arming(OFF)
    lane.wait(10)
    assert ends(lane) == [("entry", P.BACKED_OUT)]
    assert CLOSE not in lane.actions()


def test_supervised_gate_stays_open_until_a_person_closes_it(make_lane):
    lane = make_lane(vend="supervised")
    lane.let_in()
    lane.drive_through()
    lane.wait(200)
    assert lane.actions() == [OPEN]
    lane.wish(CLOSE)
    assert lane.actions() == [OPEN, CLOSE]


# Standing orders


def test_hold_open_opens_keeps_open_and_closes_when_it_ends(lane):
    lane.order(OrderKind.HOLD_OPEN)
    assert lane.actions() == [OPEN]
    assert lane.texts == ["the lane is held open by guard: market day"]
    lane.open_gate()
    lane.wait(1000)
    assert lane.actions() == [OPEN]
    assert E.HELD_OPEN not in lane.events
    close = lane.wish(CLOSE)
    assert lane.reached[close.command_id] is CommandState.REFUSED
    assert "held open" in lane.texts[-1]
    lane.order(None)
    assert lane.actions() == [OPEN], "whoever came meanwhile may be about to be seen"
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]
    assert E.ORDER_ENDED in lane.events
    assert E.HELD_OPEN not in lane.events


def test_hold_open_lets_vehicles_pass_and_cards_cost_no_second_open(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.open_gate()
    lane.arming(ON)
    lane.drive_through()
    lane.arming(ON)
    lane.card()
    lane.drive_through()
    assert [passage.outcome for passage in lane.passages] == [P.PASSED, P.PASSED]
    assert [passage.reason for passage in lane.passages] == ["hold_open", "valid_card"]
    assert lane.actions() == [OPEN]


def test_gate_that_cannot_be_held_open_is_told_and_left_alone(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.wait(200)
    assert lane.actions() == [OPEN] * 3
    assert lane.events.count(E.HOLD_FAILED) == 1
    assert "market day" in lane.texts[lane.events.index(E.HOLD_FAILED)]


@pytest.mark.parametrize(("seconds", "welcome"), [(0.5, True), (1.2, True), (2.5, False)])
@pytest.mark.parametrize("is_long", [True, False])
def test_who_stood_there_while_the_gate_was_held_open_may_start_a_moment_after_its_end(lane, seconds, welcome, is_long):
    lane.order(OrderKind.HOLD_OPEN)
    lane.open_gate()
    lane.arming(ON)
    lane.wait(1)
    lane.order(None)
    lane.wait(seconds)
    for point in (lane.closing, lane.arming) if is_long else (lane.arming, lane.closing):
        point(ON if point == lane.closing else OFF)
        lane.wait(0.2)
    lane.wait(1)
    lane.closing(OFF)
    assert (E.VEHICLE_PASSED in lane.events) is welcome
    assert (E.UNAUTHORISED_PASSAGE in lane.events) is not welcome


def test_stop_ends_the_tries_to_hold_open(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.wish(STOP)
    lane.acknowledge()
    lane.gate(GatePosition.STOPPED)
    lane.wait(100)
    assert lane.actions() == [OPEN, STOP]


def test_lock_down_denies_cards_and_opens_with_its_reason(lane):
    lane.order(OrderKind.LOCK_DOWN, "police")
    lane.arming(ON)
    lane.card()
    assert lane.sent == []
    assert lane.events[-1] is E.ACCESS_DENIED
    assert "locked down by guard: police" in lane.texts[-1]
    assert lane.shown == [(102, Feedback.DENIED)]
    command = lane.wish(OPEN)
    assert lane.reached[command.command_id] is CommandState.REFUSED
    assert lane.wish(STOP) in lane.sent
    lane.order(None)
    lane.card()
    assert lane.actions()[-1] is OPEN


def test_lock_down_denies_plates(lane):
    lane.order(OrderKind.LOCK_DOWN, "police")
    lane.arming(ON)
    lane.plate("ABC123", 0.99)
    lane.wait(5)
    assert (lane.sent, lane.asked) == ([], [])
    assert lane.events.count(E.ACCESS_DENIED) == 1
    assert any("locked down by guard: police" in text for text in lane.texts)


def test_lock_down_lets_who_has_the_right_of_way_go_on(lane):
    lane.let_in()
    lane.order(OrderKind.LOCK_DOWN)
    lane.drive_through()
    assert ends(lane) == [("entry", P.PASSED)]
    assert lane.actions() == [OPEN, CLOSE]


def test_lock_down_closes_an_open_gate_only_when_it_is_safe(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.open_gate()
    lane.closing(ON)
    lane.order(OrderKind.LOCK_DOWN)
    assert lane.actions() == [OPEN]
    lane.closing(OFF)
    lane.clear()
    assert lane.actions() == [OPEN, CLOSE]


def test_decision_that_comes_after_the_lock_down_does_not_open(lane):
    lane.arming(ON)
    lane.do(m.CardRead(102, Credential(text="0007"), lane.at))
    lane.order(OrderKind.LOCK_DOWN)
    lane.answer(granted=True)
    assert lane.sent == []
    assert lane.events[-1] is E.ACCESS_DENIED


# What readers read


def test_reader_shows_what_was_decided(lane):
    lane.arming(ON)
    lane.card("9999")
    lane.card()
    assert lane.shown == [(102, Feedback.DENIED), (102, Feedback.GRANTED)]


def test_best_plate_of_one_vehicle_is_decided_on_after_it_settled(lane):
    lane.arming(ON)
    lane.plate("ABC128", 0.7)
    lane.plate("ABC123", 0.9)
    lane.plate("ABC128", 0.75)
    assert lane.asked == []
    lane.wait(lane.rules.lane.plate_settle_seconds)
    assert [wish.credential.plate for wish in lane.asked] == ["ABC123"]
    lane.answer(granted=True)
    assert lane.actions() == [OPEN]


def test_sure_plate_is_taken_at_once(lane):
    lane.arming(ON)
    lane.plate("ABC123", 0.97)
    assert len(lane.asked) == 1


def test_plate_read_before_the_loop_counts_for_the_vehicle_that_follows_soon(lane):
    lane.plate("ABC123", 0.97)
    lane.wait(2)
    assert lane.asked == []
    lane.arming(ON)
    assert len(lane.asked) == 1


def test_plate_of_a_vehicle_that_did_not_come_counts_for_nobody(lane):
    lane.plate("ABC123", 0.97)
    lane.wait(lane.rules.lane.plate_early_seconds + 0.1)
    lane.arming(ON)
    lane.wait(5)
    assert lane.asked == []


def test_late_reading_of_the_vehicle_before_is_not_used_for_the_next(lane):
    lane.arming(ON)
    lane.plate("ABC123", 0.97)
    lane.answer(granted=True)
    lane.open_gate()
    lane.next_arrives()
    lane.plate("ABC123", 0.99)
    lane.closing(OFF)
    lane.plate("ABC128", 0.99)
    lane.wait(5)
    assert len(lane.asked) == 1
    lane.plate("XYZ777", 0.99)
    assert [wish.credential.plate for wish in lane.asked] == ["ABC123", "XYZ777"]


def test_plate_of_the_vehicle_behind_does_not_open_for_the_one_in_front(lane):
    lane.arming(ON)
    lane.plate("AAA111", 0.6, vehicle="17")
    lane.plate("BBB222", 0.99, vehicle="18")
    lane.wait(1)
    assert [wish.credential.plate for wish in lane.asked] == ["AAA111"]


def test_denied_plate_is_asked_once_and_a_better_reading_again(lane):
    lane.arming(ON)
    lane.plate("ABC128", 0.97)
    lane.answer(granted=False)
    lane.plate("ABC128", 0.98)
    lane.wait(2)
    assert len(lane.asked) == 1
    lane.plate("ABC123", 0.97)
    assert len(lane.asked) == 2


@pytest.mark.parametrize(("confidence", "direction"), [(0.3, ""), (0.99, "leaving")])
def test_plates_that_do_not_count(lane, confidence, direction):
    lane.arming(ON)
    lane.plate("ABC123", confidence, direction=direction)
    lane.wait(3)
    assert lane.asked == []


@pytest.mark.parametrize("typed", ["1234", "12*1234", "1234#", "1", "A1234"])
def test_card_waits_for_its_pin(make_lane, typed):
    lane = make_lane(pin=True)
    lane.arming(ON)
    lane.card()
    assert lane.asked == []
    lane.keys(typed)
    if len(typed) < 4:
        lane.keys("234")
    assert [wish.pin for wish in lane.asked] == ["1234"]
    lane.answer(granted=True)
    assert lane.actions() == [OPEN]
    assert "1234" not in " ".join([*lane.texts, repr(lane.out), repr(lane.state)]), "a PIN is shown nowhere"


def test_second_credential_is_awaited_and_its_absence_told(lane):
    lane.arming(ON)
    lane.do(m.CardRead(102, CARD_READ, lane.at))
    awaited = decide(CARD_READ, (Card(7, "0007"),), now=1, rules=AccessRules(two_credentials=True))
    lane.do(m.Decided(lane.asked[-1].number, awaited))
    assert lane.events[-1] is E.SECOND_AWAITED
    assert lane.shown[-1] == (102, Feedback.AWAITING)
    assert E.ACCESS_DENIED not in lane.events
    lane.wait(lane.rules.lane.second_seconds)
    assert lane.events[-1] is E.ACCESS_DENIED
    assert "no second card" in lane.texts[-1]
    assert lane.shown[-1] == (102, Feedback.DENIED)
    lane.wait(lane.rules.lane.second_seconds)
    assert lane.events.count(E.ACCESS_DENIED) == 1


def test_plates_of_the_vehicle_are_told_with_its_card(lane):
    lane.arming(ON)
    lane.plate("AB12", confidence=0.6)
    lane.do(m.CardRead(102, CARD_READ, lane.at))
    assert lane.asked[-1].plates == ("AB12",)


def test_pin_that_does_not_come_denies(make_lane):
    lane = make_lane(pin=True)
    lane.arming(ON)
    lane.card()
    lane.keys("12")
    lane.wait(lane.rules.lane.pin_seconds)
    assert lane.events[-1] is E.ACCESS_DENIED
    assert "no PIN within 10 s" in lane.texts[-1]
    lane.keys("34")
    assert lane.asked == []


def test_keys_without_a_card_mean_nothing(make_lane):
    lane = make_lane(pin=True)
    lane.arming(ON)
    lane.keys("1234")
    lane.card()
    assert lane.asked == []
