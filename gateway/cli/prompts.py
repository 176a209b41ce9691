"""Prompts for secrets."""

from __future__ import annotations

import warnings
from getpass import GetPassWarning

import typer

from gateway.domain.errors import ConfigError


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
