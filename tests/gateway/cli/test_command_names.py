"""The commands by name: what is said of one before it is imported, and that no other is."""

import inspect
import subprocess
import sys

import pytest

from gateway.cli.app import FAILED, main
from gateway.cli.commands import NAMED

LISTING = """
import sys
from gateway.cli import main
try:
    main()
finally:
    print(*sorted(name for name in sys.modules if name.startswith(("gateway.", "pydantic", "aiohttp", "drivers"))))
"""


def test_what_is_listed_of_a_command_is_its_own_help():
    for named in NAMED:
        command = named.loaded()
        paragraph = inspect.cleandoc(command.help).partition("\n\n")[0]
        assert (command.name, " ".join(paragraph.split())) == (named.name, named.summary)


def test_help_lists_them_all_and_imports_none():
    words = [sys.executable, "-c", LISTING, "--help"]
    answer = subprocess.run(words, capture_output=True, text=True, check=True, timeout=30)
    *said, imported = answer.stdout.splitlines()
    listed = [line.split()[1] for line in said if line.startswith("│ ") and line[2].isalpha()]
    assert listed == [named.name for named in NAMED]
    assert imported.split() == [
        "gateway.cli", "gateway.cli.app", "gateway.cli.commands", "gateway.domain", "gateway.domain.errors",
        "gateway.runtime", "gateway.runtime.redaction", "gateway.texts",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["demo", "simulate"])
def test_a_tool_that_an_installation_leaves_out_says_where_it_is(monkeypatch, capsys, name):
    monkeypatch.setattr(sys, "argv", ["edge-gateway", name])
    monkeypatch.setitem(sys.modules, "simulation", None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == FAILED
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith(f"edge-gateway: '{name}' is not part of this installation")
    assert "install the wheel" in said
