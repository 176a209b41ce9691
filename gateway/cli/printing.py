"""JSON output of commands, for programs; and prompts for secrets."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable
from getpass import GetPassWarning

import typer
from pydantic import BaseModel, JsonValue

from gateway.domain.errors import ConfigError


def print_json(told: bytes) -> None:
    """Print a gateway's answer as indented JSON."""
    typer.echo(json.dumps(json.loads(told), indent=2, ensure_ascii=False))


def print_value(value: JsonValue) -> None:
    """Print what a command found itself as indented JSON."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def print_answers(shown: Iterable[BaseModel]) -> None:
    """Print models as an indented JSON list."""
    typer.echo(json.dumps([one.model_dump(mode="json") for one in shown], indent=2, ensure_ascii=False))


def secret_line(data: bytes, source: str) -> str:
    """Return the first line of what a file or a pipe gave, "" if there is none.

    A byte order mark, as some editors write it, is left out. Raises ConfigError if it is not UTF-8: nobody could type
    what another reading makes of it.
    """
    try:
        return (data.decode("utf-8-sig").splitlines() or [""])[0]
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source} is not text in UTF-8; write it again in UTF-8") from error


def prompt_for_secret(question: str, *, otherwise: str, twice: bool = False) -> str:
    """Prompt for a secret without showing it.

    Args:
        question: the text of the prompt.
        otherwise: how the secret can be given without a terminal.
        twice: whether it has to be typed once more.

    Raises:
        ConfigError: there is no terminal.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", GetPassWarning)
        try:
            return str(typer.prompt(question, hide_input=True, err=True, confirmation_prompt=twice))
        except GetPassWarning as error:
            typer.echo(err=True)  # ends the line of the prompt
            raise ConfigError(f"there is no terminal to ask for a secret at; {otherwise}") from error
