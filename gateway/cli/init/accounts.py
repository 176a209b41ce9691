"""The first account of a new site, with its second factor."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import typer

from gateway.cli.init import questions
from gateway.cli.users.accounts import checked_password, hashed, new_password
from gateway.cli.users.register import made
from gateway.cli.users.second_factor import fresh_codes, mfa, show
from gateway.domain.errors import ConfigError
from gateway.web.register.changes import AddAccount, Look, SetSecondFactor

_ROLE = "administrator"
_SECRET = re.compile(r"[A-Z2-7]{16,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAccount:
    """The first account: name, password, and second factor.

    Attributes:
        second_factor: whether it gets a second factor.
        secret: the authenticator's secret in base32 that the installer supplied; "" to make a new one.
    """

    username: str
    password: str = field(repr=False)
    second_factor: bool
    secret: str = field(default="", repr=False)

    @classmethod
    def asked(
        cls, username: str | None, password: Path | None, authenticator: Path | None, *, second_factor: bool
    ) -> Self:
        """Prompt for the values that no option gives. `password` and `authenticator` are files.

        Raises ConfigError for an unsuitable value, OSError for an unreadable file.
        """
        name = questions.answer("First account", username, default="technician", check=questions.account_name)
        secret = ""
        if authenticator is not None:
            secret = questions.secret_in(authenticator).replace(" ", "").upper()
            if not _SECRET.fullmatch(secret):
                raise ConfigError(f"{authenticator} must hold an authenticator's secret: 16 to 64 letters of base32")
        text = checked_password(name, questions.secret_in(password)) if password else new_password(name)
        return cls(username=name, password=text, second_factor=second_factor, secret=secret)


def add_first_account(first: FirstAccount, data: Path) -> None:
    """Add the account to those of a data folder, which may be new.

    If the account exists already, from an interrupted attempt, it keeps its password and its second factor.
    """
    known = {account.username: account for account in made(Look(), data, new=True).accounts}
    account = known.get(first.username)
    if account is None:
        made(AddAccount(username=first.username, password_hash=hashed(first.password), role=_ROLE), data)
        typer.echo(f"{first.username} may sign in, with the role {_ROLE}")
    else:
        typer.echo(f"{first.username} has an account here already, which keeps its password")
    if not first.second_factor or (account is not None and account.mfa):
        return
    if not first.secret:
        mfa(first.username, off=False, data=data)
        return
    codes, hashes = fresh_codes()
    made(SetSecondFactor(username=first.username, secret=first.secret, step=0, codes=hashes), data)
    show(codes)
