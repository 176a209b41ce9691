"""Certificate authority of one site: phones trust it once, and it signs the certificate that the gateway serves.

The authority may sign for the site's own names and for private addresses alone. Whoever steals its key cannot pose as
any other server to the phones that trust it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AUTHORITY_DAYS = 3650
_SERVED_DAYS = 800
"""Phones refuse certificates of own authorities that are valid for over 825 days."""
_EARLIER = timedelta(days=1)  # a phone's clock may be behind
_PRIVATE = (
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "169.254.0.0/16",
    "127.0.0.0/8",
    "fc00::/7",
    "fe80::/10",
    "::1/128",
)
_LONGEST_NAME = 64

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in PEM form: what is served, and what phones are to trust."""

    authority: bytes
    authority_key: bytes
    served: bytes
    key: bytes


def own_certificates(*, site: str, names: Iterable[str], at_micros: int) -> Certificates:
    """Make an authority and a certificate for these names and addresses. `at_micros` is wall time."""
    now = datetime.fromtimestamp(at_micros / 1_000_000, UTC).replace(microsecond=0)
    hosts = tuple(dict.fromkeys((*(name.lower() for name in names), "localhost", "127.0.0.1")))
    addresses = [found for name in hosts if (found := _address(name)) is not None]
    domains = [name for name in hosts if _address(name) is None]
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _named(f"edge-gateway of {site}")
    authority = (
        _begun(subject=issuer, issuer=issuer, key=authority_key, now=now, days=_AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(_constraints(domains, addresses), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    served = (
        _begun(subject=_named(hosts[0]), issuer=issuer, key=key, now=now, days=_SERVED_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.SubjectAlternativeName([*map(x509.DNSName, domains), *map(x509.IPAddress, addresses)]), critical=False
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return Certificates(
        authority=_pem(authority), authority_key=_private(authority_key), served=_pem(served), key=_private(key)
    )


def fingerprint(pem: bytes) -> str:
    """Return the SHA-256 fingerprint of the first certificate, as browsers show it."""
    return x509.load_pem_x509_certificate(pem).fingerprint(hashes.SHA256()).hex(":").upper()


def _begun(
    *, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + timedelta(days=days))
    )


def _constraints(domains: Iterable[str], addresses: Iterable[Address]) -> x509.NameConstraints:
    networks = [ipaddress.ip_network(network) for network in _PRIVATE]
    public = [ipaddress.ip_network(one) for one in addresses if not any(one in network for network in networks)]
    permitted = [*map(x509.DNSName, domains), *map(x509.IPAddress, (*networks, *public))]
    return x509.NameConstraints(permitted_subtrees=permitted, excluded_subtrees=None)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _named(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_LONGEST_NAME])])


def _address(name: str) -> Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
