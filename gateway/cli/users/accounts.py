"""`edge-gateway users`: commands that add, list, change and remove accounts."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gateway.cli.printing import print_answers, secret_line
from gateway.cli.target import USUAL_DATA, Data, JsonWanted
from gateway.cli.users import keys, roles, second_factor
from gateway.cli.users.register import made
from gateway.domain.accounts import password_fault
from gateway.domain.errors import ConfigError
from gateway.web.register.changes import (
    AccountShown,
    AddAccount,
    Look,
    RemoveAccount,
    SetDisabled,
    SetPassword,
    SetRole,
    SignOut,
)

Username = Annotated[str, typer.Argument(metavar="NAME", help="The account's name.", show_default=False)]

app = typer.Typer(
    no_args_is_help=True,
    help="""Manage accounts, roles and the keys of programs.

    Run it as root or as the gateway's user. A running gateway applies a change at once. All sessions of an account end
    when its password, role or second factor changes.

    Example: edge-gateway users add ada --role operator
    """,
)
app.add_typer(roles.app, name="roles")
app.add_typer(keys.app, name="key")
app.command("mfa")(second_factor.mfa)
app.command("recovery")(second_factor.recovery)


@app.command("add")
def add(
    username: Username,
    role: Annotated[str, typer.Option("--role", metavar="ROLE", help="Its role. `users roles list` shows all roles.")],
    data: Data = USUAL_DATA,
) -> None:
    """Add an account. The password is asked for, or is the first line of standard input.

    Example: edge-gateway users add ada --role operator
    """
    made(Look(), data)  # so that a refusal comes before the password is typed
    made(AddAccount(username=username, password_hash=hashed(new_password(username)), role=role), data)
    typer.echo(f"{username} may sign in, with the role {role}")


@app.command("list")
def list_accounts(data: Data = USUAL_DATA, as_json: JsonWanted = False) -> None:
    """List the accounts with their roles.

    Example: edge-gateway users list
    """
    accounts = made(Look(), data).accounts
    if as_json:
        print_answers(accounts)
        return
    wide = max((len(account.username) for account in accounts), default=0)
    for account in accounts:
        typer.echo(f"{account.username:<{wide}}  {_described(account)}")
    if not accounts:
        typer.echo("there are no accounts; `edge-gateway users add` makes one")


@app.command("password")
def password(username: Username, data: Data = USUAL_DATA) -> None:
    """Change a password. It is asked for, or is the first line of standard input.

    Example: edge-gateway users password ada
    """
    made(Look(), data)
    made(SetPassword(username=username, password_hash=hashed(new_password(username))), data)
    typer.echo(f"{username} has a new password; its sessions have ended")


@app.command("role")
def role(
    username: Username,
    name: Annotated[str, typer.Argument(metavar="ROLE", help="Its new role.", show_default=False)],
    data: Data = USUAL_DATA,
) -> None:
    """Give an account another role.

    Example: edge-gateway users role ada viewer
    """
    made(SetRole(username=username, role=name), data)
    typer.echo(f"{username} has the role {name}; all its sessions have ended")


@app.command("disable")
def disable(username: Username, data: Data = USUAL_DATA) -> None:
    """Disable an account. It is kept, but cannot sign in.

    Example: edge-gateway users disable ada
    """
    made(SetDisabled(username=username, disabled=True), data)
    typer.echo(f"{username} may not sign in")


@app.command("enable")
def enable(username: Username, data: Data = USUAL_DATA) -> None:
    """Enable a disabled account.

    Example: edge-gateway users enable ada
    """
    made(SetDisabled(username=username, disabled=False), data)
    typer.echo(f"{username} may sign in")


@app.command("remove")
def remove(username: Username, data: Data = USUAL_DATA) -> None:
    """Remove an account.

    Example: edge-gateway users remove ada
    """
    made(RemoveAccount(username=username), data)
    typer.echo(f"{username} is removed")


@app.command("sign-out")
def sign_out(username: Username, data: Data = USUAL_DATA) -> None:
    """End all sessions of a name. An account of central then needs central to sign in again.

    Example: edge-gateway users sign-out ada
    """
    made(SignOut(username=username), data)
    typer.echo(f"all sessions of {username} have ended")


def hashed(password: str) -> str:
    """Return the argon2id hash of a password, which is stored in its place."""
    from gateway.web.auth.accounts import hash_password  # noqa: PLC0415  # other commands start faster without it

    return hash_password(password)


def _described(account: AccountShown) -> str:
    marks = [account.role]
    if account.mfa:
        marks.append(f"second factor, {account.codes_left} recovery codes left")
    if account.disabled:
        marks.append("disabled")
    return ", ".join(marks)


def new_password(username: str) -> str:
    """Prompt for a new password twice; without a terminal, read one line. Raises ConfigError for an unsuitable one."""
    if sys.stdin.isatty():
        password = str(typer.prompt(f"New password of {username}", hide_input=True, confirmation_prompt="Once more"))
    else:
        password = secret_line(sys.stdin.buffer.readline(), "the password on standard input")
        if not password:
            raise ConfigError("no password was given: there is no terminal to ask at; write it to standard input")
    return checked_password(username, password)


def checked_password(username: str, password: str) -> str:
    """Return the password if it follows the rules (`password_fault`). Raises ConfigError."""
    if fault := password_fault(username, password):
        raise ConfigError(fault)
    return password
