"""Completion in each shell: of commands, of those of a group, and of options; every list prints JSON."""

from __future__ import annotations

import pytest
from running_gateway import typed
from typer.testing import CliRunner

from gateway.cli.app import Invocation, app


@pytest.mark.parametrize(
    ("words", "offered"),
    [("edge-gateway pro", "probe"), ("edge-gateway probe fol", "follow"), ("edge-gateway doctor --js", "--json")],
    ids=["command", "of-a-group", "option"],
)
def test_bash_zsh_and_fish_are_offered_what_fits(words, offered, tmp_path):
    count = str(len(words.split()) - 1)
    bash = {"_EDGE_GATEWAY_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
    zsh = {"_EDGE_GATEWAY_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": words}
    fish = {
        "_EDGE_GATEWAY_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": words,
    }
    for environ in (bash, zsh, fish):
        assert offered in typed(cwd=tmp_path, **environ).stdout, environ


@pytest.mark.parametrize(
    "command",
    [
        "status", "doctor", "events list", "lanes list", "cards find", "devices list", "cameras list", "users list",
        "users roles list", "users key list", "outbox list", "sync status", "webhooks list",
        "probe lines", "probe bus", "probe unit", "probe follow", "discover", "incidents list",
    ],
)  # fmt: skip
def test_lists_print_json(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    result = CliRunner().invoke(app, [*command.split(), "--help"], obj=Invocation())
    assert result.exit_code == 0, result.output
    assert "--json" in result.stdout
