"""Opens in the place of a close: until one of them is known to work, the close is watched further."""

from __future__ import annotations

import pytest
from lane_rules import POINT, changed

from drivers.contract import GatePosition, PointState
from gateway.domain.commands import GateAction
from gateway.domain.events import EventKind as E
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.orders import OrderKind
from gateway.lanes.snapshots import Phase

ON, OFF = PointState.ON, PointState.OFF
OPEN, CLOSE, STOP = GateAction.OPEN, GateAction.CLOSE, GateAction.STOP
OPENED_AGAIN = [OPEN, CLOSE, OPEN, OPEN]


def fail(lane, command, *, sent):
    lane.do(m.CommandFailed(command.command_id, "no answer" if sent else "the line was not free", sent=sent))


def newest(lane, action):
    return [command for command in lane.sent if command.action is action][-1]


def give_close(lane):
    lane.let_in()
    lane.drive_through()
    assert lane.actions() == [OPEN, CLOSE]


def let_in(lane, who):
    lane.arming(ON)
    if who == "vehicle":
        lane.card()
    else:
        lane.wish(OPEN)
    assert lane.actions()[-1] is OPEN
    return lane.sent[-1]


@pytest.fixture(params=["vehicle", "person"])
def who(request):
    return request.param


@pytest.fixture
def undone(lane, who):
    """A lane whose close waits for its answer, and the close and the open in its place."""
    give_close(lane)
    return lane, lane.sent[-1], let_in(lane, who)


@pytest.fixture
def closing(lane, who):
    """A lane whose gate closes, and the open in the place of the close."""
    give_close(lane)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    return lane, let_in(lane, who)


def test_close_without_an_answer_is_watched_on_when_the_open_in_its_place_did_not_go_out(undone):
    lane, close, opening = undone
    fail(lane, close, sent=True)
    fail(lane, opening, sent=False)
    lane.gate(GatePosition.CLOSING)
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    lane.safety(ON)
    assert lane.actions() == OPENED_AGAIN


def test_close_that_is_answered_after_the_open_failed_is_watched_then(undone):
    lane, close, opening = undone
    lane.safety(ON)
    fail(lane, opening, sent=False)
    assert lane.actions() == [OPEN, CLOSE, OPEN], "nobody knows yet whether there is anything to undo"
    lane.do(m.CommandAcknowledged(close.command_id, lane.at))
    assert lane.actions() == OPENED_AGAIN


@pytest.mark.parametrize("is_first", [True, False])
def test_close_that_never_went_out_is_not_undone(undone, is_first):
    lane, close, opening = undone
    lane.safety(ON)
    for command in (close, opening) if is_first else (opening, close):
        fail(lane, command, sent=False)
    lane.wait(60)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_close_is_watched_on_when_the_open_in_its_place_was_lost(closing):
    lane, opening = closing
    fail(lane, opening, sent=True)
    lane.wait(lane.rules.lane.opening_seconds + 0.1)
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    lane.safety(ON)
    assert lane.actions() == OPENED_AGAIN


def test_lost_open_of_a_gate_that_has_closed_meanwhile_is_left_at_that(closing):
    lane, opening = closing
    fail(lane, opening, sent=True)
    lane.gate(GatePosition.CLOSED)
    lane.safety(ON)
    lane.wait(60)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_close_is_watched_as_soon_as_the_open_in_its_place_is_not_answered(closing):
    lane, opening = closing
    fail(lane, opening, sent=True)
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    lane.safety(ON)
    assert lane.actions() == OPENED_AGAIN


def test_open_without_an_answer_that_worked_all_the_same_ends_the_watch(closing):
    lane, opening = closing
    fail(lane, opening, sent=True)
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    lane.safety(ON)
    lane.wait(5)
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    assert lane.state.visits.phase is Phase.OPEN


