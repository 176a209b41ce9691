"""`edge-gateway reload`: have the running gateway read its site file again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from gateway.cli.target import USUAL_DATA, Data
from gateway.domain.errors import ConfigError, GatewayError
from gateway.web.register.changes import Answer, Reload


def reload(data: Data = USUAL_DATA) -> None:
    """Reload the site file of the running gateway. Camera changes take effect at once.

    Changed passwords take effect at once too. The command lists all other changes: they need a restart. A file with
    faults changes nothing, and the exit status is 2.

    Example: edge-gateway reload
    """
    answer = asyncio.run(_asked(data))
    for fault in answer.faults:
        typer.echo(fault, err=True)
    if answer.faults:
        raise ConfigError("the site file has faults; the gateway keeps running as before")
    if answer.error:
        raise GatewayError(answer.error)
    for sentence in answer.changes or ("no camera is different in the site file; passwords were read again",):
        typer.echo(sentence)
    for name in answer.restart:
        typer.echo(f"takes effect after a restart: {name}")


async def _asked(data: Path) -> Answer:
    from gateway.web.register.socket import NobodyThere, ask  # noqa: PLC0415  # other commands start faster without it

    try:
        return await ask(Reload(), run_folder=data / "run")
    except NobodyThere as error:
        raise GatewayError(f"no gateway runs on {data}; a gateway reads its site file when it starts") from error
