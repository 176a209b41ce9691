"""The time of a gate's travel, from what its lane is told."""

import pytest

from drivers.contract import GatePosition as P
from gateway.domain.commands import Command, GateAction
from gateway.domain.events import Event, EventKind
from gateway.domain.travels import TRAVEL_SECONDS
from gateway.lanes.machine import messages as m
from gateway.lanes.runner import Travel
from gateway.store import Entry

OPEN, CLOSE, STOP = GateAction.OPEN, GateAction.CLOSE, GateAction.STOP


def seen(at, position):
    return m.GateReported(position, at)


def taken(at, command_id="1"):
    return m.CommandAcknowledged(command_id, at)


def sent(action, command_id="1"):
    return m.SendCommand(Command(command_id, 1, "entry", action, "lane", 0, 0), deadline=99.0)


def travel(*steps):
    now = Travel()
    for step in steps:
        now = now.after(m.Ticked(), [step]) if isinstance(step, m.SendCommand) else now.after(step, ())
    return now


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ((seen(0, P.CLOSED), sent(OPEN), taken(1), seen(2, P.OPENING), seen(4.5, P.OPEN)), 3.5),
        ((seen(0, P.CLOSED), sent(OPEN), seen(0.5, P.OPENING), taken(1), seen(4, P.OPEN)), 3),
        ((seen(0, P.CLOSED), sent(OPEN), taken(1), seen(1.5, P.CLOSED), seen(4, P.OPEN)), 3),
        ((seen(0, P.OPEN), sent(CLOSE), taken(1), seen(2, P.CLOSING), seen(6, P.CLOSED)), 5),
    ],
    ids=["opened", "moved before the answer", "moved late", "closed"],
)
def test_a_travel_between_limits_is_timed_from_the_acknowledgement(steps, seconds):
    assert travel(*steps).seconds == seconds


@pytest.mark.parametrize(
    "steps",
    [
        (sent(OPEN), taken(1), seen(4, P.OPEN)),
        (seen(0, P.OPENING), sent(OPEN), taken(1), seen(4, P.OPEN)),
        (seen(0, P.CLOSED), sent(OPEN), seen(4, P.OPEN)),
        (seen(0, P.CLOSED), sent(OPEN), taken(1, "2"), seen(4, P.OPEN)),
        (seen(0, P.CLOSED), sent(OPEN), taken(1), seen(2, P.OPENING), seen(3, P.STOPPED), seen(9, P.OPEN)),
        (seen(0, P.CLOSED), sent(OPEN), taken(1), seen(2, P.UNKNOWN), seen(4, P.OPEN)),
        (seen(0, P.CLOSED), sent(OPEN), taken(1), m.GateLost("away"), seen(4, P.OPEN)),
        (seen(0, P.CLOSED), sent(OPEN), m.CommandFailed("1", "no answer", sent=True), seen(4, P.OPEN)),
        (seen(0, P.OPEN), sent(CLOSE), taken(1), seen(2, P.CLOSING), seen(3, P.OPEN), seen(9, P.CLOSED)),
        (seen(0, P.OPEN), sent(CLOSE), taken(1), seen(2, P.CLOSING), sent(OPEN, "2"), taken(3, "2"), seen(4, P.OPEN)),
        (seen(0, P.CLOSED), sent(OPEN), taken(1), seen(2, P.OPENING), sent(STOP, "2"), seen(4, P.OPEN)),
        (seen(0, P.CLOSED), seen(4, P.OPEN)),
    ],
    ids=[
        "from unknown", "from half-way", "unanswered", "another's answer", "stopped", "lost sight", "controller away",
        "failed", "turned back", "opened again", "stop sent", "by hand",
    ],
)  # fmt: skip
def test_any_other_movement_has_no_time(steps):
    assert travel(*steps).seconds is None


def test_the_event_that_ends_a_travel_carries_its_time_and_no_other_does():
    whole = travel(seen(0, P.CLOSED), sent(OPEN), taken(1), seen(4.126, P.OPEN))
    opened = Event(EventKind.GATE_OPENED, 0, True, "the gate is open", data={"by": "lane"})
    other = Event(EventKind.VEHICLE_ARRIVED, 0, True, "a vehicle came")
    timed = whole.timed(Entry(events=(other, opened)))
    assert timed.events[0] == other
    assert timed.events[1].data == {"by": "lane", TRAVEL_SECONDS: 3.13}
    closed = Entry(events=(Event(EventKind.GATE_CLOSED, 0, True, "the gate is closed"),))
    assert whole.timed(closed) is closed


def test_a_travel_is_told_once():
    whole = travel(seen(0, P.CLOSED), sent(OPEN), taken(1), seen(4, P.OPEN))
    assert whole.after(m.Ticked(), ()).seconds is None
    assert whole.after(seen(5, P.OPEN), ()).seconds is None
