"""JSON output of commands, for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable

import typer
from pydantic import BaseModel, JsonValue


def print_json(told: bytes) -> None:
    """Print a gateway's answer as indented JSON."""
    typer.echo(json.dumps(json.loads(told), indent=2, ensure_ascii=False))


def print_value(value: JsonValue) -> None:
    """Print what a command found itself as indented JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_answers(shown: Iterable[BaseModel]) -> None:
    """Print models as an indented JSON list."""
    typer.echo(json.dumps([one.model_dump(mode="json") for one in shown], indent=2, ensure_ascii=False))