def test_close_that_was_lost_with_the_controller_is_watched_on_though_a_vehicle_was_let_in_meanwhile(lane):
    give_close(lane)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.do(m.GateLost("no power"))
    lane.arming(ON)
    lane.card()
    assert lane.actions() == [OPEN, CLOSE], "no command to a controller that is away"
    lane.do(m.GateRegained())
    lane.safety(ON)
    lane.gate(GatePosition.CLOSING)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


@pytest.mark.parametrize("is_seen_closed", [True, False])
def test_close_is_not_watched_for_an_early_open_that_did_not_go_out_once_a_later_one_has_worked(
    closing, is_seen_closed
):
    lane, early = closing
    if is_seen_closed:
        lane.gate(GatePosition.CLOSED)
    lane.wish(OPEN)
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    before = lane.actions()
    fail(lane, early, sent=False)
    lane.safety(ON)
    lane.wait(5)
    assert lane.actions() == before


def come_back(lane, position):
    lane.do(m.GateLost("no power"))
    lane.wait(2, refresh=False)
    lane.do(m.GateRegained())
    lane.gate(position)


def test_close_is_watched_on_after_the_controller_was_lost_with_the_open_in_its_place(closing):
    lane, _opening = closing
    come_back(lane, GatePosition.CLOSING)
    lane.safety(ON)
    assert lane.actions() == OPENED_AGAIN


def test_gate_that_had_closed_before_its_controller_was_lost_is_not_opened_again(closing):
    lane, _opening = closing
    lane.gate(GatePosition.CLOSED)
    come_back(lane, GatePosition.CLOSING)
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


@pytest.mark.parametrize("position", [GatePosition.OPENING, GatePosition.OPEN, GatePosition.STOPPED])
def test_no_gate_closes_before_who_was_let_in_when_its_controller_comes_back(closing, position):
    lane, _opening = closing
    come_back(lane, position)
    if position is GatePosition.OPENING:
        lane.wait(1)
        lane.gate(GatePosition.OPEN)
    assert lane.state.visits.phase is (Phase.OPENING if position is GatePosition.STOPPED else Phase.OPEN)
    lane.wait(lane.rules.lane.opening_seconds - 5)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_gate_that_obeys_its_open_after_the_controller_came_back_is_not_opened_again(closing):
    lane, _opening = closing
    come_back(lane, GatePosition.OPENING)
    lane.closing(ON)
    lane.wait(60)
    assert lane.actions() == [OPEN, CLOSE, OPEN]


def test_no_gate_closes_before_a_vehicle_that_is_still_to_pass_once_its_close_was_undone(closing):
    lane, opening = closing
    lane.closing(ON)
    assert lane.state.visits.phase is Phase.PASSING
    fail(lane, opening, sent=False)
    assert lane.actions() == OPENED_AGAIN
    lane.acknowledge()
    lane.gate(GatePosition.OPENING)
    lane.gate(GatePosition.OPEN)
    lane.wait(1)
    lane.closing(OFF)
    assert lane.state.visits.phase is Phase.OPEN, "it stands on the arming loop and has not passed"
    lane.wait(60)
    assert lane.actions() == OPENED_AGAIN
    lane.drive_through()
    assert lane.actions() == [*OPENED_AGAIN, CLOSE]


def test_close_that_was_being_undone_is_undone_further_when_who_came_meanwhile_got_no_open(lane, who):
    give_close(lane)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.safety(ON)
    undoing = lane.sent[-1]
    opening = let_in(lane, who)
    assert lane.actions() == OPENED_AGAIN
    fail(lane, undoing, sent=False)
    fail(lane, opening, sent=False)
    lane.wait(1.1)
    assert lane.actions() == [*OPENED_AGAIN, OPEN]


def test_close_whose_undoing_fails_three_times_is_given_up(lane, who):
    give_close(lane)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.safety(ON)
    fail(lane, let_in(lane, who), sent=False)
    for _ in range(10):
        fail(lane, lane.sent[-1], sent=True)
        lane.wait(1.1)
    assert lane.actions() == [OPEN, CLOSE, OPEN, OPEN, OPEN, OPEN]


