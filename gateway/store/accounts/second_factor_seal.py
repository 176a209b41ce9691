"""Encryption of authenticators' secrets (AES-GCM), so that a copy of the database gives nobody a second factor.

The key is a separate file in the data folder, mode 0600, made when it is first needed. A secret encrypted for one
account cannot be decrypted for another.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import structlog

from gateway.domain.errors import StoreError
from gateway.runtime.durable_files import sync_folder
from gateway.store.engine.faults import refused

log = structlog.get_logger(__name__)

UNREADABLE = "?"
"""Stands for a secret that cannot be decrypted: the account has a second factor, and no code is ever right."""

_KEY_BYTES = 32
_NONCE_BYTES = 12


class SecondFactorSeal:
    """Cipher of the secrets. Blocks on the disk until the key is in memory."""

    def __init__(self, *, path: Path) -> None:
        self._path = path
        self._key: bytes | None = None

    def seal(self, secret: str, username: str) -> str:
        """Encrypt an account's secret; "" stays "". Raises StoreError if a new key cannot be written to the disk."""
        if not secret:
            return ""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  # lanes start faster without it

        nonce = secrets.token_bytes(_NONCE_BYTES)
        return (nonce + AESGCM(self._known() or self._made()).encrypt(nonce, secret.encode(), username.encode())).hex()

    def open(self, sealed: str, username: str) -> str:
        """Decrypt an account's secret; UNREADABLE if the key is missing or wrong, or the encrypted text was changed."""
        if not sealed:
            return ""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415  # lanes start faster without it
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415  # likewise

        key = self._known()
        try:
            raw = bytes.fromhex(sealed)
            if key is not None:
                return AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], username.encode()).decode()
        except (InvalidTag, ValueError):  # logged below, as a missing key is
            pass
        log.error("second_factor_unreadable", username=username, key=self._path.name)
        return UNREADABLE

    def _known(self) -> bytes | None:
        if self._key is None:
            try:
                key = self._path.read_bytes()
            except FileNotFoundError:
                return None
            except OSError as error:
                log.error("second_factor_key_unreadable", error=error.strerror)  # noqa: TRY400 (the sentence says it all)
                return None
            self._key = key if len(key) == _KEY_BYTES else None
        return self._key

    def _made(self) -> bytes:
        """Make a new key and return it once it is on disk."""
        key, draft = secrets.token_bytes(_KEY_BYTES), self._path.with_name(f"{self._path.name}.new")
        try:
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
            if self._path.exists():  # an unusable key is kept, because somebody may be able to repair it
                self._path.rename(self._path.with_name(f"{self._path.name}.unusable"))
            draft.rename(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise _no_place(self._path, error) from error
        self._key = key
        return key


def _no_place(path: Path, error: OSError) -> StoreError:
    return refused(path, error, "no second factor can be kept")
