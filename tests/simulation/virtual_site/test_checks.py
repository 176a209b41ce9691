"""Each check, fed by hand."""

from __future__ import annotations

import pytest

from drivers.contract import GatePosition, PointState
from gateway.domain.access import Reason
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.events import Event, EventKind
from gateway.domain.passages import Passage, PassageOutcome
from gateway.store import Books, Entry, Recorded
from simulation.virtual_site import observations as seen
from simulation.virtual_site.checks import (
    AccessCheck,
    ArrivalsCheck,
    BooksCheck,
    ClockCheck,
    ClosingCheck,
    CommandsCheck,
    DeadlinesCheck,
    DelayCheck,
    DurableCheck,
    PassagesCheck,
    PollsCheck,
    ReopeningCheck,
    StoppingCheck,
)
from simulation.virtual_site.lane_field import FIRE, POINTS, POSITION

LANE = "lane-1"
EVERYTHING = (*POINTS, POSITION)
WALL = 1_772_323_200_000_000


def wrote(at, action=GateAction.CLOSE, *, deadline=1e9, in_the_way=(), hidden=()):
    return seen.Wrote(at, LANE, action, deadline, in_the_way, hidden)


def acknowledged(at, *events, ids=None, commands=(), true_micros=WALL, camera_events=()):
    ids = tuple(range(1, len(events) + 1)) if ids is None else ids
    recorded = Recorded(event_ids=ids, camera_event_ids=camera_events)
    return seen.Acknowledged(at, Entry(events=events, commands=commands), recorded, true_micros)


def event(kind=EventKind.GATE_OPENED, *, at=WALL, trusted=True, text="", **data):
    return Event(kind, at, trusted, text, lane_id=LANE, data=data)


@pytest.fixture
def closing():
    check = ClosingCheck(stale=5.0, clear=1.0, clear_after_loss=3.0)
    for point in ("closing_loop", "photocell"):
        assert check.see(seen.PointReported(5.0, LANE, point, PointState.OFF)) == ""
    assert check.see(seen.PositionReported(5.0, LANE, GatePosition.OPEN)) == ""
    for at in (8.0, 10.0):
        assert check.see(seen.Refreshed(at, LANE, EVERYTHING)) == ""
    return check


def test_a_close_with_everything_known_and_free(closing):
    assert closing.see(wrote(12.0)) == ""


@pytest.mark.parametrize("point", ["closing_loop", "photocell"])
@pytest.mark.parametrize("state", [PointState.ON, PointState.UNKNOWN])
def test_a_close_over_a_point_that_is_not_free(closing, point, state):
    closing.see(seen.PointReported(11.0, LANE, point, state))
    assert point in closing.see(wrote(12.0))


def test_a_close_on_stale_points_until_they_are_refreshed(closing):
    assert "stale" in closing.see(wrote(15.5))
    closing.see(seen.Refreshed(15.0, LANE, EVERYTHING))
    assert closing.see(wrote(16.0)) == ""


def test_a_close_without_a_controller_or_before_anything_was_read(closing):
    closing.see(seen.GateAway(11.0, LANE, away=True, points=POINTS))
    assert "away" in closing.see(wrote(11.5))
    closing.see(seen.GateAway(12.0, LANE, away=False, points=POINTS))
    assert closing.see(wrote(12.5)) != ""


def test_a_close_on_what_had_been_read_as_occupied(closing):
    assert "closing_loop" in closing.see(wrote(11.0, in_the_way=("closing_loop",)))
    assert closing.see(wrote(11.0, hidden=("closing_loop",))) == ""


def test_a_close_onto_a_point_that_only_dropped_out(closing):
    closing.see(seen.PointReported(11.0, LANE, "closing_loop", PointState.ON))
    closing.see(seen.PointReported(11.1, LANE, "closing_loop", PointState.OFF))
    assert "off for 0.90 s only" in closing.see(wrote(12.0))
    assert "read as off only once" in closing.see(wrote(12.2))
    closing.see(seen.Refreshed(12.2, LANE, EVERYTHING))
    assert closing.see(wrote(12.3)) == ""


def test_a_close_soon_after_a_loss_or_after_silence(closing):
    closing.see(seen.GateAway(11.0, LANE, away=True, points=POINTS))
    closing.see(seen.GateAway(12.0, LANE, away=False, points=POINTS))
    for point in ("closing_loop", "photocell"):
        closing.see(seen.PointReported(12.0, LANE, point, PointState.OFF))
    closing.see(seen.PositionReported(12.0, LANE, GatePosition.OPEN))
    closing.see(seen.Refreshed(14.0, LANE, EVERYTHING))
    assert "known again for 2.50 s only" in closing.see(wrote(14.5))
    assert closing.see(wrote(15.1)) == ""
    closing.see(seen.Refreshed(20.0, LANE, EVERYTHING))
    closing.see(seen.Refreshed(21.0, LANE, EVERYTHING))
    assert "known again for 1.50 s only" in closing.see(wrote(21.5))


