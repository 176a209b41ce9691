"""`edge-gateway bundle`: a file with facts for support staff, without secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.client import save
from gateway.cli.target import USUAL_DATA, Data, Url, connected
from gateway.domain.errors import ConfigError, GatewayUnreachable
from gateway.runtime.clock import SystemClock, iso_utc

_USUAL_SITE = Path("/etc/edge-gateway/site.toml")
_MODE = 0o600


def bundle(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE.tar.gz]", help="Where to write it; a name with the time if left out."),
    ] = None,
    *,
    site: Annotated[
        Path, typer.Option("--site", metavar="SITE.toml", help="The site file, for when no gateway answers.")
    ] = _USUAL_SITE,
    data: Data = USUAL_DATA,
    url: Url = "",
) -> None:
    """Collect what helps whoever is called into one file: state, problems, events, log, lines, machine. No secrets.

    Where no gateway answers on this machine, the file tells of the machine, the site file and the journal alone.

    Example: edge-gateway bundle /tmp/north-yard.tar.gz
    """
    now = SystemClock().wall().micros
    name = f"edge-gateway-{iso_utc(now)[:19].replace(':', '')}"
    path = file or Path(f"{name}.tar.gz")
    try:
        path.touch(_MODE)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
    try:
        with connected(data, url) as gateway:
            save(gateway, "/status/bundle", path)
    except GatewayUnreachable as error:
        if url:
            raise
        typer.echo(f"edge-gateway: {error}; the bundle tells of the machine alone", err=True)
        _alone(path, site=site, data=data, name=name, at=now // 1_000_000)
    typer.echo(f"{path} is written, {path.stat().st_size // 1024 + 1} kB; events in it name people and plates")


def _alone(path: Path, *, site: Path, data: Path, name: str, at: int) -> None:
    """Write a bundle without a running gateway: facts of the machine, and the faults of the site file.

    `at` is the time of the bundle's files, in seconds since 1970.
    """
    from gateway.runtime.redaction import Redaction  # noqa: PLC0415  # help answers faster
    from gateway.site import Secrets, load, secrets_folder  # noqa: PLC0415
    from gateway.support.bundle import archive, machine_texts  # noqa: PLC0415
    from gateway.support.masking import Masking  # noqa: PLC0415

    redaction = Redaction()
    try:
        load(site, secrets=Secrets(folder=secrets_folder(site), report=redaction.hide))
        check = "the site file is good\n"
    except ConfigError as error:
        check = "\n".join((*error.lines(), str(error))) + "\n"
    masking = Masking(redaction)
    texts = machine_texts(masking, site_path=site, folders=(data, data / "media"))
    path.write_bytes(archive({**texts, "check.txt": masking.happening(check)}, name=name, at=at, masking=masking))
