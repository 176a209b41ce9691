"""The gateway that a command talks to: the one on this machine by its local socket, or another by its address."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import SplitResult, unquote, urlsplit

import typer

from gateway.cli.printing import prompt_for_secret
from gateway.domain.errors import ConfigError

if TYPE_CHECKING:
    from gateway.cli.client import RunningGatewayClient

PASSWORD = "EDGE_GATEWAY_PASSWORD"  # noqa: S105 (the name of a variable)
USUAL_DATA = Path("/var/lib/edge-gateway")
Data = Annotated[
    Path,
    typer.Option(
        "--data", metavar="DIR", envvar="EDGE_GATEWAY_DATA", help="The gateway's data folder.", show_default=True
    ),
]
Url = Annotated[
    str,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="EDGE_GATEWAY_URL",
        help=f"Ask the gateway at https://ACCOUNT@HOST:PORT. Its password is asked for, or read from {PASSWORD}.",
        show_default=False,
    ),
]
JsonWanted = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@contextmanager
def connected(data: Path, url: str) -> Iterator[RunningGatewayClient]:
    """Yield the gateway of this data folder; with `url`, the gateway there, in a session that ends with the context.

    Raises GatewayError when the gateway refuses, GatewayUnreachable when none answers, ConfigError for a wrong `url`.
    """
    from gateway.cli.client import RunningGatewayClient, session_at  # noqa: PLC0415  # help and wrong options answer faster

    if not url:
        yield RunningGatewayClient.local(data / "run")
        return
    parts = _parts_of(url)
    password = os.environ.get(PASSWORD) or prompt_for_secret("Password", otherwise=f"set {PASSWORD}")
    gateway = RunningGatewayClient.remote(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
    with session_at(gateway, unquote(parts.username or ""), password):
        yield gateway


def _parts_of(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.username and parts.port != 0
    except ValueError:  # a port above 65535, or half a bracket
        sound = False
    if not sound:
        # Redaction would hide the text between "://" and "@", so the example is written without "://".
        raise ConfigError(
            "--url must be https:// and then an account, @, a host and its port, such as technician@192.168.1.20:8443"
        )
    return parts
