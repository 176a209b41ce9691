"""The writing of plates, and the readings that are news."""

import math

import pytest
from held_memory import held_bytes

from drivers.plates.readings import PlateReading, Sightings, fraction, normalised


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
        ("A" * 17, ""),
    ],
)
def test_plate_is_written_one_way(said, plate):
    assert normalised(said) == plate


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
    sightings.fresh([seen(), seen("", left=True)], at=0.0)
    assert sightings.fresh([seen("LATE")], at=0.1) == ()
    assert sightings.fresh([seen("NEXT", vehicle="8")], at=0.1) == (seen("NEXT", vehicle="8"),)
    assert sightings.fresh([seen("OTHER")], at=31.0) == (seen("OTHER"),)


def test_memory_is_bounded():
    sightings = Sightings()
    held = []
    for number in range(1000):
        sightings.fresh([seen(occurrence=str(number)), seen("", vehicle=str(number), left=True)], at=0.0)
        held.append(held_bytes(sightings))
    assert max(held[500:]) < 1.2 * max(held[:500])
