"""Silence and contradiction: cards without vehicles, vehicles without cards, swapped readers, inputs all on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lane_rules import lane_rules

from drivers.contract import GatePosition, PointState
from gateway.domain.problems import ProblemKind as K
from gateway.lanes.lanes import CardsElsewhere, with_swapped_readers
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.machine.troubles import contradictions, lasting, why_not_changed
from gateway.lanes.snapshots import LaneTrouble
from gateway.site import PointRef
from tests.gateway.problems.test_found import ENTRY, EXIT

ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN
WIRED = {
    "arming": PointRef(device=101, point="arming"),
    "closing": PointRef(device=101, point="closing"),
    "safety": (PointRef(device=101, point="photocell"),),
}


def kinds(lane) -> list[K]:
    return [one.kind for one in contradictions(lane.rules, lane.state, lane.at)]


def pass_by(lane, seconds: float) -> None:
    lane.arming(ON)
    lane.wait(seconds)
    lane.arming(OFF)
    lane.wait(1)


@pytest.fixture
def wired(make_script):
    script = make_script(lane_rules(**WIRED))
    script.ready()
    return script


def turn(lane, state: PointState) -> None:
    lane.arming(state)
    lane.closing(state)
    lane.safety(state)


def test_three_drivers_who_no_loop_sees_are_no_chance_and_a_vehicle_ends_it(lane):
    for card in ("0007", "0007", "0007", "9999"):  # one driver tries again and again
        lane.card(card)
        lane.wait(2)
    assert kinds(lane) == []
    lane.card("0007")
    lane.wait(2)
    assert kinds(lane) == [K.CARDS_WITHOUT_VEHICLE]
    lane.arming(ON)
    assert kinds(lane) == []


def test_cards_of_drivers_who_come_at_once_are_no_contradiction(lane):
    for card in ("0007", "9999", "0007", "9999"):
        lane.card(card)
        lane.wait(0.5)
        pass_by(lane, 2)
    assert kinds(lane) == []


def test_three_vehicles_that_wait_and_leave_unread_are_no_chance_and_a_card_ends_it(lane):
    for _ in range(2):
        pass_by(lane, 30)
    assert kinds(lane) == []
    pass_by(lane, 30)
    assert kinds(lane) == [K.VEHICLES_WITHOUT_CARD]
    lane.card("9999")
    assert kinds(lane) == []


@pytest.mark.parametrize("seconds", [1, 9])
def test_who_turns_round_does_not_wait(lane, seconds):
    for _ in range(5):
        pass_by(lane, seconds)
    assert kinds(lane) == []


def test_vehicles_before_a_gate_that_is_held_open_need_no_card(lane):
    lane.order(OrderKind.HOLD_OPEN)
    lane.open_gate()
    for _ in range(5):
        pass_by(lane, 30)
    assert kinds(lane) == []


def test_inputs_that_were_never_off_are_told_at_once_and_do_not_keep_the_lane_from_being_mended(make_script):
    lane = make_script(lane_rules(**WIRED))
    lane.do(m.GateRegained())
    turn(lane, ON)
    lane.gate(GatePosition.OPEN)
    lane.wait(2)
    assert kinds(lane) == []
    assert why_not_changed(lane.rules, lane.state, lane.at) == "a vehicle is in it"
    lane.wait(2)
    assert kinds(lane) == [K.INPUTS_ALL_ON]
    assert why_not_changed(lane.rules, lane.state, lane.at) == ""
    lane.wait(400)
    assert K.INPUT_STUCK not in [one.kind for one in lasting(lane.state)], "one cause, told once"


@pytest.mark.parametrize("position", [GatePosition.CLOSED, GatePosition.UNKNOWN])
def test_inputs_that_all_come_on_before_a_shut_gate_have_lost_their_supply(wired, position):
    turn(wired, ON)
    wired.gate(position)
    wired.wait(9)
    assert kinds(wired) == []
    wired.wait(2)
    assert kinds(wired) == [K.INPUTS_ALL_ON]
    wired.safety(OFF)
    assert kinds(wired) == []


def test_a_long_vehicle_in_an_open_gate_is_no_contradiction(wired):
    wired.arming(ON)
    wired.card()
    wired.open_gate()
    wired.closing(ON)
    wired.safety(ON)
    wired.wait(200)
    assert kinds(wired) == []


def test_an_input_that_is_not_known_contradicts_nothing(make_script):
    lane = make_script(lane_rules(**WIRED))
    turn(lane, ON)
    lane.safety(UNKNOWN)
    lane.wait(20)
    assert list(contradictions(lane.rules, lane.state, lane.at)) == []
    assert list(contradictions(lane.rules, LaneState(), lane.at)) == []


def test_cards_that_come_here_while_a_vehicle_waits_there_show_swapped_readers():
    known = CardsElsewhere().after("entry", has_vehicle=False, waiting=["exit"])
    assert list(known.found()) == []
    known = known.after("entry", has_vehicle=False, waiting=["exit", "south"])
    assert list(known.found()) == [("entry", "exit", 2)]
    assert list(known.after("entry", has_vehicle=True, waiting=[]).found()) == []
    assert list(known.after("entry", has_vehicle=False, waiting=[]).found()) == []


@pytest.mark.parametrize("waiting", [["exit", "south"], []])
def test_a_card_that_fits_several_vehicles_or_none_shows_nothing(waiting):
    known = CardsElsewhere()
    for _ in range(5):
        known = known.after("entry", has_vehicle=False, waiting=waiting)
    assert list(known.found()) == []


def test_swapped_readers_are_told_in_place_of_what_follows_from_them():
    cards = LaneTrouble(K.CARDS_WITHOUT_VEHICLE, "3 cards")
    vehicles = LaneTrouble(K.VEHICLES_WITHOUT_CARD, "3 vehicles")
    known = CardsElsewhere({"entry": ("exit", 3)})
    lanes = (replace(ENTRY, troubles=(cards,)), replace(EXIT, troubles=(vehicles,)))
    entry, exit_ = with_swapped_readers(lanes, known)
    (trouble,) = entry.troubles
    assert (trouble.kind, trouble.subject) == (K.READERS_SWAPPED, "exit")
    assert str(trouble.text) == "3 cards in a row came while no vehicle was here and one waited at Exit"
    assert exit_.troubles == ()