def test_a_close_soon_after_a_missed_poll(closing):
    closing.see(seen.PollMissed(11.0, LANE, POINTS, 1))
    assert "had not answered" in closing.see(wrote(11.1))
    closing.see(seen.Refreshed(11.2, LANE, EVERYTHING))
    assert "known again for 1.80 s only" in closing.see(wrote(13.0))
    closing.see(seen.Refreshed(14.0, LANE, EVERYTHING))
    assert closing.see(wrote(14.3)) == ""


def test_what_closes_onto_something_must_be_opened_again():
    tripped = seen.PointReported(12.0, LANE, "photocell", PointState.ON)
    later = seen.Ended(20.0, "boot1", clean=True)
    for ends in (
        seen.PositionReported(11.9, LANE, GatePosition.CLOSED),
        seen.GateAway(12.1, LANE, away=True, points=POINTS),
        wrote(12.1, GateAction.OPEN),
    ):
        check = ReopeningCheck()
        told = sorted([wrote(10.0), tripped, ends, later], key=lambda one: one.at)
        assert [check.see(one) for one in told] == [""] * 4
    check = ReopeningCheck()
    assert [check.see(one) for one in (wrote(10.0), tripped)] == ["", ""]
    assert "photocell became active" in check.see(later)


def test_what_closes_in_a_fire_must_be_opened_again():
    later = seen.Ended(30.0, "boot1", clean=True)
    closes = (wrote(10.0), seen.Answered(10.1, LANE, GateAction.CLOSE))
    fire = seen.PointReported(14.0, LANE, FIRE, PointState.ON)
    for ends in (
        seen.PositionReported(13.9, LANE, GatePosition.CLOSED),
        wrote(14.1, GateAction.OPEN),
        seen.Asked(13.9, LANE, GateAction.STOP),
    ):
        check = ReopeningCheck()
        told = sorted([*closes, fire, ends, later], key=lambda one: one.at)
        assert [check.see(one) for one in told] == [""] * 5
    check = ReopeningCheck()
    assert [check.see(one) for one in (*closes, fire)] == ["", "", ""]
    assert "fire became active" in check.see(later)
    check = ReopeningCheck()
    unknown = seen.PointReported(14.0, LANE, FIRE, PointState.UNKNOWN)
    assert [check.see(one) for one in (*closes, unknown, later)] == [""] * 4


def told_of_reopening(*more):
    """Return what the check says when the photocell trips under an answered close, and this follows."""
    check = ReopeningCheck()
    steps = [
        wrote(10.0),
        seen.Answered(10.1, LANE, GateAction.CLOSE),
        seen.PointReported(14.0, LANE, "photocell", PointState.ON),
        *more,
        seen.Injected(30.0, "nothing", LANE),
    ]
    return [text for one in steps if (text := check.see(one))]


def came_back(at, *, kept_by_line=True):
    return seen.Answered(at, LANE, GateAction.OPEN, acknowledged=False, kept_by_line=kept_by_line)


def test_an_open_that_is_asked_for_must_also_be_written():
    asked = seen.Called(14.1, LANE, GateAction.OPEN)
    assert told_of_reopening(asked, wrote(18.0, GateAction.OPEN), came_back(18.3, kept_by_line=False)) == []
    assert "photocell became active" in told_of_reopening(asked, came_back(14.2, kept_by_line=False))[0]
    superseding = seen.Called(15.0, LANE, GateAction.OPEN)
    superseded = came_back(16.0, kept_by_line=False)
    assert told_of_reopening(asked, superseding, superseded, wrote(18.0, GateAction.OPEN)) == []
    assert "photocell became active" in told_of_reopening(asked, superseding, superseded, superseded)[0]


def test_an_open_that_the_line_kept_is_followed_by_another_at_once():
    kept = (seen.Called(14.1, LANE, GateAction.OPEN), came_back(19.1))
    again = seen.Called(20.3, LANE, GateAction.OPEN)
    too_late = seen.Called(20.4, LANE, GateAction.OPEN)
    assert told_of_reopening(*kept, again, wrote(20.4, GateAction.OPEN)) == []
    assert "photocell became active" in told_of_reopening(*kept)[0]
    assert "photocell became active" in told_of_reopening(*kept, too_late, wrote(20.5, GateAction.OPEN))[0]
    assert told_of_reopening(*kept, again, came_back(24.5)) == []  # the gate is down by then


def test_what_is_gone_while_the_line_keeps_an_open_needs_no_other():
    asked, gone = seen.Called(14.1, LANE, GateAction.OPEN), seen.PointReported(15.0, LANE, "photocell", PointState.OFF)
    assert told_of_reopening(asked, gone, came_back(19.1)) == []
    assert told_of_reopening(asked, came_back(14.9), gone) == []
    refused = came_back(14.2, kept_by_line=False)
    assert "photocell became active" in told_of_reopening(asked, refused, gone)[0]


