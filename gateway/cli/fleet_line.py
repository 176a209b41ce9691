"""The server of a fleet that commands talk to: its options, and a line to it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from gateway.domain.errors import ConfigError, GatewayUnreachable
from gateway.site.addresses import endpoint_of

if TYPE_CHECKING:
    from gateway.fleet.connection import FleetServer
    from gateway.fleet.line import FleetLine

Server = Annotated[
    str,
    typer.Option("--server", metavar="URL", envvar="EDGE_GATEWAY_FLEET", help="The NATS server, tls://HOST:PORT."),
]
Credentials = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="FILE",
        envvar="EDGE_GATEWAY_FLEET_CREDENTIALS",
        help="A file with your NKey seed, or a JWT credentials file.",
    ),
]
CaFile = Annotated[
    Path | None, typer.Option("--ca-file", metavar="FILE", help="Authorities to trust instead of the usual ones.")
]
Key = Annotated[
    Path | None,
    typer.Option("--key", metavar="FILE", help="Your NKey seed, if --credentials is another file.", exists=True),
]


@asynccontextmanager
async def line_to(server: str, credentials: Path | None, ca_file: Path | None) -> AsyncIterator[FleetLine]:
    """Yield a line to a server. Raises ConfigError for wrong options, GatewayUnreachable if it does not answer."""
    from gateway.fleet.connection import connected  # noqa: PLC0415  # help and wrong options answer faster
    from gateway.fleet.line import FleetAway  # noqa: PLC0415  # likewise

    try:
        async with connected(server_at(server, credentials, ca_file)) as (line, _):
            yield line
    except FleetAway as error:
        raise GatewayUnreachable(f"the fleet's server {server.partition('://')[2]}: {error}") from error


def server_at(server: str, credentials: Path | None, ca_file: Path | None, *, inbox: str = "_INBOX") -> FleetServer:
    """Return the server of these options. Raises ConfigError for wrong ones."""
    from gateway.fleet.connection import FleetServer  # noqa: PLC0415  # likewise

    try:
        endpoint = endpoint_of(server, schemes=("tls", "nats"))
    except ValueError as error:
        raise ConfigError(f"--server {error}") from error
    scheme = urlsplit(server).scheme
    if scheme == "nats" and not endpoint.is_this_machine():
        raise ConfigError("--server must be tls://…: without TLS others could read and forge what is sent")
    return FleetServer(
        url=f"{scheme}://{endpoint}",
        credentials=secret_of(credentials),
        ca_file=str(ca_file) if ca_file is not None else None,
        name="edge-gateway fleet",
        inbox=inbox,
    )


def secret_of(credentials: Path | None) -> str:
    """Read a file of credentials; "" without one. Raises ConfigError."""
    try:
        return credentials.read_text("utf-8") if credentials is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--credentials {credentials}: cannot be read") from error
