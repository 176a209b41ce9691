from __future__ import annotations

import pytest
from lane_rules import lane_rules

from drivers.contract import Feedback, GatePosition, PointState
from gateway.domain.access import decide
from gateway.domain.commands import Command, CommandState, GateAction
from gateway.domain.credentials import Card, Credential, text_alias
from gateway.domain.events import EventKind
from gateway.domain.passages import Passage
from gateway.lanes.machine import machine
from gateway.lanes.machine import messages as m
from gateway.lanes.machine.rules import LaneRules
from gateway.lanes.machine.state.lane import LaneState
from gateway.lanes.machine.state.orders import Order, OrderKind
from gateway.runtime.clock import Stamp
from gateway.site import Role

CARD = Card(7, "0007", holder="A. Driver", aliases=(text_alias("0007"),))
WALL = 1_700_000_000_000_000


class Script:
    """Plays events into the machine on a virtual clock and keeps what comes out."""

    def __init__(self, rules: LaneRules) -> None:
        self.rules = rules
        self.state = LaneState()
        self.at = 1000.0
        self.out: list[m.LaneCommand] = []
        self.sent: list[Command] = []
        self.events: list[EventKind] = []
        self.texts: list[str] = []
        self.passages: list[Passage] = []
        self.filmed = 0
        self.reached: dict[str, CommandState] = {}
        self.wishes = 0
        self.shown: list[tuple[int, Feedback]] = []
        self.asked: list[m.Decide] = []

    def do(self, event: m.LaneEvent) -> list[m.LaneCommand]:
        now = m.Now(self.at, Stamp(WALL + int(self.at * 1e6), trusted=True))
        step = machine.handle(self.rules, self.state, event, now)
        assert step == machine.handle(self.rules, self.state, event, now), "the machine is a function"
        self.state = step.state
        for command in step.commands:
            self.out.append(command)
            if isinstance(command, m.SendCommand):
                self.sent.append(command.command)
            elif isinstance(command, m.Show):
                self.shown.append((command.reader_id, command.feedback))
            elif isinstance(command, m.Decide):
                self.asked.append(command)
            elif isinstance(command, m.Record):
                self.events += [item.kind for item in command.entry.events]
                self.texts += [item.description for item in command.entry.events]
                self.filmed += len(command.entry.moments)
                if command.entry.passage:
                    self.passages.append(command.entry.passage)
                for item in command.entry.commands:
                    self.reached[item.command_id] = item.state
        return list(step.commands)

    def wait(self, seconds: float, *, refresh: bool = True) -> None:
        """Let time pass: ticks when the machine asks for them, and inputs refreshed every second as drivers do."""
        end = self.at + seconds
        while self.at < end:
            wake = machine.wake_at(self.rules, self.state)
            step = min(end, self.at + 1.0, wake if wake is not None and wake > self.at else end)
            self.at = step
            if refresh:
                self.refresh()
            self.do(m.Ticked())

    def refresh(self) -> None:
        for one in self.rules.inputs:
            state = self.state.inputs.reading(one.role, one.index).state
            self.do(m.InputReported(one.role, state, self.at, one.index))
        self.do(m.GateReported(self.state.inputs.gate.position, self.at))

    def arming(self, state: PointState) -> None:
        self.do(m.InputReported(Role.ARMING, state, self.at))

    def closing(self, state: PointState) -> None:
        self.do(m.InputReported(Role.CLOSING, state, self.at))

    def safety(self, state: PointState, index: int = 0) -> None:
        self.do(m.InputReported(Role.SAFETY, state, self.at, index))

    def far(self, state: PointState) -> None:
        self.do(m.InputReported(Role.FAR, state, self.at))

    def fire(self, state: PointState) -> None:
        self.do(m.InputReported(Role.FIRE, state, self.at))

    def key_switch(self, state: PointState) -> None:
        self.do(m.InputReported(Role.KEY_SWITCH, state, self.at))

    def order(self, kind: OrderKind | None, reason: str = "market day") -> None:
        order = None if kind is None else Order(kind, "user:guard", reason)
        self.do(m.OrderGiven(order, "user:guard"))

    def plate(
        self,
        plate: str,
        confidence: float = 0.8,
        vehicle: str = "",
        direction: str = "",
        card: int | None = None,
        camera: int = 301,
    ) -> None:
        cards = frozenset() if card is None else frozenset({card})
        self.do(m.PlateRead(camera, plate, confidence, vehicle, direction, self.at, cards))

    def keys(self, keys: str) -> None:
        self.do(m.KeysTyped(102, keys, self.at))

    def answer(self, *, granted: bool) -> None:
        """Let the decision that was asked for last come."""
        asked = self.asked[-1]
        cards = (CARD,) if granted else ()
        self.do(m.Decided(asked.number, decide(asked.credential, cards, now=WALL)))

    def gate(self, position: GatePosition) -> None:
        self.at += 0.01
        self.do(m.GateReported(position, self.at))

    def ready(self) -> None:
        """A lane after its first polls: everything free, gate closed."""
        self.at -= self.rules.lane.clear_after_loss_seconds
        self.do(m.GateRegained())
        for one in self.rules.inputs:
            self.do(m.InputReported(one.role, PointState.OFF, self.at, one.index))
        self.gate(GatePosition.CLOSED)
        self.wait(self.rules.lane.clear_after_loss_seconds)
        self.out.clear()

    def card(self, text: str = "0007", reader: int = 102, *, held: bool = False) -> None:
        """Present a card and let the decision come at once. `held`: it has stayed at the reader since."""
        for command in self.do(m.CardRead(reader, Credential(text=text), self.at, held)):
            if isinstance(command, m.Decide):
                cards = (CARD,) if text == CARD.number else ()
                decision = decide(command.credential, cards, now=WALL)
                self.do(m.Decided(command.number, decision))

    def acknowledge(self) -> None:
        self.at += 0.01
        self.do(m.CommandAcknowledged(self.sent[-1].command_id, self.at))

    def open_gate(self) -> None:
        self.acknowledge()
        self.gate(GatePosition.OPENING)
        self.wait(1)
        self.gate(GatePosition.OPEN)

    def close_gate(self) -> None:
        self.acknowledge()
        self.gate(GatePosition.CLOSING)
        self.wait(1)
        self.gate(GatePosition.CLOSED)

    def is_opened(self) -> None:
        """A vehicle comes, its card is read, and the gate begins to open."""
        self.arming(PointState.ON)
        self.card()
        self.acknowledge()
        self.gate(GatePosition.OPENING)

    def let_in(self) -> None:
        """A vehicle comes, its card is read, and the gate is open."""
        self.arming(PointState.ON)
        self.card()
        self.open_gate()

    def next_arrives(self) -> None:
        """The vehicle is under the gate, and the next one stands where it stood."""
        self.closing(PointState.ON)
        self.arming(PointState.OFF)
        self.wait(0.5)
        self.arming(PointState.ON)

    def drive_through(self) -> None:
        self.closing(PointState.ON)
        self.wait(0.5)
        self.arming(PointState.OFF)
        self.wait(0.5)
        self.closing(PointState.OFF)
        self.clear()

    def clear(self) -> None:
        """Let so much time pass that what is free counts as clear."""
        self.wait(self.rules.lane.clear_seconds + 0.1)

    def wish(self, action: GateAction, life: float = 5.0) -> Command:
        self.wishes += 1
        command = Command(f"wish-{self.wishes}", 101, "in", action, "user:demo", WALL, WALL + 5_000_000)
        self.do(m.CommandRequested(command, self.at + life))
        return command

    def actions(self) -> list[GateAction]:
        return [command.action for command in self.sent]


@pytest.fixture(scope="session")
def make_script() -> type[Script]:
    return Script


@pytest.fixture
def rules() -> LaneRules:
    return lane_rules()


@pytest.fixture
def lane(rules: LaneRules) -> Script:
    script = Script(rules)
    script.ready()
    return script


@pytest.fixture
def fresh_lane(rules: LaneRules) -> Script:
    """A lane right after the program's start: nothing is known."""
    return Script(rules)
