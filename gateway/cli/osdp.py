"""`edge-gateway osdp`: the keys of OSDP readers."""

from __future__ import annotations

import asyncio
import secrets as randomness
from pathlib import Path
from typing import Annotated

import typer

from drivers.contract import LinkError
from drivers.osdp.section import OsdpReaderDevice, key_of
from gateway.domain.errors import ConfigError, GatewayError, NotFoundError
from gateway.site import Link, NewSecret, Secrets, Site, load, secrets_beside, secrets_folder

_KEY_BYTES = 16

app = typer.Typer(
    no_args_is_help=True,
    help="""Set the keys of OSDP readers.

    Example: edge-gateway osdp provision /etc/edge-gateway/site.toml 201
    """,
)


@app.command("provision")
def provision(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site file.", show_default=False)],
    device: Annotated[
        int, typer.Argument(metavar="DEVICE", help="The reader's id in the site file.", show_default=False)
    ],
) -> None:
    """Make a key for an OSDP reader, set it in the reader, and keep it in the folder `secrets` beside the site file.

    Run it once for each reader, with the reader in install mode (see its manual) and the gateway stopped. Meanwhile,
    anybody who listens on the reader's cable can learn the key. If the command is interrupted, run it again: it goes on
    with the same key.

    Example: edge-gateway osdp provision /etc/edge-gateway/site.toml 201
    """
    found = load(site, reader_keys=False)
    reader, link = _reader(found, device)
    if _has_secret(reader.key, secrets_beside(site)):
        raise ConfigError(
            f"{reader.name} has a key already: the secret {reader.key!r}. If the reader was replaced or reset, remove"
            f" that secret ({secrets_folder(site) / reader.key}, or wherever it is set) and run this again"
        )
    secret = NewSecret(folder=secrets_folder(site), name=reader.key)
    try:
        key = key_of(secret.begin(lambda: randomness.token_bytes(_KEY_BYTES).hex()))
    except ValueError as error:
        raise ConfigError(str(error)) from error
    _set_key(reader, link, key)
    secret.keep()
    typer.echo(f"{reader.name} has its own key now, kept in {secret.place}; end its install mode")


def _reader(site: Site, device_id: int) -> tuple[OsdpReaderDevice, Link]:
    for device in site.devices:
        if device.id == device_id and isinstance(device, OsdpReaderDevice):
            return device, next(link for link in site.links if link.id == device.link)
    raise NotFoundError(f"device {device_id} is not an OSDP reader of this site")


def _has_secret(name: str, secrets: Secrets) -> bool:
    try:
        secrets.get(name)
    except ConfigError:  # no secret, or an unreadable one, which `NewSecret` will report
        return False
    return True


def _set_key(reader: OsdpReaderDevice, link: Link, key: bytes) -> None:
    from drivers.osdp.line import set_key  # noqa: PLC0415  # other commands start faster without it

    try:
        asyncio.run(set_key(spec=link.spec(), address=reader.address, key=key))
    except LinkError as error:
        raise GatewayError(
            f"{reader.name} accepted no key: {error}. Is it in install mode, and is the gateway stopped?"
        ) from error
