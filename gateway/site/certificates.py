"""The certificate files of `[api.tls]`: the TLS context made of them, and the end of the certificate's validity."""

from __future__ import annotations

import os
import re
import ssl
from pathlib import Path

from gateway.domain.errors import ConfigError
from gateway.site.api_section import TlsSection

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")
_LARGEST = 1024 * 1024


def serving_context(tls: TlsSection) -> ssl.SSLContext:
    """Return a server's TLS context with the certificate, for TLS 1.2 or newer. Raises ConfigError, one sentence."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    certificate, key = Path(tls.certificate), Path(tls.key)
    _first_certificate(certificate)
    if b"ENCRYPTED" in _read(key, private=True):
        raise ConfigError(
            f"api.tls.key: {key} is encrypted: store the key without a passphrase, in a file of mode 0600"
        )
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"api.tls.key: {key} does not belong to the certificate in {certificate}") from error
        raise ConfigError(f"api.tls: {certificate} and {key} must be a certificate and its key in PEM form") from error
    except OSError as error:
        raise ConfigError(f"api.tls: {certificate} and {key} cannot be read: {error.strerror}") from error
    return context


def ends_at(tls: TlsSection) -> int:
    """Return when the certificate expires (wall micros). Raises ConfigError."""
    from cryptography import x509  # noqa: PLC0415  # lanes start faster without it

    pem = _first_certificate(Path(tls.certificate))
    try:
        return int(x509.load_pem_x509_certificate(pem.encode()).not_valid_after_utc.timestamp()) * 1_000_000
    except ValueError as error:
        raise ConfigError(f"api.tls.certificate: {tls.certificate} is not a certificate in PEM form") from error


def _first_certificate(path: Path) -> str:
    """Return the first certificate of a file in PEM form, which is the server's own; its issuers' follow."""
    found = _CERTIFICATE.search(_read(path))
    if found is None:
        raise ConfigError(f"api.tls.certificate: {path} is not a certificate in PEM form")
    return found.group().decode("ascii", errors="replace")


def _read(path: Path, *, private: bool = False) -> bytes:
    place = "api.tls.key" if private else "api.tls.certificate"
    try:
        with path.open("rb") as file:
            if private and os.fstat(file.fileno()).st_mode & 0o007:
                raise ConfigError(f"{place}: {path} may be read by everybody; make it mode 0600")
            return file.read(_LARGEST)
    except OSError as error:
        raise ConfigError(f"{place}: {path} cannot be read: {error.strerror}") from error
