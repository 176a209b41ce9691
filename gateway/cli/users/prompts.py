"""Prompts for a new password or a code."""

from __future__ import annotations

import sys

import typer

from gateway.domain.errors import ConfigError

_LEAST = 8
_LONGEST = 1000


def new_password(username: str) -> str:
    """Ask for a new password, twice; without a terminal, read one line. Raises ConfigError."""
    if sys.stdin.isatty():
        password = str(typer.prompt(f"New password of {username}", hide_input=True, confirmation_prompt="Once more"))
    else:
        password = sys.stdin.readline().removesuffix("\n").removesuffix("\r")
    if not _LEAST <= len(password) <= _LONGEST:
        raise ConfigError(f"a password must have {_LEAST} to {_LONGEST} characters")
    if password.casefold() == username.casefold():
        raise ConfigError("the password must differ from the name")
    return password


def code() -> str:
    """Ask for the code that the authenticator shows."""
    if sys.stdin.isatty():
        return str(typer.prompt("The code that it shows now"))
    return sys.stdin.readline().strip()
