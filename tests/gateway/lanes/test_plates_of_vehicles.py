"""Plates and their vehicles: votes belong to one occupancy of the arming loop, and ignored ones are reported."""

from __future__ import annotations

import pytest

from drivers.contract import PointState
from gateway.domain.credentials import Credential
from gateway.domain.events import EventKind as E
from gateway.domain.passages import PassageOutcome as P
from gateway.lanes.machine import messages as m

ON, OFF = PointState.ON, PointState.OFF


def asked(lane):
    return [wish.credential.plate for wish in lane.asked]


def passes(lane, plate, **what):
    """A vehicle that is let in by its plate, and what stands behind it then."""
    lane.arming(ON)
    lane.plate(plate, 0.97, **what)
    lane.answer(granted=True)
    lane.open_gate()
    lane.drive_through()
    lane.close_gate()


def ignored(lane):
    return [text for text, kind in zip(lane.texts, lane.events, strict=True) if kind is E.PLATE_IGNORED]


@pytest.mark.parametrize("status", ["good", "blocked"])
def test_like_plate_that_is_exactly_another_cards_is_another_vehicle(lane, status):
    passes(lane, "FLT1041", card=41)
    lane.arming(ON)
    lane.plate("FLT1042", 0.97, card=42)
    assert asked(lane) == ["FLT1041", "FLT1042"]
    lane.answer(granted=status == "good")
    assert lane.events[-1] is (E.ACCESS_GRANTED if status == "good" else E.ACCESS_DENIED)
    assert ignored(lane) == []


def test_misread_plate_of_who_has_just_passed_opens_for_nobody_and_is_told_once(lane):
    passes(lane, "FLT1041", card=41)
    lane.arming(ON)
    for _ in range(4):
        lane.plate("FLT1O41", 0.97)
    assert asked(lane) == ["FLT1041"]
    (told,) = ignored(lane)
    assert told == "plate FLT1O41 does not count: it may be the plate of the vehicle before, FLT1041, misread"
    lane.wait(5)
    lane.plate("FLT1O41", 0.97)
    assert asked(lane) == ["FLT1041", "FLT1O41"], "whoever still stands there has a plate of its own"


def test_plate_of_who_has_just_passed_opens_for_nobody_and_is_told(lane):
    passes(lane, "FLT1041", card=41)
    lane.arming(ON)
    lane.wait(8)
    lane.plate("FLT1041", 0.97, card=41)
    assert asked(lane) == ["FLT1041"]
    assert ignored(lane) == ["plate FLT1041 does not count: it is the plate of the vehicle before"]
    lane.wait(8)
    lane.plate("FLT1041", 0.97, card=41)
    assert asked(lane) == ["FLT1041", "FLT1041"]


def test_plate_of_who_has_just_passed_counts_sooner_for_a_camera_that_names_another_vehicle(lane):
    passes(lane, "FLT1041", card=41, vehicle="7")
    lane.arming(ON)
    lane.plate("FLT1041", 0.97, vehicle="7", camera=302)
    lane.wait(6)
    lane.plate("FLT1041", 0.97, card=41, camera=302)
    lane.plate("FLT1041", 0.97, card=41, vehicle="7")
    assert asked(lane) == ["FLT1041"], "nothing says that this is another vehicle"
    lane.plate("FLT1041", 0.97, card=41, vehicle="7", camera=302)
    assert asked(lane) == ["FLT1041", "FLT1041"]


@pytest.mark.parametrize("vehicle", ["78", "77", ""])
def test_denied_vehicle_is_read_right_at_last(lane, vehicle):
    """Cameras read a standing vehicle anew, under another id."""
    lane.arming(ON)
    lane.plate("A8123CD", 0.97, vehicle="77")
    lane.answer(granted=False)
    lane.wait(2)
    lane.plate("AB123CD", 0.97, vehicle=vehicle, card=41)
    assert asked(lane) == ["A8123CD", "AB123CD"]
    lane.answer(granted=True)
    assert lane.events[-1] is E.ACCESS_GRANTED
    assert ignored(lane) == []


