"""Certificates for tests, made at once: of an issuer of their own, or signed by themselves."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gateway.runtime.clock import SystemClock

_DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """The files of a certificate and of its key."""

    certificate: Path
    key: Path

    @property
    def tls(self) -> dict[str, str]:
        """The two as `[api.tls]` names them."""
        return {"certificate": str(self.certificate), "key": str(self.key)}

    def section(self) -> str:
        """The section of a site file that names them."""
        return f'[api.tls]\ncertificate = "{self.certificate}"\nkey = "{self.key}"\n'


def write_pair(folder: Path, name: str = "gate.example.com", *, stem: str = "served", days: int = 2) -> Pair:
    """Write a certificate for `name` and localhost that signs itself; with negative `days` it has expired."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.fromtimestamp(SystemClock().wall().micros / 1_000_000, dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 10 * _DAY)
        .not_valid_after(now + days * _DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name), x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pair = Pair(folder / f"{stem}.crt", folder / f"{stem}.key")
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pair.key.touch(mode=0o600)
    pair.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return pair
