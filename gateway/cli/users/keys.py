"""`edge-gateway users key`: API keys of programs, for `/api/v1` and `/metrics`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from gateway.cli.printing import print_answers
from gateway.cli.target import USUAL_DATA, Data, JsonWanted
from gateway.cli.users.register import made
from gateway.web.register.changes import AddKey, Look, RemoveKey

KeyName = Annotated[str, typer.Argument(metavar="NAME", help="The key's name.", show_default=False)]

app = typer.Typer(
    no_args_is_help=True,
    help="""Manage the keys of programs, for /api/v1 and /metrics.

    Example: edge-gateway users key add "parking app" --may can_view_devices --days 365
    """,
)


@app.command("add")
def add(
    name: KeyName,
    may: Annotated[
        list[str],
        typer.Option(
            "--may", metavar="PERMISSION", help="A permission; repeat the option for more. '*' is everything."
        ),
    ],
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=36_500, help="Days until the key expires. Default: never.")
    ] = None,
    data: Data = USUAL_DATA,
) -> None:
    """Make a key and show it once. Only its hash is kept.

    Example: edge-gateway users key add "parking app" --may can_view_devices --days 365
    """
    from gateway.web.auth.api_keys import key_hash, new_key  # noqa: PLC0415  # other commands start faster without it

    key = new_key()
    made(AddKey(name=name, key_hash=key_hash(key).hex(), permissions=frozenset(may), days=days), data)
    typer.echo("The key, which is not shown again. Programs send it as `Authorization: Bearer <key>`:", err=True)
    typer.echo(key)


@app.command("list")
def list_keys(data: Data = USUAL_DATA, as_json: JsonWanted = False) -> None:
    """List the keys with their permissions and their ends.

    Example: edge-gateway users key list
    """
    keys = made(Look(), data).keys
    if as_json:
        print_answers(keys)
        return
    for key in keys:
        until = "for ever" if key.expires_at is None else f"until {_day(key.expires_at)}"
        typer.echo(f"{key.name}: {' '.join(key.permissions) or 'nothing'}, {until}")


@app.command("remove")
def remove(name: KeyName, data: Data = USUAL_DATA) -> None:
    """Remove a key. It stops working at once.

    Example: edge-gateway users key remove "parking app"
    """
    made(RemoveKey(name=name), data)
    typer.echo(f"{name} is removed")


def _day(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1_000_000, UTC).strftime("%Y-%m-%d")
