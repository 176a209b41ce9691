"""Files of a new site, and its certificate: the installer's own, or one signed by an authority of the site.

Each file is written durably under a draft name first; an existing site file is never replaced.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer

from gateway.domain.errors import ConfigError
from gateway.runtime.clock import SystemClock
from gateway.runtime.durable_files import sync_folder
from gateway.site.api_section import TlsSection

_USER = "edge-gateway"
_PRIVATE = 0o600
_SHARED = 0o640
_PUBLIC = 0o644

USUAL_SITE = Path("/etc/edge-gateway/site.toml")
CERTIFICATE, KEY = "certificate.pem", "key.pem"
_AUTHORITY, _AUTHORITY_KEY = "authority.pem", "authority-key.pem"
_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True)
class SiteFolder:
    """The folder of a site file. If root makes files in it, they are given to the gateway's user."""

    site: Path

    @property
    def secrets(self) -> Path:
        """The folder of secrets, readable by the gateway's user only."""
        return self.site.parent / "secrets"

    @property
    def tls(self) -> Path:
        """The folder of certificates and keys."""
        return self.site.parent / "tls"

    def refuse_existing(self) -> None:
        """Raise ConfigError if the site file exists already."""
        if self.site.exists():
            raise ConfigError(
                f"{self.site} exists already and is not changed; edit it, "
                f"then run edge-gateway check {quote(str(self.site))}"
            )

    def prepare(self) -> None:
        """Make the folders. Raises OSError."""
        self.site.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        for folder, mode in ((self.secrets, 0o700), (self.tls, 0o750)):
            folder.mkdir(mode=mode, exist_ok=True)
            give_to_gateway(folder)

    def keep_secret(self, name: str, text: str) -> None:
        """Write a secret. Raises ConfigError if a secret of this name exists with another text."""
        place = self.secrets / name
        if place.exists() and place.read_text("utf-8").rstrip("\n") != text:
            raise ConfigError(f"{place} exists already with another text; remove it, or move it away")
        write(place, text.encode() + b"\n", mode=_PRIVATE)

    def write_site(self, text: str) -> Path:
        """Write the site file under a draft name; return the draft's path, to be checked before `keep_site`."""
        draft = self.site.with_name(f".{self.site.name}.new")
        write(draft, text.encode(), mode=_SHARED)
        return draft

    def keep_site(self, draft: Path) -> None:
        """Give the draft the site file's name. Raises ConfigError if a site file exists by now."""
        try:
            os.link(draft, self.site)
            draft.unlink()
            sync_folder(self.site.parent)
        except FileExistsError as error:
            raise ConfigError(f"{self.site} exists already and is not changed") from error


def write(path: Path, data: bytes, *, mode: int = _PUBLIC, for_gateway: bool = True) -> None:
    """Write a file durably, with its final `mode` from the first byte on. Raises OSError."""
    draft = path.with_name(f".{path.name}.draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    if for_gateway:
        give_to_gateway(draft)
    draft.replace(path)
    sync_folder(path.parent)


def give_to_gateway(path: Path) -> None:
    """Give a path that root has made to the gateway's user; do nothing for other users or without that user."""
    if os.geteuid() == 0 and _has_user():
        shutil.chown(path, _USER, _USER)


def prepare_data(data: Path) -> None:
    """Make the data folder as systemd would, if it does not exist. Raises ConfigError."""
    try:
        data.mkdir(mode=0o750, parents=True)
    except FileExistsError:
        return
    except OSError as error:
        raise ConfigError(f"{data} cannot be made: {error.strerror}") from error
    give_to_gateway(data)


def _has_user() -> bool:
    try:
        pwd.getpwnam(_USER)
    except KeyError:
        return False
    return True


def put_certificate(folder: SiteFolder, *, site: str, host: str, own: tuple[Path, Path] | None) -> tuple[str, ...]:
    """Write certificate and key; return lines for the installer, with fingerprints. Raises ConfigError, OSError.

    An authority and certificate from an interrupted attempt are kept, because phones may trust the authority already.
    `own` is the installer's own pair of certificate and key; None to make one.
    """
    from gateway.site.own_authority import fingerprint, own_certificates  # noqa: PLC0415  # help answers faster without it

    authority, certificate = folder.tls / _AUTHORITY, folder.tls / CERTIFICATE
    if own is not None:
        served = own[0].read_bytes()
        try:
            fingerprint(served)
        except ValueError as error:
            raise ConfigError(f"{own[0]} is not a certificate in PEM form") from error
        _write_pair(folder, served, own[1].read_bytes())
    elif not (authority.exists() and certificate.exists()):
        machine = socket.gethostname().lower()
        names = (host, machine, f"{machine}.local")
        made = own_certificates(site=site, names=names, at_micros=SystemClock().wall().micros)
        write(authority, made.authority)
        write(folder.tls / _AUTHORITY_KEY, made.authority_key, mode=0o600, for_gateway=False)
        _write_pair(folder, made.served, made.key)
    told = ("The certificate's SHA-256 fingerprint is", f"  {fingerprint(certificate.read_bytes())}")
    if own is not None:
        return told
    return (
        *told,
        f"Phones and computers trust it once they have {authority} as an authority, SHA-256",
        f"  {fingerprint(authority.read_bytes())}",
    )


def _write_pair(folder: SiteFolder, certificate: bytes, key: bytes) -> None:
    write(folder.tls / KEY, key, mode=0o600)
    write(folder.tls / CERTIFICATE, certificate)


def certificate(
    site: Annotated[Path, typer.Argument(metavar="SITE.toml", help="The site file.")] = USUAL_SITE,
    *,
    renew: Annotated[
        bool, typer.Option("--renew", help="Let the site's own authority sign it for 800 days more.")
    ] = False,
) -> None:
    """Show the certificate that `init` made for the site, or renew it. Phones then need nothing new.

    Example: edge-gateway certificate --renew
    """
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415  # help answers faster without it

    from gateway.site.certificates import ends_at  # noqa: PLC0415  # likewise
    from gateway.site.own_authority import fingerprint, renewed  # noqa: PLC0415  # likewise

    tls = SiteFolder(site.absolute()).tls
    place, clock = tls / CERTIFICATE, SystemClock()
    try:
        if renew:
            authority, key = (tls / _AUTHORITY).read_bytes(), (tls / _AUTHORITY_KEY).read_bytes()
            made = renewed(place.read_bytes(), authority=authority, authority_key=key, at_micros=clock.wall().micros)
            write(place, made)
        told = fingerprint(place.read_bytes())
    except OSError as error:
        raise ConfigError(f"{error.filename} cannot be used: {error.strerror}") from error
    except (ValueError, TypeError, InvalidSignature) as error:
        raise ConfigError(f"{place} was not made by edge-gateway init; put a new certificate in its place") from error
    days = (ends_at(TlsSection(certificate=str(place), key=str(tls / KEY))) - clock.wall().micros) // _DAY
    typer.echo(f"{place} ends in {days} days; its SHA-256 fingerprint is")
    typer.echo(f"  {told}")
