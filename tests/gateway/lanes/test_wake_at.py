"""The machine says itself when it wants to be woken: nothing comes sooner, nothing is missed, and nobody spins."""

from __future__ import annotations

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from lane_rules import POINT, lane_rules

from drivers.contract import GatePosition, PointState
from gateway.domain.access import decide
from gateway.domain.commands import Command, GateAction
from gateway.domain.credentials import Card, Credential
from gateway.lanes.machine import machine
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.state.orders import Order, OrderKind
from gateway.lanes.machine.transition import Transition
from gateway.runtime.clock import Stamp
from gateway.site import Role

GRID = 16
"""Steps a second: a power of two, so that both ways of stepping see exactly equal instants."""

points = st.sampled_from(list(PointState))
waits = st.integers(0, 20 * GRID)
happenings = st.one_of(
    st.tuples(st.sampled_from([Role.ARMING, Role.CLOSING, Role.SAFETY, Role.FAR, Role.FIRE]), points),
    st.tuples(st.just("gate"), st.sampled_from(list(GatePosition))),
    st.tuples(st.just("card"), st.booleans()),
    st.tuples(st.just("plate"), st.sampled_from(["AAA111", "AAA112", "ZZZ999"])),
    st.tuples(st.just("keys"), st.sampled_from(["12", "34#"])),
    st.tuples(st.just("wish"), st.sampled_from(list(GateAction))),
    st.tuples(st.just("order"), st.sampled_from([None, *OrderKind])),
    st.tuples(st.just("acknowledged"), st.none()),
    st.tuples(st.just("lost"), st.none()),
    st.tuples(st.just("regained"), st.none()),
)
stories = st.lists(st.tuples(waits, happenings), max_size=25)
lanes = st.builds(
    lane_rules,
    closes=st.sampled_from(["gateway", "device"]),
    direction=st.sampled_from(["entry", "two-way"]),
    vend=st.sampled_from(["momentary", "counted", "supervised"]),
    pin=st.booleans(),
    fire=st.just(POINT),
    plate_sure=st.just(0.9),
    stale_seconds=st.sampled_from([5.0, 1e6]),
)


class Player:
    """Plays a story; time between its happenings passes as `pass_time` says."""

    def __init__(self, rules: LaneRules) -> None:
        self.rules = rules
        self.state = LaneState()
        self.step = 0
        self.said: list[tuple[int, m.LaneCommand]] = []
        self.ticks = 0

    def do(self, event: m.LaneEvent) -> None:
        at = self.step / GRID
        outcome = machine.handle(self.rules, self.state, event, m.Now(at, Stamp(int(at * 1e6), trusted=True)))
        self.state = outcome.state
        for command in outcome.commands:
            self.said.append((self.step, command))
            if isinstance(command, m.Decide):
                cards = (Card(7, "0007"),) if command.credential.shown() in {"0007", "AAA111"} else ()
                self.do(m.Decided(command.number, decide(command.credential, cards, now=0)))

    def fine(self, until: int) -> None:
        while self.step < until:
            self.step += 1
            self.do(m.Ticked())

    def exact(self, until: int) -> None:
        while True:
            wake = machine.wake_at(self.rules, self.state)
            assert wake is None or wake > self.step / GRID, "it would be woken for nothing, again and again"
            if wake is None or wake * GRID > until:
                break
            assert (wake * GRID).is_integer()
            self.step = int(wake * GRID)
            self.ticks += 1
            self.do(m.Ticked())
        self.step = until

    def happen(self, what: object, value: object) -> None:
        at = self.step / GRID
        match what, value:
            case Role() as role, PointState() as state:
                self.do(m.InputReported(role, state, at))
            case "gate", GatePosition() as position:
                self.do(m.GateReported(position, at))
            case "card", known:
                self.do(m.CardRead(102, Credential(text="0007" if known else "1"), at))
            case "plate", str() as plate:
                self.do(m.PlateRead(301, plate, 0.8 if plate != "ZZZ999" else 0.95, "", "", at))
            case "keys", str() as keys:
                self.do(m.KeysTyped(102, keys, at))
            case "wish", GateAction() as action:
                command = Command(f"w{self.step}-{len(self.said)}", 101, "in", action, "user:x", 0, 0)
                self.do(m.CommandRequested(command, at + 5))
            case "order", OrderKind() as kind:
                self.do(m.OrderGiven(Order(kind, "user:x"), "user:x"))
            case "order", None:
                self.do(m.OrderGiven(None, "user:x"))
            case "acknowledged", _ if self.state.commands.flight:
                self.do(m.CommandAcknowledged(self.state.commands.flight.command.command_id, at))
            case "lost", _:
                self.do(m.GateLost("unplugged"))
            case "regained", _:
                self.do(m.GateRegained())


@settings(max_examples=examples(30, of=100), deadline=None)
@given(rules=lanes, story=stories)
def test_stepping_from_wake_to_wake_says_the_same_as_stepping_finely(rules, story):
    fine, exact = Player(rules), Player(rules)
    for wait, (what, value) in [*story, (90 * GRID, ("end", None))]:
        until = fine.step + wait
        fine.fine(until)
        exact.exact(until)
        for player in (fine, exact):
            player.happen(what, value)
    assert exact.said == fine.said
    assert exact.ticks <= 40 + 12 * len(story), "woken now and then, not all the time"


NEAR, CLOSING = Role.ARMING, Role.CLOSING
STORIES = {
    "visits": [
        *[(0, (NEAR, PointState.ON)), (16, ("card", True)), (8, ("acknowledged", None))],
        (8, ("gate", GatePosition.OPENING)),
    ],
    "commands_in_flight": [(0, ("gate", GatePosition.OPEN)), (16, ("wish", GateAction.STOP))],
    "readings": [(0, (NEAR, PointState.ON)), (16, ("plate", "AAA111"))],
    "orders": [(0, ("gate", GatePosition.CLOSED)), (16, ("order", OrderKind.HOLD_OPEN))],
    "closing": [
        *[(0, (role, PointState.OFF)) for role in (NEAR, CLOSING, Role.FIRE)],
        *[(0, ("gate", GatePosition.OPEN)), (16, ("order", OrderKind.HOLD_OPEN)), (16, ("order", None))],
    ],
    "troubles": [(0, (CLOSING, PointState.ON))],
}


@pytest.mark.parametrize("part", STORIES)
def test_forgotten_deadline_would_be_noticed(part, monkeypatch):
    rules = lane_rules(fire=POINT, stuck_seconds=20, stale_seconds=1e6)
    fine, exact = Player(rules), Player(rules)
    module = getattr(machine, part)
    due = module.due
    monkeypatch.setattr(module, "due", lambda lane: due(lane) if isinstance(lane, Transition) else ())
    for wait, (what, value) in [*STORIES[part], (90 * GRID, ("end", None))]:
        until = fine.step + wait
        fine.fine(until)
        exact.exact(until)
        for player in (fine, exact):
            player.happen(what, value)
    assert exact.said != fine.said


def test_what_happens_in_a_quiet_lane_needs_no_waking(lane):
    assert machine.wake_at(lane.rules, lane.state) is None