@pytest.mark.parametrize(
    ("plate", "confidence", "first", "second"),
    [
        ("AB123CD", 0.81, None, 41),  # less sure
        ("AB124DC", 0.99, None, 41),  # more than two letters
        ("AB123CD", 0.99, 40, 41),  # the denied plate is another card's, perhaps a blocked one
    ],
)
def test_no_other_reading_counts_for_a_denied_vehicle(lane, plate, confidence, first, second):
    lane.arming(ON)
    lane.plate("A8123CD", 0.97, vehicle="77", card=first)
    lane.answer(granted=False)
    lane.wait(2)
    lane.plate(plate, confidence, vehicle="78", card=second)
    lane.wait(2)
    assert asked(lane) == ["A8123CD"]
    assert ignored(lane) == [f"plate {plate} does not count: the vehicle was already read as A8123CD"]


def test_vehicle_behind_is_not_taken_for_the_one_that_is_let_in(lane):
    lane.arming(ON)
    lane.plate("A8123CD", 0.97, vehicle="77")
    lane.plate("AB123CD", 0.97, vehicle="78", card=41)
    lane.answer(granted=True)
    lane.plate("AB123CD", 0.97, vehicle="78", card=41)
    assert asked(lane) == ["A8123CD"]


def test_other_card_of_the_same_plate_is_no_other_vehicle(lane):
    passes(lane, "FLT1041", card=41)
    lane.arming(ON)
    lane.plate("FLT1041", 0.97, card=43)
    assert asked(lane) == ["FLT1041"]


def test_unlisted_vehicle_that_passed_leaves_its_like_to_be_read_again(lane):
    """Nobody knows which of two like plates was misread: the listed one must not open for the wrong car."""
    passes(lane, "FLT1041")
    lane.arming(ON)
    lane.plate("FLT1042", 0.97, card=42)
    assert asked(lane) == ["FLT1041"]
    assert len(ignored(lane)) == 1


def test_vehicle_that_backs_out_and_returns_is_read(lane):
    lane.arming(ON)
    lane.plate("ZZZ9999", 0.97)
    lane.answer(granted=False)
    lane.arming(OFF)
    assert lane.passages[-1].outcome is P.BACKED_OUT
    lane.wait(3)
    lane.arming(ON)
    lane.plate("ZZZ9999", 0.97)
    assert asked(lane) == ["ZZZ9999", "ZZZ9999"]


def test_late_reading_of_who_backed_out_is_not_the_next_ones(lane):
    lane.arming(ON)
    lane.plate("ZZZ9999", 0.97)
    lane.answer(granted=False)
    lane.arming(OFF)
    lane.wait(1)
    lane.arming(ON)
    lane.plate("ZZZ9999", 0.97)
    assert asked(lane) == ["ZZZ9999"]
    assert len(ignored(lane)) == 1


def under_way(lane):
    lane.arming(ON)
    lane.plate("AAA111", 0.97, card=1)
    lane.answer(granted=True)
    lane.open_gate()
    lane.closing(ON)
    lane.arming(OFF)
    lane.wait(0.5)


def test_plate_of_the_vehicle_behind_counts_for_it_once_the_first_has_passed(lane):
    under_way(lane)
    lane.arming(ON)
    lane.plate("BBB222", 0.97, card=2)
    assert asked(lane) == ["AAA111"]
    lane.wait(0.5)
    lane.closing(OFF)
    assert asked(lane) == ["AAA111", "BBB222"]