@pytest.mark.parametrize("seen", [GatePosition.CLOSING, GatePosition.OPEN])
def test_opens_that_a_lost_line_refuses_are_no_tries_while_the_close_may_move_the_gate(lane, seen):
    """A line that is opened again for some seconds refuses each at once; one must go out as soon as it is back."""
    give_close(lane)
    lane.acknowledge()
    lane.gate(seen)
    lane.closing(ON)
    for _ in range(6):
        fail(lane, lane.sent[-1], sent=False)
        lane.wait(1.1)
    assert lane.actions() == [OPEN, CLOSE, *[OPEN] * 7]
    for _ in range(3):
        fail(lane, lane.sent[-1], sent=True)
        lane.wait(1.1)
    assert lane.actions() == [OPEN, CLOSE, *[OPEN] * 9]
    assert lane.events.count(E.OPENING_TIMED_OUT) == 1


def test_opens_that_are_never_sent_are_given_up_once_the_close_moves_the_gate_no_more(lane):
    give_close(lane)
    lane.acknowledge()
    lane.closing(ON)
    for _ in range(40):
        if lane.state.commands.flight is not None:
            fail(lane, lane.sent[-1], sent=False)
        lane.wait(1.1)
    tries = int(lane.rules.lane.closing_seconds) + 3
    assert lane.actions().count(OPEN) <= tries + 2
    assert lane.events.count(E.OPENING_TIMED_OUT) == 1


def test_close_is_watched_on_when_two_opens_in_its_place_did_not_go_out(closing):
    lane, first = closing
    second = lane.wish(OPEN)
    fail(lane, first, sent=False)
    fail(lane, second, sent=False)
    lane.safety(ON)
    assert lane.actions() == [*OPENED_AGAIN, OPEN]


def test_close_is_watched_on_when_a_stop_took_the_place_of_the_open(closing):
    lane, opening = closing
    lane.wish(STOP)
    fail(lane, opening, sent=False)
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN, STOP, OPEN]


def test_close_is_watched_on_when_the_open_after_a_stop_that_failed_did_not_go_out(closing):
    lane, opening = closing
    stop = lane.wish(STOP)
    fail(lane, opening, sent=False)
    fail(lane, stop, sent=False)
    assert lane.actions() == [OPEN, CLOSE, OPEN, STOP, OPEN]
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN, STOP, OPEN], "an open is on its way"
    fail(lane, newest(lane, OPEN), sent=False)
    assert lane.actions() == [OPEN, CLOSE, OPEN, STOP, OPEN, OPEN]


@pytest.mark.parametrize("keeps", ["fire", "hold_open"])
def test_close_of_a_gate_that_stood_half_way_is_watched_on_when_it_is_to_be_open(rules, make_script, keeps):
    lane = make_script(changed(rules, fire=POINT))
    lane.ready()
    lane.gate(GatePosition.STOPPED)
    lane.clear()
    close = lane.wish(CLOSE)
    lane.fire(ON) if keeps == "fire" else lane.order(OrderKind.HOLD_OPEN)
    assert lane.actions() == [CLOSE, OPEN]
    fail(lane, close, sent=True)
    fail(lane, lane.sent[-1], sent=False)
    lane.gate(GatePosition.CLOSING)
    fail(lane, lane.sent[-1], sent=False)
    lane.wait(1.1)
    fail(lane, lane.sent[-1], sent=False)
    lane.wait(1.1)
    assert lane.actions() == [CLOSE, OPEN, OPEN, OPEN, OPEN]


def test_open_whose_place_another_took_is_not_sent_once_more(lane, who):
    first = let_in(lane, who)
    second = lane.wish(OPEN)
    fail(lane, first, sent=False)
    lane.do(m.CommandAcknowledged(second.command_id, lane.at))
    lane.gate(GatePosition.OPENING)
    assert lane.actions() == [OPEN, OPEN]


