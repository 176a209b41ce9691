"""A card that stays at its reader: it is reported again as held, and recorded once."""

from __future__ import annotations

from lane_rules import lane_rules

from drivers.contract import PointState
from gateway.domain.events import EventKind as E
from gateway.lanes.machine import messages as m
from gateway.lanes.snapshots import Phase

ON, OFF = PointState.ON, PointState.OFF


def stay(lane, text, *, reports=5):
    lane.card(text)
    for _ in range(reports):
        lane.wait(3)
        lane.card(text, held=True)


def shown(lane):
    return [command for command in lane.out if isinstance(command, m.Show)]


def test_a_denied_card_that_is_held_is_one_event(lane):
    lane.arming(ON)
    stay(lane, "9999")
    assert lane.events.count(E.ACCESS_DENIED) == 1
    assert len(shown(lane)) == 1
    assert lane.state.visits.phase is Phase.ARMED


def test_a_card_that_is_presented_anew_is_another_event(lane):
    lane.arming(ON)
    stay(lane, "9999")
    stay(lane, "9999")
    assert lane.events.count(E.ACCESS_DENIED) == 2


def test_a_held_card_is_denied_again_to_the_next_vehicle(lane):
    lane.arming(ON)
    stay(lane, "9999")
    lane.arming(OFF)
    lane.clear()
    lane.arming(ON)
    lane.wait(1)
    lane.card("9999", held=True)
    assert lane.events.count(E.ACCESS_DENIED) == 2


def test_a_held_card_opens_as_soon_as_it_counts(lane):
    lane.arming(ON)
    stay(lane, "9999")
    lane.do(m.CardRead(102, lane.asked[-1].credential, lane.at, held=True))
    assert lane.state.visits.phase is Phase.DECIDING, "what forbade it may have changed"


def test_a_held_card_opens_once_its_vehicle_is_seen(lane):
    stay(lane, "0007")
    assert lane.events.count(E.CARD_IGNORED) == 1
    lane.arming(ON)
    lane.answer(granted=True)
    assert lane.events[-1] is E.ACCESS_GRANTED


def test_a_card_that_is_held_while_the_gate_is_open_for_it_is_no_event(lane):
    lane.let_in()
    told = len(lane.events)
    stay(lane, "0007")
    assert lane.events[told:].count(E.CARD_IGNORED) <= 1


def test_a_held_card_does_not_begin_its_pin_anew(make_script):
    lane = make_script(lane_rules(pin=True))
    lane.ready()
    lane.arming(ON)
    lane.card()
    lane.keys("12")
    lane.card(held=True)
    assert lane.state.readings.awaited_pin.keys == "12"