def test_a_stop_that_takes_the_place_of_an_open_has_its_time():
    asked, stop = seen.Called(14.1, LANE, GateAction.OPEN), seen.Asked(15.0, LANE, GateAction.STOP)
    overtaken, again = came_back(15.1, kept_by_line=False), seen.Called(16.2, LANE, GateAction.OPEN)
    assert told_of_reopening(asked, stop, overtaken, again, wrote(16.3, GateAction.OPEN)) == []
    assert "photocell became active" in told_of_reopening(asked, stop, overtaken)[0]


def test_a_stop_is_no_reason_to_close_onto_something_before_it_is_seen_to_work():
    def told(*more):
        check = ReopeningCheck()
        steps = [
            wrote(10.0),
            seen.Answered(10.1, LANE, GateAction.CLOSE),
            seen.PositionReported(10.5, LANE, GatePosition.CLOSING),
            seen.Asked(10.6, LANE, GateAction.STOP),
            *more,
            seen.PointReported(14.0, LANE, "photocell", PointState.ON),
            seen.Ended(20.0, "boot1", clean=True),
        ]
        return [text for one in steps if (text := check.see(one))]

    assert "photocell became active" in told()[0]
    assert "photocell became active" in told(seen.Answered(10.7, LANE, GateAction.STOP))[0]
    assert (
        told(seen.Answered(10.7, LANE, GateAction.STOP), seen.PositionReported(10.8, LANE, GatePosition.STOPPED)) == []
    )


def test_a_stop_that_is_acknowledged_while_the_gate_stands_half_way_has_worked():
    """Its own safety stopped the gate; the stop took the place of the open."""
    asked, stands = seen.Called(14.0, LANE, GateAction.OPEN), seen.PositionReported(14.0, LANE, GatePosition.STOPPED)
    stop, overtaken = seen.Asked(14.1, LANE, GateAction.STOP), came_back(14.2, kept_by_line=False)
    assert told_of_reopening(stands, asked, stop, overtaken, seen.Answered(14.3, LANE, GateAction.STOP)) == []
    refused = seen.Answered(14.3, LANE, GateAction.STOP, acknowledged=False)
    assert "photocell became active" in told_of_reopening(stands, asked, stop, overtaken, refused)[0]
    called, late = seen.Called(14.1, LANE, GateAction.STOP), seen.Answered(17.8, LANE, GateAction.STOP)
    assert told_of_reopening(stands, asked, stop, called, overtaken, late) == [], "the line was late"
    refused = seen.Answered(17.8, LANE, GateAction.STOP, acknowledged=False)
    assert "photocell became active" in told_of_reopening(stands, asked, stop, called, overtaken, refused)[0]


def test_a_gate_that_its_own_safety_opened_closes_onto_nothing():
    def told(*positions):
        check = ReopeningCheck()
        steps = [
            wrote(10.0),
            seen.Answered(10.1, LANE, GateAction.CLOSE),
            *(seen.PositionReported(10.5 + place / 10, LANE, one) for place, one in enumerate(positions)),
            seen.PointReported(14.0, LANE, "photocell", PointState.ON),
            seen.Ended(20.0, "boot1", clean=True),
        ]
        return [text for one in steps if (text := check.see(one))]

    closing, is_open = GatePosition.CLOSING, GatePosition.OPEN
    assert told(closing, is_open) == []
    assert "photocell became active" in told(is_open)[0], "it may still begin to close"
    assert "photocell became active" in told(closing)[0]
    assert "photocell became active" in told(is_open, closing)[0]


def test_a_stop_that_is_acknowledged_at_an_open_gate_puts_the_open_off_until_it_is_seen_to_close():
    """A close that was late to be answered met something; the gate never moved, and a person stopped it meanwhile."""
    trips, clears = (
        seen.PointReported(at, LANE, "photocell", state)
        for at, state in ((14.0, PointState.ON), (16.0, PointState.OFF))
    )

    def told(*more):
        check = ReopeningCheck()
        steps = [
            seen.PositionReported(9.0, LANE, GatePosition.OPEN),
            wrote(13.0),
            trips,
            seen.Asked(14.2, LANE, GateAction.STOP),
            seen.Answered(14.6, LANE, GateAction.STOP, acknowledged=bool(more)),
            seen.Answered(15.6, LANE, GateAction.CLOSE),
            *more,
            seen.Ended(25.0, "boot1", clean=True),
        ]
        return [text for one in steps if (text := check.see(one))]

    closes = seen.PositionReported(18.0, LANE, GatePosition.CLOSING)
    assert told(clears) == []
    assert told(clears, closes) == []
    assert told(closes, wrote(18.1, GateAction.OPEN)) == []
    assert "photocell became active" in told(closes)[0]
    assert "photocell became active" in told()[0], "nobody knows whether the stop arrived"


