"""What the documents tell people to write is what the program takes."""

from __future__ import annotations

import importlib.util
import re
import shlex
import textwrap
from pathlib import Path

import pytest
import typer

from drivers.modbus.profile import load_profile
from gateway.cli.app import app
from gateway.site import Secrets, load

ROOT = Path(__file__).resolve().parents[1]


def blocks(document: str) -> list[str]:
    text = (ROOT / document).read_text("utf-8")
    return [textwrap.dedent(found) for found in re.findall(r"^ *```toml\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)]


def commands() -> list[tuple[str, str]]:
    """Whole commands of the documents: all of the README's, and those that stand in a block of their own."""
    found = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        text = path.read_text("utf-8")
        lines = re.findall(r"^(?:sudo )?(edge-gateway [^#\n]+)", text, re.MULTILINE)
        if path.name == "README.md":
            lines += re.findall(r"`(?:sudo )?(edge-gateway [^`]+)`", text)
        found += [(path.name, line.strip()) for line in lines]
    return found


@pytest.mark.parametrize(("document", "command"), commands())
def test_a_command_of_the_documents_is_one(document, command):
    reader, words = typer.main.get_command(app), shlex.split(command)[1:]
    context = typer.Context(reader)
    while isinstance(reader, typer.core.TyperGroup):
        context = typer.Context(reader, parent=context)
        name, reader, words = reader.resolve_command(context, words)
    reader.make_context(name, words, parent=context)  # refuses unknown options, and what is left out


def test_the_profile_of_the_guide_is_one(tmp_path):
    (text,) = blocks("docs/profiles.md")
    path = tmp_path / "yard-barrier.toml"
    path.write_text(text)
    profile = load_profile(path)
    assert profile.points["arming_loop"].inverted
    assert profile.commands.close is not None


def test_the_site_of_the_readme_is_good(tmp_path):
    (text,) = blocks("README.md")
    path = tmp_path / "site.toml"
    path.write_text(text)
    secrets = Secrets(folder=tmp_path, environ={"EDGE_GATEWAY_SECRET_TECHNICIAN_PASSWORD": "x"})
    assert load(path, secrets=secrets).lanes[0].name == "Entry"


@pytest.mark.parametrize("name", ["interface_coverage", "interface_for_programs"])
def test_a_page_that_is_made_is_fresh(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert made.PAGE.read_text("utf-8") == made.page(), "run: make docs"
