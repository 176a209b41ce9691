"""`edge-gateway users roles`: roles and their permissions."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.cli.printing import print_answers
from gateway.cli.target import USUAL_DATA, Data, JsonWanted
from gateway.cli.users.register import made
from gateway.web.register.changes import Look, PutRole, RemoveRole

RoleName = Annotated[str, typer.Argument(metavar="ROLE", help="The role's name.", show_default=False)]

app = typer.Typer(
    no_args_is_help=True,
    help="""Manage roles: sets of permissions for accounts.

    Example: edge-gateway users roles set porter can_view_devices can_control_devices
    """,
)


@app.command("list")
def list_roles(data: Data = USUAL_DATA, as_json: JsonWanted = False) -> None:
    """List the roles with their permissions.

    Example: edge-gateway users roles list
    """
    roles = made(Look(), data).roles
    if as_json:
        print_answers(roles)
        return
    for role in roles:
        typer.echo(f"{role.name}: {' '.join(role.permissions) or 'nothing'}")


@app.command("set")
def set_role(
    name: RoleName,
    permissions: Annotated[
        list[str] | None,
        typer.Argument(metavar="PERMISSION", help="Permissions of the interface, or '*' for all.", show_default=False),
    ] = None,
    data: Data = USUAL_DATA,
) -> None:
    """Add a role or change its permissions. Its users must sign in again.

    Example: edge-gateway users roles set porter can_view_devices can_control_devices
    """
    made(PutRole(name=name, permissions=frozenset(permissions or ())), data)
    unknown = unasked(permissions or [])
    if unknown:
        typer.echo(f"no operation needs {', '.join(unknown)}: check the spelling", err=True)
    typer.echo(f"{name} allows {' '.join(sorted(permissions or ())) or 'nothing'}")


@app.command("remove")
def remove_role(name: RoleName, data: Data = USUAL_DATA) -> None:
    """Remove a role that no account has.

    Example: edge-gateway users roles remove porter
    """
    made(RemoveRole(name=name), data)
    typer.echo(f"{name} is removed")


def unasked(permissions: list[str]) -> list[str]:
    """Return the permissions that no operation needs, which are probably misspelt."""
    from gateway.web import catalogue  # noqa: PLC0415  # other commands answer faster without it
    from gateway.web.operation import EVERYTHING  # noqa: PLC0415  # likewise

    asked = {name for operation in catalogue.OPERATIONS for group in operation.rule.groups for name in group}
    return sorted(set(permissions) - asked - {EVERYTHING})