def test_what_a_person_stopped_is_moved_only_when_somebody_wants_that():
    def told(*more, obeyed=True, recorded=True):
        check = StoppingCheck()
        began = [acknowledged(1.3, event(EventKind.STOP_BEGAN))] if recorded else []
        steps = [
            seen.Asked(1.0, LANE, GateAction.STOP),
            seen.Answered(1.1, LANE, GateAction.STOP, obeyed),
            seen.PositionReported(1.2, LANE, GatePosition.STOPPED),
            *began,
            *more,
            seen.Called(30.0, LANE, GateAction.CLOSE),
        ]
        return [text for one in steps if (text := check.see(one))]

    assert "28.8 s after a person's stop" in told()[0]
    assert "28.8 s after a person's stop" in told(seen.GateAway(5.0, LANE, away=True, points=POINTS))[0]
    assert "28.8 s after a person's stop" in told(seen.Ended(5.0, "boot1", clean=False))[0]
    assert told(seen.Ended(5.0, "boot1", clean=False), recorded=False) == []
    assert told(obeyed=False) == []
    for ends in (
        seen.Asked(5.0, LANE, GateAction.CLOSE),
        seen.Presented(5.0, LANE, "1", good=True, calm=True),
        seen.PositionReported(5.0, LANE, GatePosition.CLOSED),
    ):
        assert told(ends) == []


@pytest.mark.parametrize(("asked_at", "is_kept"), [(28.0, True), (26.0, False)])
def test_a_card_that_came_after_the_stop_counts_however_late_the_stop_is_answered(asked_at, is_kept):
    check = StoppingCheck()
    steps = [
        seen.Asked(27.2, LANE, GateAction.STOP),
        seen.PositionReported(27.3, LANE, GatePosition.STOPPED),
        seen.Presented(asked_at, LANE, "1", good=True, calm=True),
        seen.Answered(30.1, LANE, GateAction.STOP),
        seen.Called(32.0, LANE, GateAction.OPEN),
    ]
    said = [text for one in sorted(steps, key=lambda one: one.at) if (text := check.see(one))]
    assert (said == []) is is_kept


@pytest.mark.parametrize(("asked_at", "is_kept"), [(29.3, True), (29.0, False)])
def test_what_a_person_asked_for_before_a_stop_does_not_go_out_after_it(asked_at, is_kept):
    check = StoppingCheck()
    steps = [
        seen.Asked(asked_at, LANE, GateAction.OPEN),
        seen.Asked(29.2, LANE, GateAction.STOP),
        seen.Answered(29.5, LANE, GateAction.STOP, acknowledged=True),
        seen.PositionReported(29.5, LANE, GatePosition.STOPPED),
        seen.Called(30.0, LANE, GateAction.OPEN),
    ]
    said = [text for one in sorted(steps, key=lambda one: one.at) if (text := check.see(one))]
    assert (said == []) is is_kept


def test_what_is_gone_before_the_close_is_answered_needs_no_open():
    def told(*, answered_at):
        check = ReopeningCheck()
        steps = [
            wrote(10.0),
            seen.PointReported(10.1, LANE, "photocell", PointState.ON),
            seen.PointReported(11.5, LANE, "photocell", PointState.OFF),
            seen.Answered(answered_at, LANE, GateAction.CLOSE),
            seen.Ended(20.0, "boot1", clean=True),
        ]
        return [text for one in sorted(steps, key=lambda one: one.at) if (text := check.see(one))]

    assert told(answered_at=12.0) == []
    assert "photocell became active" in told(answered_at=11.0)[0]


def test_what_is_gone_again_excuses_nothing_else_that_is_still_in_the_way():
    check = ReopeningCheck()
    steps = [
        wrote(10.0),
        seen.PointReported(10.1, LANE, "closing_loop", PointState.ON),
        seen.PointReported(10.2, LANE, "photocell", PointState.ON),
        seen.PointReported(10.5, LANE, "closing_loop", PointState.OFF),
        seen.Answered(12.0, LANE, GateAction.CLOSE),
        seen.Ended(20.0, "boot1", clean=True),
    ]
    assert "photocell became active" in "".join(check.see(one) for one in steps)


def test_an_open_undoes_a_close_onto_something():
    check = CommandsCheck(command_life=5.0)
    check.see(wrote(10.0))
    assert check.see(wrote(10.1, GateAction.OPEN)) != ""
    check.see(seen.PointReported(10.2, LANE, "closing_loop", PointState.ON))
    assert [check.see(wrote(11.0, GateAction.OPEN)) for _ in range(3)] == [""] * 3
    assert check.see(wrote(11.0, GateAction.OPEN)) != ""
    check.see(wrote(20.0))
    check.see(seen.PositionReported(22.0, LANE, GatePosition.CLOSED))
    check.see(seen.PointReported(23.0, LANE, "closing_loop", PointState.ON))
    assert check.see(wrote(23.1, GateAction.OPEN)) != ""


