"""Promises 1 and 2 under any order of events, judged by what was reported alone; planted bugs show that it can fail.

1. Close is never sent while a safety point is active, unknown or stale (nor during a fire, or under the key switch),
   nor before every point that a vehicle holds has been off for a while; what comes into its way has it opened again.
2. No command is sent twice, none after its deadline, none kept for a controller that is away; nothing opens without a
   grant, a person, a fire or an order, and nobody is let in while the lane is locked down.
"""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from lane_rules import POINT, lane_rules

from drivers.contract import GatePosition, PointState
from gateway.domain.access import decide
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.credentials import Card, Credential
from gateway.lanes.machine import closing, commands_in_flight, machine, readings, reopening, safety, stopping
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.state.orders import Order, OrderKind
from gateway.lanes.machine.transition import AT_EACH_STEP
from gateway.runtime.clock import Stamp
from gateway.site import Role

ON, OFF, UNKNOWN = PointState.ON, PointState.OFF, PointState.UNKNOWN
STALE = 5.0
CLEAR, CLEAR_AFTER_LOSS = 1.0, 3.0
FINAL = {CommandState.DONE, CommandState.REFUSED, CommandState.UNKNOWN}
GUARDS = ((Role.CLOSING, 0), (Role.SAFETY, 0), (Role.SAFETY, 1), (Role.FIRE, 0), (Role.KEY_SWITCH, 0))
OBSTRUCTIONS = GUARDS[:3]
INPUTS = (*GUARDS, (Role.ARMING, 0), (Role.FAR, 0))
often_off = st.sampled_from([OFF, OFF, ON, UNKNOWN])
shapes = st.tuples(st.booleans(), st.booleans(), st.sampled_from(["momentary", "counted", "supervised"]))


