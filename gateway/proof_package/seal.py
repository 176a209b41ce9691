"""The site's signing key (Ed25519, RFC 8032): made once, stored in the data folder, and never shown."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.domain.errors import StoreError
from gateway.runtime.durable_files import sync_folder

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_NAME = "site-key.pem"


class SiteKey:
    """The site's signing key."""

    def __init__(self, *, private: Ed25519PrivateKey) -> None:
        self._private = private

    @classmethod
    def of(cls, folder: Path) -> SiteKey:
        """Return the key of a data folder; make one if there is none. Blocks on the disk. Raises StoreError."""
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415  # 9 MB, and seldom used
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415  # 9 MB, and seldom used
        from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415  # 9 MB, and seldom used

        path = folder / _NAME
        try:
            if not path.exists():
                _make(path)
            private = load_pem_private_key(path.read_bytes(), password=None)
        except OSError as error:
            raise StoreError(f"the site's key cannot be used: {error.strerror}") from error
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise StoreError(f"{_NAME} in the data folder is no key; put the right one back") from error
        if not isinstance(private, Ed25519PrivateKey):
            raise StoreError(f"{_NAME} in the data folder is a key of another kind; put the right one back")
        return cls(private=private)

    @property
    def public_pem(self) -> bytes:
        """The public key in PEM form, with which signatures are verified."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415  # 9 MB, and seldom used

        return self._private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the public key, as `fingerprint_of` returns it."""
        return fingerprint_of(self._private.public_key())

    def sign(self, data: bytes) -> bytes:
        """Return the signature of these bytes, 64 bytes long."""
        return self._private.sign(data)


def fingerprint_of(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of the key in DER form, in hex in groups of four digits, for people to compare keys."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat  # noqa: PLC0415  # 9 MB, and seldom used

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    digest = hashlib.sha256(der).hexdigest()
    return " ".join(digest[place : place + 4] for place in range(0, 64, 4))


def _make(path: Path) -> None:
    """Write a new key, as a whole or not at all, readable by this user only."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415  # 9 MB, and seldom used
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat  # noqa: PLC0415  # 9 MB, and seldom used

    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    early = path.with_suffix(".new")
    early.unlink(missing_ok=True)
    descriptor = os.open(early, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, pem)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    early.rename(path)
    sync_folder(path.parent)