@pytest.mark.parametrize(("acknowledged", "reset"), [(False, True), (True, False)])
def test_what_comes_into_the_way_after_opens_without_an_answer_has_the_gate_opened_again(acknowledged, reset):
    check = CommandsCheck(command_life=5.0)
    check.see(wrote(10.0))
    check.see(seen.PointReported(10.2, LANE, "closing_loop", PointState.ON))
    for at in (11.0, 12.0, 13.0):
        assert check.see(wrote(at, GateAction.OPEN)) == ""
        check.see(seen.Answered(at + 0.4, LANE, GateAction.OPEN, acknowledged=acknowledged))
    assert check.see(wrote(14.0, GateAction.OPEN)) != ""
    check.see(seen.PointReported(14.1, LANE, "closing_loop", PointState.OFF))
    check.see(seen.PointReported(42.0, LANE, "closing_loop", PointState.ON))
    assert (check.see(wrote(42.1, GateAction.OPEN)) == "") is reset
    check.see(seen.PositionReported(43.0, LANE, GatePosition.CLOSED))
    check.see(seen.PointReported(44.0, LANE, "closing_loop", PointState.ON))
    assert [bool(check.see(wrote(45.0, GateAction.OPEN))) for _ in range(3)][-1]


@pytest.mark.parametrize(("position", "allowed"), [(None, True), (GatePosition.OPENING, False)])
def test_a_gate_that_no_open_has_moved_since_a_close_may_still_close(position, allowed):
    check = CommandsCheck(command_life=5.0)
    check.see(wrote(10.0))
    check.see(seen.Presented(29.0, LANE, "1", good=True, calm=True))
    check.see(wrote(29.1, GateAction.OPEN))
    if position is not None:
        check.see(seen.PositionReported(29.5, LANE, position))
    check.see(seen.Presented(50.0, LANE, "2", good=True, calm=True))
    check.see(wrote(50.1, GateAction.OPEN))
    check.see(seen.PointReported(70.0, LANE, "closing_loop", PointState.ON))
    assert (check.see(wrote(70.1, GateAction.OPEN)) == "") is allowed


def test_a_close_of_unknown_outcome_is_undone_however_long_ago_another_was():
    check = CommandsCheck(command_life=5.0)
    check.see(wrote(10.0))
    check.see(seen.PointReported(10.2, LANE, "closing_loop", PointState.ON))
    assert [check.see(wrote(11.0, GateAction.OPEN)) for _ in range(3)] == [""] * 3
    check.see(seen.PointReported(12.0, LANE, "closing_loop", PointState.OFF))
    check.see(seen.Called(60.0, LANE, GateAction.CLOSE))
    check.see(seen.GateAway(61.0, LANE, away=True, points=POINTS))
    check.see(seen.GateAway(62.0, LANE, away=False, points=POINTS))
    check.see(seen.PointReported(62.1, LANE, "closing_loop", PointState.ON))
    assert [check.see(wrote(64.0, GateAction.OPEN)) for _ in range(3)] == [""] * 3
    assert check.see(wrote(64.1, GateAction.OPEN)) != ""


def test_a_close_is_undone_for_a_point_that_was_stale_when_the_open_was_given_and_not_for_one_that_became_so_later():
    def told(given_at):
        check = CommandsCheck(command_life=5.0, stale=5.0)
        check.see(seen.Refreshed(9.0, LANE, EVERYTHING))
        check.see(wrote(10.0))
        check.see(seen.Called(given_at, LANE, GateAction.OPEN))
        check.see(seen.PositionReported(14.01, LANE, GatePosition.CLOSED))
        return check.see(wrote(14.02, GateAction.OPEN))

    assert told(14.0) == ""
    assert told(13.99) != ""


def test_an_open_needs_a_reason_and_each_counts_once():
    check = CommandsCheck(command_life=5.0)
    assert check.see(wrote(1.0, GateAction.OPEN)) != ""
    check.see(seen.Presented(2.0, LANE, "1", good=True, calm=True))
    assert check.see(wrote(2.1, GateAction.OPEN)) == ""
    assert check.see(wrote(2.2, GateAction.OPEN)) != ""
    check.see(seen.Presented(3.0, LANE, "1", good=False, calm=True))
    assert check.see(wrote(3.1, GateAction.OPEN)) != ""


def test_a_reason_does_not_outlive_its_deadline_nor_its_gateway():
    check = CommandsCheck(command_life=5.0)
    check.see(seen.Asked(1.0, LANE, GateAction.OPEN))
    assert check.see(wrote(6.5, GateAction.OPEN)) != ""
    check.see(seen.Asked(10.0, LANE, GateAction.OPEN))
    check.see(seen.Ended(11.0, "boot1", clean=False))
    assert check.see(wrote(12.0, GateAction.OPEN)) != ""


