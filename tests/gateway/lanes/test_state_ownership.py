"""Every part of a lane's state is made by its own module alone."""

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
MAY_REPLACE = {"transition.py": "the state of a command, which is not the lane's"}


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


def test_machine_changes_state_by_named_transitions_alone():
    replacing = {
        file.name for file in (LANES / "machine").glob("*.py") if "replace" in set(makes(file.read_text(), set()))
    }
    assert replacing == set(MAY_REPLACE)


def test_every_part_stands_in_the_state_once():
    state = LaneState()
    parts = [part for part in get_args(Part) if part.__name__ != "Closing"]
    for part in parts:
        assert [type(getattr(state, one.name)) for one in fields(state)].count(part) == 1
    assert state.closing is None


def test_a_maker_is_found():
    assert list(makes("from dataclasses import replace\nx = Stop()", {"Stop"})) == ["replace", "Stop"]
