"""The certificate authority of one site, which phones trust and which signs the certificate of the interface.

Name constraints limit the authority to the site's own names and to private addresses, so that a stolen key cannot be
used to impersonate any other server.
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
"""Phones refuse certificates that are valid for more than 825 days."""
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
    """Files in PEM form: the authority's certificate and key, and the interface's certificate (`served`) and key."""

    authority: bytes
    authority_key: bytes
    served: bytes
    key: bytes


def own_certificates(*, site: str, names: Iterable[str], at_micros: int) -> Certificates:
    """Make an authority and a certificate for these names and addresses. `at_micros`: the present wall micros."""
    now = _moment(at_micros)
    hosts = tuple(dict.fromkeys((*(name.lower() for name in names), "localhost", "127.0.0.1")))
    addresses = [found for name in hosts if (found := _address(name)) is not None]
    domains = [name for name in hosts if _address(name) is None]
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = _named(f"edge-gateway of {site}")
    authority = (
        _begun(subject=issuer, issuer=issuer, key=authority_key.public_key(), now=now, days=_AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(_constraints(domains, addresses), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    alternatives = x509.SubjectAlternativeName([*map(x509.DNSName, domains), *map(x509.IPAddress, addresses)])
    served = _served(
        _named(hosts[0]),
        alternatives=alternatives,
        key=key.public_key(),
        issuer=issuer,
        authority_key=authority_key,
        now=now,
    )
    return Certificates(
        authority=_pem(authority), authority_key=_private(authority_key), served=_pem(served), key=_private(key)
    )


def renewed(served: bytes, *, authority: bytes, authority_key: bytes, at_micros: int) -> bytes:
    """Return a new certificate of the interface, for the same names and the same key as the old one (`served`).

    Raises ValueError, TypeError or InvalidSignature for files that `own_certificates` did not make.
    """
    old, issuer = x509.load_pem_x509_certificate(served), x509.load_pem_x509_certificate(authority)
    signing, key = serialization.load_pem_private_key(authority_key, password=None), old.public_key()
    old.verify_directly_issued_by(issuer)
    if not isinstance(signing, ec.EllipticCurvePrivateKey) or not isinstance(key, ec.EllipticCurvePublicKey):
        raise TypeError("these are not keys that init has made")
    alternatives = old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    now = _moment(at_micros)
    return _pem(
        _served(old.subject, alternatives=alternatives, key=key, issuer=issuer.subject, authority_key=signing, now=now)
    )


def fingerprint(pem: bytes) -> str:
    """Return the SHA-256 fingerprint of a PEM certificate, as browsers show it: "AB:CD:…"."""
    return x509.load_pem_x509_certificate(pem).fingerprint(hashes.SHA256()).hex(":").upper()


def _moment(at_micros: int) -> datetime:
    return datetime.fromtimestamp(at_micros / 1_000_000, UTC).replace(microsecond=0)


def _served(
    subject: x509.Name,
    *,
    alternatives: x509.SubjectAlternativeName,
    key: ec.EllipticCurvePublicKey,
    issuer: x509.Name,
    authority_key: ec.EllipticCurvePrivateKey,
    now: datetime,
) -> x509.Certificate:
    signed_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        _begun(subject=subject, issuer=issuer, key=key, now=now, days=_SERVED_DAYS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(alternatives, critical=False)
        .add_extension(signed_by, critical=False)
        .sign(authority_key, hashes.SHA256())
    )


def _begun(
    *, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
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