def test_commands_that_go_out_late_or_after_another():
    check = DeadlinesCheck(command_life=5.0)
    check.see(seen.Called(5.9, LANE, GateAction.CLOSE))
    assert check.see(wrote(6.0, deadline=6.0)) == ""
    assert "after its deadline" in check.see(wrote(6.1, deadline=6.0))
    assert "after it was given" in check.see(wrote(11.0))
    check.see(seen.Called(11.1, LANE, GateAction.OPEN))
    assert "taken its place" in check.see(wrote(11.2))


def test_commands_that_arrive_after_they_were_given_up():
    check = ArrivalsCheck()
    check.see(seen.Called(1.0, LANE, GateAction.CLOSE))
    assert check.see(seen.Arrived(1.1, LANE, GateAction.CLOSE)) == ""
    check.see(seen.Answered(1.3, LANE, GateAction.CLOSE, acknowledged=False))
    assert "0.70 s after its driver had given it up" in check.see(seen.Arrived(2.0, LANE, GateAction.CLOSE))
    assert "open arrived" in check.see(seen.Arrived(2.0, LANE, GateAction.OPEN))


def test_a_fire_input_that_is_on_unknown_or_stale_forbids_a_close():
    check = ClosingCheck(stale=5.0, clear=1.0, clear_after_loss=3.0, fire_lanes=frozenset({LANE}))
    for point in ("closing_loop", "photocell"):
        check.see(seen.PointReported(5.0, LANE, point, PointState.OFF))
    check.see(seen.PositionReported(5.0, LANE, GatePosition.OPEN))
    check.see(seen.Refreshed(8.0, LANE, EVERYTHING))
    assert "fire was unknown" in check.see(wrote(9.0))
    check.see(seen.PointReported(9.0, LANE, FIRE, PointState.ON))
    assert "fire was active" in check.see(wrote(9.1))
    check.see(seen.PointReported(9.2, LANE, FIRE, PointState.OFF))
    assert check.see(wrote(9.3)) == ""
    for at in (11.0, 14.0):
        check.see(seen.Refreshed(at, LANE, EVERYTHING))
    assert "fire was stale" in check.see(wrote(14.5))
    check.see(seen.ModuleAway(15.0, LANE, away=True, points=(FIRE,)))
    assert "fire was unknown" in check.see(wrote(15.1))


def test_a_fire_opens_without_a_card():
    check = CommandsCheck(command_life=5.0)
    check.see(seen.PointReported(1.0, LANE, FIRE, PointState.ON))
    assert check.see(wrote(60.0, GateAction.OPEN)) == ""
    check.see(seen.PointReported(61.0, LANE, FIRE, PointState.OFF))
    assert check.see(wrote(67.0, GateAction.OPEN)) != ""


def passed(at, *, card="7"):
    """A passage that is on disk as soon as it ended."""
    now = WALL + int(at * 1_000_000)
    passage = Passage(LANE, "entry", PassageOutcome.PASSED, WALL, now, clock_trusted=True, credential=card)
    return seen.Acknowledged(at, Entry(events=(event(),), passage=passage), Recorded(), now)


def drove(at, *, began, calm=True):
    return seen.Drove(at, LANE, "passed", began, calm, "7")


def test_a_vehicle_that_passed_in_peace_and_is_not_recorded():
    check = PassagesCheck(command_life=5.0)
    check.see(passed(9.0))
    check.see(drove(10.0, began=1.0))
    check.see(drove(20.0, began=11.0))
    check.see(passed(20.5))
    assert check.see(seen.Refreshed(100.0, LANE, ())) == ""
    check.see(drove(110.0, began=101.0))
    check.see(drove(111.0, began=101.0, calm=False))
    assert check.see(seen.Refreshed(169.0, LANE, ())) == ""
    assert "no passage of it was recorded" in check.see(seen.Refreshed(171.0, LANE, ()))
    assert check.see(seen.Refreshed(300.0, LANE, ())) == ""


@pytest.mark.parametrize("other", [passed(9.0, card="8"), passed(15.0, card="8"), passed(0.5)])
def test_the_passage_of_another_vehicle_stands_for_none(other):
    check = PassagesCheck(command_life=5.0)
    told = sorted([drove(10.0, began=1.0), other], key=lambda one: one.at)
    assert [check.see(one) for one in told] == ["", ""]
    assert "no passage of it was recorded" in check.see(seen.Refreshed(71.0, LANE, ()))


