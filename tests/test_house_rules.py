"""Rules of the house that neither the linter nor the import contracts can tell."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STARTS_ON_THE_LOOP = {"create_subprocess_exec", "create_subprocess_shell", "subprocess_exec", "subprocess_shell"}
MAY = {
    "gateway/demo/launcher.py": "it serves nobody, and ties its child before the child's program runs",
}


def starts(source: str) -> Iterator[int]:
    """The lines that start a child on the event loop, which stands still until the child runs."""
    for node in ast.walk(ast.parse(source)):
        names = [node.attr] if isinstance(node, ast.Attribute) else []
        names += [each.name for each in node.names] if isinstance(node, ast.ImportFrom) else []
        if STARTS_ON_THE_LOOP.intersection(names):
            yield node.lineno


def test_children_are_started_by_the_shared_way_that_holds_up_no_loop():
    sources = {
        str(file.relative_to(ROOT)): file for name in ("gateway", "drivers") for file in (ROOT / name).rglob("*.py")
    }
    found = {
        name for name, file in sources.items() if "subprocess_" in (text := file.read_text()) and any(starts(text))
    }
    assert found == set(MAY)


def test_a_start_on_the_loop_is_found_however_it_is_written():
    assert list(starts("import asyncio\nasync def a():\n    await asyncio.create_subprocess_exec('true')\n")) == [3]
    assert list(starts("from asyncio import create_subprocess_shell as run\n")) == [1]
    assert list(starts("loop.subprocess_exec(object, 'true')\n")) == [1]
    assert not list(starts("from drivers.child_process import start_child\n"))
