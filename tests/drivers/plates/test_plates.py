"""The writing of plates, and the readings that are news."""

import math

import pytest
from held_memory import held_bytes

from drivers.contract import ProtocolViolation
from drivers.plate_text import camera_plate, plain_plate
from drivers.plates.readings import PlateReading, Sightings, fraction


@pytest.mark.parametrize(
    ("said", "plate"),
    [
        ("ab 12-cde", "AB12CDE"),
        ("B·MW 1234", "BMW1234"),
        ("\uff21\uff22\uff11\uff12", "AB12"),
        ("京A12345", "京A12345"),
        ("unknown", ""),
        ("No Plate", ""),
        ("无车牌", ""),
        ("", ""),
        ("---", ""),
        (" ", ""),
        ("AB\u200b12\u200f", "AB12"),
        ("\u202aAB-12\u202c", "AB12"),
        ("AB\u00a0\u201312", "AB12"),
        ("\u0661\u0662\u0663 \u0627\u0628", "123\u0627\u0628"),
        ("\u06f4\u0967\u0e52", "412"),
        ("\u304a 12\u30fb34", "\u304a1234"),
        ("A\u0308B1", "\u00c4B1"),
    ],
)
def test_plate_is_written_one_way(said, plate):
    assert camera_plate(said) == plate
    if plate:
        assert plain_plate(said) == plate, "lists write it the same"


@pytest.mark.parametrize("said", ["A" * 17, "AB\ufffd1", "AB?1", "AB\x001", "A\u00b21"])
def test_text_that_is_no_plate_is_refused(said):
    with pytest.raises(ProtocolViolation):
        camera_plate(said)
    with pytest.raises(ProtocolViolation):
        camera_plate(said, usual="gb18030")


@pytest.mark.parametrize(
    ("said", "of", "share"),
    [
        ("0.868", 1.0, 0.868),
        ("92", 100.0, 0.92),
        (None, 1.0, 1.0),
        ("", 100.0, 1.0),
        ("good", 1.0, 0.0),
        ("nan", 1.0, 0.0),
    ],
)
def test_confidence_is_a_share(said, of, share):
    assert fraction(said, of=of) == pytest.approx(share)


def test_confidence_stays_within_bounds():
    assert fraction(400, of=255.0) == 1.0
    assert fraction(-3) == 0.0
    assert fraction(math.inf) == 1.0


def seen(plate="AB12", *, vehicle="7", occurrence="", left=False):
    return PlateReading(plate=plate, vehicle=vehicle, occurrence=occurrence, left=left)


def test_same_message_counts_once_and_readings_of_one_vehicle_each():
    sightings = Sightings()
    assert sightings.fresh([seen(occurrence="1"), seen(occurrence="1"), seen(occurrence="2")], at=0.0) == (
        seen(occurrence="1"),
        seen(occurrence="2"),
    )
    assert sightings.fresh([seen(), seen()], at=1.0) == (seen(), seen())


def test_vehicle_that_left_is_not_read_again_until_its_name_may_be_another():
    sightings = Sightings()
    sightings.fresh([seen(), seen("A812"), seen("", left=True)], at=0.0)
    assert sightings.fresh([seen(), seen("A812")], at=0.1) == (), "they come late"
    assert sightings.fresh([seen("NEXT", vehicle="8")], at=0.1) == (seen("NEXT", vehicle="8"),)
    assert sightings.fresh([seen("OTHER")], at=31.0) == (seen("OTHER"),)


@pytest.mark.parametrize("lost", ["", "AB12"])
def test_vehicle_with_another_plate_counts_under_the_name_of_one_that_left(lost):
    """The camera restarted, and counts its vehicles from the begin."""
    sightings = Sightings()
    sightings.fresh([seen(), seen(lost, left=True)], at=0.0)
    another = seen("CD34")
    assert sightings.fresh([another, another], at=1.0) == (another, another)
    assert sightings.fresh([another, seen("", left=True), another], at=2.0) == (another,)


def test_vehicle_that_left_is_known_by_the_plate_it_left_with_or_else_by_its_name():
    sightings = Sightings()
    late = [seen(vehicle="7"), seen(vehicle="8")]
    sightings.fresh([seen(vehicle="7", left=True), seen("", vehicle="8", left=True)], at=0.0)
    assert sightings.fresh(late, at=1.0) == ()
    other = seen("CD34", vehicle="7")
    assert sightings.fresh([other, seen("CD34", vehicle="8")], at=1.0) == (other,)


def test_message_is_remembered_for_a_while_and_with_its_plate():
    """A camera that restarted counts from the begin: its first vehicle has the id of an earlier one."""
    sightings = Sightings()
    first = seen("AB12", vehicle="", occurrence="1")
    assert sightings.fresh([first], at=0.0) == (first,)
    assert sightings.fresh([first], at=29.0) == ()
    another = seen("CD34", vehicle="", occurrence="1")
    assert sightings.fresh([another], at=29.0) == (another,)
    assert sightings.fresh([first], at=31.0) == (first,)


def test_memory_is_bounded():
    sightings = Sightings()
    held = []
    for number in range(1000):
        sightings.fresh([seen(occurrence=str(number)), seen("", vehicle=str(number), left=True)], at=0.0)
        held.append(held_bytes(sightings))
    assert max(held[500:]) < 1.2 * max(held[:500])
