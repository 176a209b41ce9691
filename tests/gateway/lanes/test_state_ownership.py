"""Every part of a lane's state is made by its own module alone, and changed there or by the module of its concern."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import get_args

from gateway.lanes.machine.state.lane import LaneState, Part

LANES = Path(__file__).resolve().parents[3] / "gateway" / "lanes"
STATE = LANES / "machine" / "state"
PARTS = {part.__name__: part.__module__.rpartition(".")[2] for part in get_args(Part)}
OWNED = {
    "closing.py": {"job"},
    "reopening.py": {"job"},
    "commands_in_flight.py": {"commands"},
    "intruders.py": {"intruders", "intruder"},
    "orders.py": {"orders", "opens"},
    "readings.py": {"readings", "awaited"},
    "stopping.py": {"stop"},
    "troubles.py": {"troubles"},
    "visits.py": {"visits", "visit"},
    "transition.py": {"command"},  # which is no part of the lane's state
}
"""The parts, and values in them, that each module of the machine may change field by field; by their last name."""


def makes(source: str, names: set[str]) -> Iterator[str]:
    """Yield the names of those classes that a source constructs, and `replace` where it is imported."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node.func.id
        elif isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
            yield from (one.name for one in node.names if one.name == "replace")


def test_parts_are_made_in_their_own_modules_alone():
    for file in LANES.rglob("*.py"):
        others = {part for part, module in PARTS.items() if file != STATE / f"{module}.py"}
        made = set(makes(file.read_text(), others)) - {"replace"}
        assert not made or file == STATE / "lane.py", f"{file.name} makes {made}"


def replaced(source: str) -> Iterator[str]:
    """Yield the last name of each value of which a source replaces fields."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "replace":
            value = node.args[0]
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
                value = value.func.value  # it is changed by a transition with a name, too
            yield ast.unparse(value).rpartition(".")[2]


def test_modules_of_the_machine_change_the_parts_of_their_own_concern_alone():
    changed = {file.name: set(replaced(file.read_text())) for file in (LANES / "machine").glob("*.py")}
    assert {name: parts for name, parts in changed.items() if parts} == OWNED


def test_every_part_stands_in_the_state_once():
    state = LaneState()
    parts = [part for part in get_args(Part) if part.__name__ != "Closing"]
    for part in parts:
        assert [type(getattr(state, one.name)) for one in fields(state)].count(part) == 1
    assert state.closing is None


def test_a_maker_is_found():
    assert list(makes("from dataclasses import replace\nx = Stop()", {"Stop"})) == ["replace", "Stop"]


def test_a_change_is_found():
    assert list(replaced("replace(lane.state.stop, by='')\nreplace(job.close_not_sent(1), sent=True)")) == [
        "stop",
        "job",
    ]
