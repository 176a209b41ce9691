"""The certificate that a new site serves: the installer's own, or one that an authority made here has signed."""

from __future__ import annotations

import socket
from pathlib import Path

from gateway.cli.init.files import SiteFolder, write
from gateway.runtime.clock import SystemClock

CERTIFICATE, KEY = "certificate.pem", "key.pem"
_AUTHORITY, _AUTHORITY_KEY = "authority.pem", "authority-key.pem"


def put_certificate(folder: SiteFolder, *, site: str, host: str, own: tuple[Path, Path] | None) -> tuple[str, ...]:
    """Write certificate and key; return what a person must know of them. Raises OSError.

    An authority that is there, after an attempt that was broken off, is kept with its certificate: phones may trust it.
    """
    from gateway.site.own_authority import fingerprint, own_certificates  # noqa: PLC0415  # help answers faster without it

    authority, certificate = folder.tls / _AUTHORITY, folder.tls / CERTIFICATE
    if own is not None:
        _write_pair(folder, own[0].read_bytes(), own[1].read_bytes())
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