@pytest.mark.parametrize(("asked_at", "wrote_at", "owed"), [(5.0, None, True), (5.0, 7.0, False), (None, 7.0, True)])
def test_a_close_of_a_person_takes_the_passage_only_if_it_goes_out(asked_at, wrote_at, owed):
    check = PassagesCheck(command_life=5.0)
    if asked_at is not None:
        check.see(seen.Asked(asked_at, LANE, GateAction.CLOSE))
    if wrote_at is not None:
        check.see(wrote(wrote_at))
    check.see(drove(10.0, began=1.0))
    assert bool(check.see(seen.Refreshed(71.0, LANE, ()))) is owed


def test_replayed_and_revived_commands():
    check = CommandsCheck(command_life=5.0)
    sent = Command("c-1", 1, LANE, GateAction.OPEN, "lane", 0, 0, CommandState.SENT)
    assert check.see(acknowledged(1.0, commands=(sent,))) == ""
    assert "twice" in check.see(acknowledged(2.0, commands=(sent,)))
    done = Command("c-2", 1, LANE, GateAction.OPEN, "lane", 0, 0, CommandState.DONE)
    check.see(acknowledged(3.0, commands=(done,)))
    unknown = Command("c-2", 1, LANE, GateAction.OPEN, "lane", 0, 0, CommandState.UNKNOWN)
    assert "became" in check.see(acknowledged(4.0, commands=(unknown,)))
    check.see(seen.Started(5.0, "boot2", ("c-3",)))
    left = Command("c-3", 1, LANE, GateAction.OPEN, "lane", 0, 0, CommandState.SENT)
    assert "earlier life" in check.see(acknowledged(6.0, commands=(left,)))


def test_lost_changed_and_reused_records():
    check = DurableCheck()
    assert check.see(acknowledged(1.0, event(text="a"), event(text="b"), ids=(5, 6))) == ""
    assert "given after" in check.see(acknowledged(2.0, event(), ids=(6,)))
    kept = {5: (int(EventKind.GATE_OPENED), WALL, "a")}
    assert "first is 6" in check.see(seen.Found(3.0, kept, frozenset(), whole=True))


def test_a_store_that_a_power_cut_damaged():
    assert "damaged" in DurableCheck().see(acknowledged(1.0, event(EventKind.STORE_DAMAGED)))


def test_books_that_do_not_balance_and_rows_that_vanish():
    check = BooksCheck()
    assert "balance" in check.see(seen.BooksSeen(1.0, Books(3, 1, 0, 1, 0), settled=False))
    check.see(acknowledged(2.0, event(), camera_events=(7,)))
    assert "acknowledged" in check.see(seen.BooksSeen(3.0, Books(0, 0, 0, 0, 0), settled=False))
    assert "delivered" in check.see(seen.BooksSeen(3.0, Books(1, 1, 0, 0, 0), settled=False))
    check.see(seen.CentralTook(4.0, "k", 7, again=False))
    assert check.see(seen.BooksSeen(5.0, Books(1, 1, 0, 0, 0), settled=True)) == ""
    assert "twice" in check.see(seen.CentralTook(6.0, "other", 7, again=True))
    check.see(seen.CentralTook(7.0, "k2", 8, again=False))
    assert "counted as delivered" in check.see(seen.BooksSeen(8.0, Books(2, 1, 1, 0, 0), settled=True))


def test_a_card_that_waits():
    check = DelayCheck()
    check.see(seen.Presented(1.0, LANE, "1", good=True, calm=True))
    assert check.see(seen.Called(1.1, LANE, GateAction.OPEN)) == ""
    check.see(seen.Presented(2.0, LANE, "1", good=True, calm=True))
    assert "not" in check.see(seen.Called(2.5, LANE, GateAction.OPEN))


def test_a_gateway_that_is_told_to_stop_owes_a_person_no_open():
    def told(*waiting):
        check = DelayCheck()
        for observation in waiting:
            check.see(observation)
        check.see(seen.ToldToStop(1.2))
        return check.see(seen.Drove(3.0, LANE, "left", 0.0))

    assert told(seen.Asked(1.0, LANE, GateAction.OPEN, calm=True)) == ""
    assert "not" in told(seen.Presented(1.0, LANE, "1", good=True, calm=True))


def test_stamps_of_a_clock_that_was_wrong():
    check = ClockCheck()
    check.see(seen.ClockJudged(1.0, trusted=False, true_micros=WALL + 1_000_000))
    later = WALL + 5_000_000
    assert "trusted" in check.see(acknowledged(2.0, event(at=WALL + 2_000_000), true_micros=later))
    assert check.see(acknowledged(2.0, event(at=0, trusted=False), true_micros=later)) == ""
    check.see(seen.ClockJudged(3.0, trusted=True, true_micros=WALL + 6_000_000))
    much_later = WALL + 20_000_000
    assert check.see(acknowledged(9.0, event(at=much_later), true_micros=much_later)) == ""
    assert "after a later" in check.see(acknowledged(9.5, event(at=much_later - 5_000_000), true_micros=much_later))


