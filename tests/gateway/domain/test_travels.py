"""The normal travel time of a gate, and the limit above which it is slow."""

import json

import pytest

from gateway.domain.events import EventKind, RecordedEvent
from gateway.domain.travels import TRAVEL_SECONDS, Band, normal_band, seconds_of, why_slow

STEADY = tuple(3.0 + 0.1 * (number % 4) for number in range(40))


def event(kind, **data):
    return RecordedEvent(
        id=1, device_id=1, type=kind, category=kind.category, subcategory=kind.severity, name="", description="",
        date_at=0, clock_trusted=True, lane_id="entry", data=json.dumps(data),
    )  # fmt: skip


def test_the_times_of_one_direction_are_found_in_their_events():
    events = [
        event(EventKind.GATE_OPENED, **{TRAVEL_SECONDS: 3}),
        event(EventKind.GATE_CLOSED, **{TRAVEL_SECONDS: 4.5}),
        event(EventKind.GATE_OPENED),
        event(EventKind.GATE_OPENED, **{TRAVEL_SECONDS: 2.5}),
    ]
    assert seconds_of(EventKind.GATE_OPENED, events) == (3.0, 2.5)
    assert seconds_of(EventKind.GATE_CLOSED, events) == (4.5,)


def test_a_band_holds_all_but_the_rarest_travels():
    assert normal_band(tuple(float(number) for number in range(1, 101))) == Band(low=5.0, middle=50.5, high=96.0)
    assert normal_band((9.0, *STEADY)).high == pytest.approx(3.3)


def test_a_young_gate_has_no_band_and_is_not_slow():
    assert normal_band(STEADY[:29]) is None
    assert why_slow((*STEADY[:29], *[9.0] * 5)) is None
    assert why_slow(()) is None


def test_a_gate_that_became_slower_is_told_with_its_normal_times():
    assert str(why_slow((*STEADY, *[4.6] * 5))) == "its last 5 took 4.6 s; 3.2 s is normal, up to 3.3 s"


@pytest.mark.parametrize(
    "last",
    [(3.1,) * 5, (9.0, 9.0, 3.1, 3.2, 3.0), (3.5,) * 5, (2.0,) * 5],
    ids=["as ever", "twice held up", "polled late", "faster"],
)
def test_a_gate_is_not_slow_by_a_few_travels_or_a_little(last):
    assert why_slow((*STEADY, *last)) is None


def test_a_gate_that_always_varied_is_slow_only_beyond_that():
    varied = tuple(2.0 + (number % 5) for number in range(50))
    assert why_slow((*varied, *[6.0] * 5)) is None
    assert why_slow((*varied, *[6.5] * 5)) is not None
