"""`edge-gateway reload`: have the running gateway read its site file again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import typer

from gateway.cli.users.register import USUAL_DATA, Data
from gateway.domain.errors import ConfigError, GatewayError
from gateway.web.register.changes import Answer, Reload


def reload(data: Data = USUAL_DATA) -> None:
    """Reload the site file of the running gateway. Camera changes take effect at once.

    Only the cameras that are different are touched; a password that was changed is taken too. Everything else counts
    from a restart, and is named here. A file with faults changes nothing; exit status 2 then.

    Example: edge-gateway reload
    """
    answer = asyncio.run(_asked(data))
    for fault in answer.faults:
        typer.echo(fault, err=True)
    if answer.faults:
        raise ConfigError("the site file has faults and was not taken; the gateway goes on as it was")
    if answer.error:
        raise GatewayError(answer.error)
    for sentence in answer.changes or ("no camera is different in the site file; passwords were read again",):
        typer.echo(sentence)
    for name in answer.restart:
        typer.echo(f"counts from a restart only: {name}")


async def _asked(data: Path) -> Answer:
    from gateway.web.register.socket import NobodyThere, ask  # noqa: PLC0415  # other commands answer faster without it

    try:
        return await ask(Reload(), run_folder=data / "run")
    except NobodyThere as error:
        raise GatewayError(f"no gateway runs on {data}; it reads its site file when it is started") from error