class LaneLife(RuleBasedStateMachine):
    """One lane, its field, and people. What it knows of the field it knows from its own reports, not from the lane."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 100.0
        self.wishes = 0
        self.boots = 0
        self.reported: dict[tuple[Role, int], tuple[PointState, float]] = {}
        self.free_from: dict[tuple[Role, int], float] = {}
        self.returned: dict[tuple[Role, int], float] = {}
        self.may_close = False
        self.position = (GatePosition.UNKNOWN, 0.0)
        self.away = False
        self.order: OrderKind | None = None
        self.on_fire = False
        self.sent: dict[str, GateAction] = {}
        self.asked: dict[str, float] = {}
        self.reached: dict[str, CommandState] = {}
        self.late: set[str] = set()
        self.grants = 0
        self.opened = 0

    @initialize(shape=shapes)
    def begin(self, shape):
        own, two_way, vend = shape
        closes = "device" if own and vend == "momentary" else "gateway"
        self.shape = {"closes": closes, "direction": "two-way" if two_way else "entry", "vend": vend}
        self.shape |= {"far": POINT} if two_way else {}
        self.restart()
        self.all_free()
        self.gate(GatePosition.CLOSED)

    # The field

    @rule()
    def restart(self):
        """A power cut: the lane begins anew and knows nothing; its field is where it was."""
        self.boots += 1
        self.rules = lane_rules(
            boot=f"boot{self.boots}",
            safety_points=2,
            fire=POINT,
            key_switch=POINT,
            clear_seconds=CLEAR,
            clear_after_loss_seconds=CLEAR_AFTER_LOSS,
            stale_seconds=STALE,
            **self.shape,
        )
        self.state = LaneState()
        self.reported, self.position = {}, (GatePosition.UNKNOWN, 0.0)
        self.may_close = False
        self.reached = dict.fromkeys(self.sent, CommandState.UNKNOWN)
        self.order, self.on_fire, self.away = None, False, False
        self.decisions_before = 0
        self.do(m.GateRegained())

    @rule(which=st.sampled_from(INPUTS), state=often_off)
    def point(self, which, state):
        role, index = which
        before, seen_at = self.reported.get(which, (UNKNOWN, float("-inf")))
        if state is not UNKNOWN and (before is UNKNOWN or self.at - seen_at > STALE):
            self.returned[which] = self.at
        if state is OFF and before is not OFF:
            self.free_from[which] = self.at
        self.reported[which] = (state, self.at)
        if role is Role.FIRE and state is not UNKNOWN:
            self.on_fire = state is ON
        self.do(m.InputReported(role, state, self.at, index))

    @rule(free=st.booleans())
    def refresh(self, free):
        """The drivers' next poll."""
        for which in INPUTS:
            state = self.reported.get(which, (OFF, 0.0))[0]
            self.point(which, OFF if free and which in GUARDS else state)
        if not self.away:
            self.gate(self.position[0])

    @rule(position=st.sampled_from(list(GatePosition)))
    def gate(self, position):
        if not self.away:
            self.position = (position, self.at)
            if position is GatePosition.CLOSED:
                self.may_close = False
            self.do(m.GateReported(position, self.at))

    @rule()
    def lost(self):
        self.away, self.position = True, (GatePosition.UNKNOWN, self.at)
        self.do(m.GateLost("unplugged"))

    @rule()
    def regained(self):
        self.away = False
        self.do(m.GateRegained())

    @rule()
    def vehicle_passes(self):
        """Let a vehicle with a card pass, as far as the lane lets it."""
        self.all_free()
        self.point((Role.ARMING, 0), ON)
        self.card(True)
        self.acknowledged()
        self.wait(0.5)
        self.gate(GatePosition.OPEN)
        self.point((Role.CLOSING, 0), ON)
        self.point((Role.ARMING, 0), OFF)
        self.wait(0.5)
        self.point((Role.CLOSING, 0), OFF)

    @rule(which=st.sampled_from(OBSTRUCTIONS), state=st.sampled_from([ON, UNKNOWN, OFF]), heard=st.booleans())
    def something_comes_while_it_closes(self, which, state, heard):
        """OFF stands for a point that is not refreshed any more."""
        self.all_clear()
        self.gate(GatePosition.OPEN)
        count = len(self.sent)
        self.wish(GateAction.CLOSE, False)
        closes = len(self.sent) > count
        if closes and heard:
            self.acknowledged()
        elif closes:
            self.failed(sent=True)
        if state is not OFF:
            self.point(which, state)
        else:
            for other in OBSTRUCTIONS:
                if other != which:
                    self.point(other, OFF)
            self.wait(STALE)
        if closes and self.may_close and not self.away:
            last = list(self.sent.values())[-1]
            assert last is GateAction.OPEN, "what closes onto something is opened again"

    @rule(which=st.sampled_from(OBSTRUCTIONS), fate=st.sampled_from(["none", "refused", "lost", "taken"]))
    def something_comes_over_a_stop_that_does_not_work(self, which, fate):
        self.all_clear()
        self.gate(GatePosition.OPEN)
        count = len(self.sent)
        self.wish(GateAction.CLOSE, False)
        if len(self.sent) == count:
            return
        self.acknowledged()
        self.gate(GatePosition.CLOSING)
        self.wish(GateAction.STOP, False)
        if fate == "taken":
            self.acknowledged()
        elif fate != "none":
            self.failed(sent=fate == "lost")
        self.wait(0.1)
        self.gate(GatePosition.CLOSING)
        self.point(which, ON)
        assert list(self.sent.values())[-1] is GateAction.OPEN, "a stop that does not work takes nothing away"

    @rule(seconds=st.sampled_from([0.1, 9.0, 35.0]), loses=st.booleans(), blinks=st.booleans())
    def nothing_moves_what_a_person_stopped(self, seconds, loses, blinks):
        self.all_free()
        self.gate(GatePosition.OPENING)
        self.wish(GateAction.STOP, False)
        self.acknowledged()
        self.wait(0.1)
        self.gate(GatePosition.STOPPED)
        if self.away or self.state.commands.flight is not None:
            return
        count = len(self.sent)
        if blinks and self.on_fire:
            self.point((Role.FIRE, 0), OFF)
            self.point((Role.FIRE, 0), ON)
        if loses:
            self.lost()
            self.regained()
            self.gate(GatePosition.STOPPED)
        self.do(m.OrderScheduled(Order(OrderKind.HOLD_OPEN, "schedule")))
        self.wait(seconds)
        self.do(m.OrderScheduled(None))
        self.all_clear()
        self.gate(GatePosition.STOPPED)
        self.wait(seconds)
        assert len(self.sent) == count, "what a person stopped stays so"

    @rule(which=st.sampled_from(GUARDS), state=st.sampled_from([ON, UNKNOWN, OFF]))
    def close_asked_for_with_one_point_not_free(self, which, state):
        """OFF stands for free when last seen, and not seen since."""
        self.all_clear()
        if state is OFF:
            self.wait(STALE + 0.1)
        for other in GUARDS:
            if other != which:
                self.point(other, OFF)
        self.gate(GatePosition.OPEN)
        if state is not OFF:
            self.point(which, state)
        self.wish(GateAction.CLOSE, False)

    @rule(which=st.sampled_from(OBSTRUCTIONS), seconds=st.sampled_from([0.0, 0.1, 0.9]))
    def close_asked_for_while_a_point_drops_out(self, which, seconds):
        self.all_clear()
        self.gate(GatePosition.OPEN)
        self.point(which, ON)
        self.point(which, OFF)
        self.wait(seconds)
        self.point(which, OFF)
        self.wish(GateAction.CLOSE, False)

    @rule(which=st.sampled_from(OBSTRUCTIONS), seconds=st.sampled_from([0.5, 1.5, 2.5]))
    def close_asked_for_soon_after_a_loss(self, which, seconds):
        self.all_clear()
        self.gate(GatePosition.OPEN)
        self.point(which, UNKNOWN)
        self.point(which, OFF)
        self.wait(seconds)
        self.point(which, OFF)
        self.wish(GateAction.CLOSE, False)

    @rule()
    def close_asked_for_while_held_open(self):
        self.standing_order(OrderKind.HOLD_OPEN)
        self.all_clear()
        self.gate(GatePosition.OPEN)
        self.wish(GateAction.CLOSE, False)

    def all_free(self):
        for which in INPUTS:
            self.point(which, OFF)

    def all_clear(self):
        self.all_free()
        self.wait(CLEAR_AFTER_LOSS)
        self.all_free()

    # People

    @rule(granted=st.booleans())
    def card(self, granted):
        self.do(m.CardRead(102, Credential(text="0007"), self.at))
        self.decided(granted)

    @rule(granted=st.booleans())
    def decided(self, granted):
        cards = (Card(7, "0007"),) if granted else ()
        self.grants += granted
        self.do(m.Decided(self.state.readings.decisions, decide(Credential(text="0007"), cards, now=0)))

    @rule(action=st.sampled_from(list(GateAction)), late=st.sampled_from([False, False, True]))
    def wish(self, action, late):
        self.wishes += 1
        deadline = self.at if late else self.at + 5
        command = wish_of(f"wish-{self.wishes}", action)
        self.asked[command.command_id] = deadline
        if late or self.away:
            self.late.add(command.command_id)
        vehicle = self.state.visits.present
        self.do(m.CommandRequested(command, deadline))
        if action is not GateAction.OPEN:
            assert self.state.visits.present == vehicle, "no right of way ends by a command that may be refused"

    @rule(kind=st.sampled_from([None, *OrderKind]))
    def standing_order(self, kind):
        self.order = kind
        self.do(m.OrderGiven(None if kind is None else Order(kind, "user:x"), "user:x"))

    # The line and the clock

    @rule()
    def acknowledged(self):
        if self.state.commands.flight is not None:
            self.do(m.CommandAcknowledged(self.state.commands.flight.command.command_id, self.at))

    @rule(sent=st.booleans())
    def failed(self, sent):
        if self.state.commands.flight is not None:
            self.do(m.CommandFailed(self.state.commands.flight.command.command_id, "no answer", sent=sent))

    @rule(sent=st.booleans(), is_first=st.booleans())
    def superseded_ended(self, sent, is_first):
        if self.state.commands.superseded:
            command_id = self.state.commands.superseded[0 if is_first else -1].command.command_id
            failed = m.CommandFailed(command_id, "a later command has taken its place", sent=False)
            self.do(m.CommandAcknowledged(command_id, self.at) if sent else failed)

    @rule(seconds=st.sampled_from([0.1, 1.0, 2.5, 4.9, 5.1, 9.0, 35.0]))
    def wait(self, seconds):
        end = self.at + seconds
        while True:
            wake = machine.wake_at(self.rules, self.state)
            if wake is None or wake > end:
                break
            self.at = max(self.at, wake)
            self.do(m.Ticked())
        self.at = end
        self.do(m.Ticked())

    # The judge

    def do(self, event):
        now = m.Now(self.at, Stamp(int(self.at * 1e6), trusted=True))
        step = machine.handle(self.rules, self.state, event, now)
        self.state = step.state
        for command in step.commands:
            if isinstance(command, m.SendCommand):
                self.judge(command)
            elif isinstance(command, m.Record):
                for item in command.entry.commands:
                    assert self.reached.get(item.command_id) not in FINAL, "what was settled stays settled"
                    self.reached[item.command_id] = item.state
        under_way = [one for one in self.sent if self.reached.get(one) not in FINAL]
        superseded = [one.command.command_id for one in self.state.commands.superseded]
        assert len(set(under_way) - set(superseded)) <= 1, "only the command under way may be unfinished"
        assert set(superseded) <= set(under_way)
        if self.state.inputs.closing.is_off():
            assert self.state.intruders.present is None, "nobody is on a closing loop that is off"

    def judge(self, send):
        command = send.command
        assert command.command_id not in self.sent, "a command is sent once"
        self.sent[command.command_id] = command.action
        assert not self.away, "nothing is sent to a controller that is away"
        assert command.command_id not in self.late
        assert self.at < send.deadline <= self.asked.get(command.command_id, send.deadline)
        if command.action is GateAction.CLOSE:
            self.judge_close(command)
            self.may_close = True
        elif command.action is GateAction.OPEN and command.source == "lane":
            kept = self.on_fire or self.order is OrderKind.HOLD_OPEN
            self.opened += not kept and not self.closes_onto_something()
            assert self.opened <= self.grants, "nothing opens without a grant, a person, a fire or an order"
        if command.action is GateAction.OPEN and self.order is OrderKind.LOCK_DOWN:
            assert self.on_fire or self.closes_onto_something(), "locked down"

    def closes_onto_something(self):
        """A close went out, the gate was not seen closed since, and a point is not known to be free."""
        points = (self.reported.get(which, (UNKNOWN, 0.0)) for which in OBSTRUCTIONS)
        back = any(self.at < self.returned.get(which, 0.0) + CLEAR_AFTER_LOSS for which in OBSTRUCTIONS)
        return self.may_close and (back or any(state is not OFF or self.at - at >= STALE for state, at in points))

    def judge_close(self, command):
        for which in GUARDS:
            state, at = self.reported.get(which, (UNKNOWN, 0.0))
            assert state is OFF, f"close with {which[0]} {state}"
            assert self.at - at <= STALE, f"close with {which[0]} stale"
        for which in OBSTRUCTIONS:
            assert self.at >= self.free_from[which] + CLEAR, f"close with {which[0]} off for a moment only"
            assert self.at >= self.returned[which] + CLEAR_AFTER_LOSS, f"close with {which[0]} back for a moment only"
            read = self.reported[which][1]
            assert read > max(self.free_from[which], self.returned[which]), f"close after one reading of {which[0]}"
        position, at = self.position
        assert position is not GatePosition.UNKNOWN
        assert self.at - at <= STALE
        assert not self.on_fire
        assert self.order is not OrderKind.HOLD_OPEN
        assert not (self.rules.closes_itself and command.source == "lane"), "its device closes it"