def test_decisions_of_a_lane_that_wants_a_sure_time():
    wrong_from, wrong_until = WALL + 10_000_000, WALL + 60_000_000
    granted = {"kind": EventKind.ACCESS_GRANTED, "trusted": False, "card_id": 1}
    denied = {"kind": EventKind.ACCESS_DENIED, "trusted": False, "reason": Reason.CLOCK_UNTRUSTED}

    def told(at, *, lane=LANE, **decision):
        check = ClockCheck(sure_time_lanes=frozenset({lane}), cards_with_days=frozenset({1}))
        check.see(seen.ClockJudged(10.0, trusted=False, true_micros=wrong_from))
        check.see(seen.ClockJudged(60.0, trusted=True, true_micros=wrong_until))
        return check.see(acknowledged(61.0, event(at=at, **decision), true_micros=wrong_until + 1_000_000))

    assert "granted a card with days without it" in told(wrong_from + 5_000_000, **granted)
    assert told(wrong_from + 1_000_000, **granted) == ""
    assert told(wrong_from + 5_000_000, **{**granted, "card_id": 2}) == ""
    assert told(wrong_from + 5_000_000, lane="lane-9", **granted) == ""
    assert told(wrong_from + 5_000_000, card_id=1, **denied) == ""
    assert "did not matter" in told(wrong_from + 5_000_000, card_id=2, **denied)
    assert "did not matter" in told(wrong_from + 5_000_000, lane="lane-9", card_id=1, **denied)
    assert "did not matter" in told(wrong_from - 5_000_000, card_id=1, **denied)


def test_a_card_right_before_the_clock_goes_wrong_waits_for_nobody():
    def told(lanes):
        check = DelayCheck(sure_time_lanes=frozenset(lanes))
        check.see(seen.Presented(2.0, LANE, "1", good=True, calm=True))
        check.see(seen.ClockJudged(2.1, trusted=False, true_micros=WALL))
        return check.see(seen.Called(2.5, LANE, GateAction.OPEN))

    assert told({LANE}) == ""
    assert "not" in told({"lane-9"})


def test_decisions_against_the_list():
    check = AccessCheck()
    check.see(seen.CardJudged(0.0, 1, good=True))
    check.see(seen.CardJudged(0.0, 2, good=False))
    assert check.see(acknowledged(5.0, event(EventKind.ACCESS_GRANTED, card_id=1))) == ""
    assert "may not pass" in check.see(acknowledged(5.0, event(EventKind.ACCESS_GRANTED, card_id=2)))
    assert "not on the list" in check.see(acknowledged(5.0, event(EventKind.ACCESS_GRANTED, card_id=None)))
    assert "was denied" in check.see(acknowledged(5.0, event(EventKind.ACCESS_DENIED, card_id=1, reason="lost")))
    check.see(seen.CardJudged(100.0, 1, good=False))
    assert check.see(acknowledged(130.0, event(EventKind.ACCESS_GRANTED, card_id=1))) == ""
    assert check.see(acknowledged(161.0, event(EventKind.ACCESS_GRANTED, card_id=1))) != ""


@pytest.mark.parametrize(
    ("pause", "idle", "is_broken"), [(0.3, True, False), (0.02, False, False), (0.02, True, True), (0.15, True, True)]
)
def test_polls_of_an_idle_lane(pause, idle, is_broken):
    check = PollsCheck(poll=0.3)
    said = {check.see(seen.Polled(number * pause, LANE, idle)) for number in range(1, 100)} - {""}
    assert said == ({"lane-1 was polled more than 25 times within 5 s while idle"} if is_broken else set())


def polled_fast(check, begin, *, seconds=3.0, lane=LANE):
    """Poll a still lane each 0.06 s, as before a close; return what the check says."""
    polls = (seen.Polled(begin + number * 0.06, lane, idle=True) for number in range(int(seconds / 0.06)))
    return {check.see(poll) for poll in polls} - {""}


def test_fast_polls_of_a_still_lane_with_a_command_under_way():
    check = PollsCheck(poll=0.3)
    check.see(seen.Called(10.0, LANE, GateAction.CLOSE))
    check.see(seen.Called(10.0, LANE, GateAction.STOP))
    check.see(seen.Answered(10.5, LANE, GateAction.STOP, acknowledged=True))
    assert not polled_fast(check, 20.0)
    assert polled_fast(check, 20.0, lane="lane-2")
    check.see(seen.Answered(25.0, LANE, GateAction.CLOSE, acknowledged=False))
    assert not polled_fast(check, 25.0)
    assert not polled_fast(check, 28.9)
    assert polled_fast(check, 32.1)


def test_fast_polls_of_a_still_lane_after_the_power_cut_that_ended_its_command():
    check = PollsCheck(poll=0.3)
    check.see(seen.Called(10.0, LANE, GateAction.CLOSE))
    check.see(seen.Ended(11.0, "boot1", clean=False))
    assert polled_fast(check, 60.0)