def test_close_of_a_person_that_is_undone_for_who_was_let_in_has_not_failed(lane, who):
    lane.wish(OPEN)
    lane.open_gate()
    lane.wish(CLOSE)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    let_in(lane, who)
    come_back(lane, GatePosition.STOPPED)
    assert lane.state.visits.phase is Phase.OPENING
    assert E.CLOSING_TIMED_OUT not in lane.events


def test_undoing_of_a_close_that_has_not_moved_the_gate_goes_on_when_who_came_meanwhile_got_no_open(lane, who):
    give_close(lane)
    lane.acknowledge()
    lane.safety(ON)
    undoing = lane.sent[-1]
    opening = let_in(lane, who)
    fail(lane, undoing, sent=False)
    fail(lane, opening, sent=False)
    lane.wait(1.1)
    assert lane.actions() == [*OPENED_AGAIN, OPEN]


def test_close_is_watched_on_only_once_the_position_was_read_after_a_loss(closing):
    lane, opening = closing
    lane.wish(STOP)
    lane.do(m.GateLost("no power"))
    fail(lane, opening, sent=False)
    lane.safety(ON)
    lane.do(m.GateRegained())
    assert lane.actions() == [OPEN, CLOSE, OPEN, STOP]
    lane.gate(GatePosition.CLOSING)
    assert lane.actions() == [OPEN, CLOSE, OPEN, STOP, OPEN]


def test_gate_that_its_device_closes_is_left_to_it_when_it_could_not_be_opened_again(rules, make_script):
    lane = make_script(changed(rules, closes="device"))
    lane.ready()
    lane.gate(GatePosition.OPEN)
    lane.clear()
    lane.wish(CLOSE)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.safety(ON)
    lane.wait(4 * lane.rules.lane.opening_seconds)
    assert lane.actions() == [CLOSE, OPEN, OPEN, OPEN]
    lane.safety(OFF)
    lane.gate(GatePosition.OPEN)
    lane.wait(60)
    assert lane.actions() == [CLOSE, OPEN, OPEN, OPEN]


@pytest.mark.parametrize(
    ("position", "opens"),
    [(GatePosition.CLOSED, 1), (GatePosition.CLOSING, 2), (GatePosition.STOPPED, 2)],
    ids=["closed", "closing", "half-way"],
)
def test_undoing_of_a_close_goes_on_after_a_loss_once_the_gate_is_seen_not_to_have_closed(lane, position, opens):
    give_close(lane)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.safety(ON)
    assert lane.actions() == [OPEN, CLOSE, OPEN]
    lane.do(m.GateLost("no power"))
    lane.wait(40)
    lane.do(m.GateRegained())
    assert lane.actions() == [OPEN, CLOSE, OPEN], "its position comes with its return"
    lane.gate(position)
    assert lane.actions() == [OPEN, CLOSE] + [OPEN] * opens


def test_undoing_of_a_close_goes_on_after_a_loss_though_the_position_is_not_told(lane):
    give_close(lane)
    lane.acknowledge()
    lane.gate(GatePosition.CLOSING)
    lane.safety(ON)
    lane.do(m.GateLost("no power"))
    lane.wait(40)
    lane.do(m.GateRegained())
    lane.wait(0.3)
    assert lane.actions() == [OPEN, CLOSE, OPEN, OPEN]


def test_a_close_that_two_opens_were_to_undo_is_watched_on_when_neither_went_out(closing, who):
    """The first vehicle passes meanwhile, since the gate still stood open: a closing that waits hides no close."""
    lane, first = closing
    lane.gate(GatePosition.OPEN)
    lane.drive_through()
    assert lane.state.closing is not None
    second = let_in(lane, who)
    fail(lane, first, sent=False)
    fail(lane, second, sent=False)
    lane.gate(GatePosition.CLOSING)
    lane.safety(ON)
    assert lane.actions()[-1] is OPEN
    assert len(lane.actions()) == 5