def wish_of(command_id, action):
    return Command(command_id, 101, "in", action, "user:demo", 0, 0)


def run(*, examples: int) -> None:
    searching = settings(
        max_examples=examples,
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        print_blob=False,
    )
    run_state_machine_as_test(LaneLife, settings=searching)


TestLaneLife = LaneLife.TestCase
TestLaneLife.settings = settings(max_examples=examples(40, of=100), stateful_step_count=30, deadline=None)


def test_a_gate_that_was_seen_closed_is_not_opened_for_what_comes_later():
    """Its open may be under way when the gate is seen closed: then the close is over, and only that open counts."""
    life = LaneLife()
    life.begin(shape=(False, False, "momentary"))
    life.something_comes_while_it_closes(heard=False, state=ON, which=(Role.CLOSING, 0))
    life.gate(position=GatePosition.CLOSED)
    life.gate(position=GatePosition.UNKNOWN)
    life.close_asked_for_with_one_point_not_free(state=OFF, which=(Role.CLOSING, 0))
    life.teardown()


def without(name, part=closing):
    """A `why_not_close` that overlooks one thing."""

    def overlooking(rules, state, now):
        reason = safety.why_not_close(rules, state, now)
        return "" if name in str(reason) else reason

    return part, "why_not_close", overlooking


