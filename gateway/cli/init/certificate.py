"""The certificate that a site serves: the installer's own, or one signed by an authority that is made here."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.init.files import SiteFolder, write
from gateway.domain.errors import ConfigError
from gateway.runtime.clock import SystemClock
from gateway.site.api_section import TlsSection

USUAL_SITE = Path("/etc/edge-gateway/site.toml")
CERTIFICATE, KEY = "certificate.pem", "key.pem"
_AUTHORITY, _AUTHORITY_KEY = "authority.pem", "authority-key.pem"
_DAY = 86_400_000_000


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