@pytest.mark.parametrize("first_is_gone", [True, False])
def test_plate_read_just_before_the_vehicle_behind_reaches_the_loop_counts_for_it(lane, first_is_gone):
    under_way(lane)
    lane.plate("BBB222", 0.97, card=2)
    lane.wait(0.5)
    if first_is_gone:
        lane.closing(OFF)
        lane.wait(0.3)
    lane.arming(ON)
    lane.wait(0.5)
    lane.closing(OFF)
    lane.wait(0.5)
    assert asked(lane) == ["AAA111", "BBB222"]
    assert ignored(lane) == []


@pytest.mark.parametrize("first_is_gone", [True, False])
def test_plate_read_long_before_the_vehicle_behind_reaches_the_loop_does_not(lane, first_is_gone):
    under_way(lane)
    lane.plate("BBB222", 0.97, card=2)
    if first_is_gone:
        lane.closing(OFF)
    lane.wait(3.2)
    lane.arming(ON)
    lane.wait(1)
    lane.closing(OFF)
    lane.wait(1)
    assert asked(lane) == ["AAA111"]


def test_plate_of_the_vehicle_behind_is_gone_with_it(lane):
    under_way(lane)
    lane.arming(ON)
    lane.plate("BBB222", 0.97, card=2)
    lane.arming(OFF)
    lane.wait(0.5)
    lane.arming(ON)
    lane.closing(OFF)
    lane.wait(3)
    assert asked(lane) == ["AAA111"]


def test_plate_that_was_read_beside_the_first_vehicles_is_not_taken_for_the_one_behind(lane):
    lane.arming(ON)
    lane.plate("XXXXXX", 0.6)
    lane.plate("BBB222", 0.97, card=2)
    assert ignored(lane) == ["plate BBB222 does not count: the vehicle was already read as XXXXXX"]
    lane.card()
    lane.open_gate()
    lane.next_arrives()
    lane.plate("BBB222", 0.97, card=2)
    lane.closing(OFF)
    lane.wait(3)
    assert asked(lane).count("BBB222") == 0, "it may be of the vehicle that passed"


def test_plate_nobody_knows_whose_while_one_passes_opens_for_nobody(lane):
    lane.let_in()
    lane.next_arrives()
    lane.plate("BBB222", 0.97, card=2)
    lane.closing(OFF)
    lane.wait(3)
    assert asked(lane) == [""]
    assert ignored(lane) == ["plate BBB222 does not count: a vehicle that was let in has not passed yet"]


@pytest.mark.parametrize(
    ("confidence", "direction", "why"),
    [
        (0.3, "", "the camera is 0.30 sure, and the lane needs 0.5"),
        (0.99, "leaving", "the camera says that the vehicle leaves"),
    ],
)
def test_what_does_not_count_is_told_with_why(lane, confidence, direction, why):
    lane.arming(ON)
    lane.plate("ABC123", confidence, direction=direction)
    assert ignored(lane) == [f"plate ABC123 does not count: {why}"]


def test_plate_without_a_vehicle_is_told_once_it_is_given_up(lane):
    lane.plate("ABC123", 0.97)
    lane.wait(lane.rules.lane.plate_early_seconds - 0.1)
    assert ignored(lane) == []
    lane.wait(0.2)
    assert ignored(lane) == ["plate ABC123 does not count: without a vehicle on the arming loop"]


def test_what_is_still_read_of_a_vehicle_that_has_passed_is_not_worth_a_word(lane):
    passes(lane, "FLT1041", card=41)
    lane.plate("FLT1041", 0.97, card=41)
    lane.wait(10)
    assert ignored(lane) == []


def test_card_read_while_another_is_decided_on_is_told(lane):
    lane.arming(ON)
    lane.do(m.CardRead(102, Credential(text="0007"), lane.at))
    lane.do(m.CardRead(102, Credential(text="0007"), lane.at))
    assert E.CARD_IGNORED not in lane.events, "readers repeat themselves"
    lane.do(m.CardRead(102, Credential(text="0008"), lane.at))
    assert lane.texts[-1] == "card 0008 was read while another one was being decided on"