def never_opens_again():
    return reopening, "watch", lambda lane, job: False


def stop_forgets_the_close():
    asked = stopping.asked

    def careless_stop(lane, event):
        asked(lane, event)
        lane.drop_closing()

    return stopping, "asked", careless_stop


def stop_is_forgotten_with_the_controller():
    lost = closing.gate_lost

    def forgetful(lane):
        lost(lane)
        lane.put(lane.state.stop.ended())
        closing.begin(lane)

    return closing, "gate_lost", forgetful


def late_is_sent():
    taken = machine.command_requested

    def careless(lane, event):
        if lane.now.at >= event.deadline:
            commands_in_flight.send(lane, event.command, lane.now.at + 5)
        else:
            taken(lane, event)

    return machine, "command_requested", careless


def replayed():
    due = commands_in_flight.due

    def stubborn(lane):
        flight = lane.state.commands.flight
        yield from due(lane)
        if flight is not None and lane.state.commands.flight is None:
            yield AT_EACH_STEP, lambda lane: commands_in_flight.send(lane, flight.command, lane.now.at + 5)

    return commands_in_flight, "due", stubborn


def sent_to_nobody():
    taken = machine.command_requested

    def careless(lane, event):
        if lane.state.inputs.gate_lost:
            commands_in_flight.send(lane, event.command, event.deadline)
        else:
            taken(lane, event)

    return machine, "command_requested", careless


def refused_close_ends_the_visit():
    asked = closing.operator_closes

    def hasty(lane, event):
        asked(lane, event)
        lane.rest()

    return closing, "operator_closes", hasty


def opens_for_everybody():
    taken = readings.card_read

    def generous(lane, event):
        taken(lane, event)
        commands_in_flight.send(lane, lane.command(GateAction.OPEN), lane.now.at + 5)

    return readings, "card_read", generous


@pytest.mark.parametrize(
    "planted",
    [
        without("active"),
        without("unknown or stale"),
        without("safety point 2"),
        without("fire"),
        without("key switch"),
        without("position is not known"),
        without("held open"),
        without("for 1 s yet"),
        without("for 3 s yet"),
        never_opens_again(),
        stop_forgets_the_close(),
        stop_is_forgotten_with_the_controller(),
        late_is_sent(),
        replayed(),
        sent_to_nobody(),
        opens_for_everybody(),
        refused_close_ends_the_visit(),
    ],
    ids=lambda planted: getattr(planted[2], "__name__", "bug"),
)
def test_planted_bug_is_found(planted, monkeypatch):
    monkeypatch.setattr(*planted)
    with pytest.raises(AssertionError):
        run(examples=400)
