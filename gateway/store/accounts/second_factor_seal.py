"""Authenticators' secrets, sealed: a copy of the database gives nobody a second factor.

The key is a separate file in the data folder, mode 0600, made when it is first needed. A value sealed for one account
does not open for another.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import structlog
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.domain.errors import StoreError
from gateway.runtime.durable_files import sync_folder
from gateway.store.engine.faults import refused

log = structlog.get_logger(__name__)

UNREADABLE = "?"
"""In place of a secret that cannot be opened: there is a second factor, and no code of it is ever right."""

_KEY_BYTES = 32
_NONCE_BYTES = 12


class SecondFactorSeal:
    """Cipher of the secrets; blocks on the disk for the first of each."""

    def __init__(self, *, path: Path) -> None:
        self._path = path
        self._key: bytes | None = None

    def seal(self, secret: str, username: str) -> str:
        """Encrypt an account's secret; "" stays "". Raises StoreError when there is no place for a key."""
        if not secret:
            return ""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        return (nonce + AESGCM(self._known() or self._made()).encrypt(nonce, secret.encode(), username.encode())).hex()

    def open(self, sealed: str, username: str) -> str:
        """Decrypt an account's secret; UNREADABLE when the key is gone or another, or what was sealed is changed."""
        if not sealed:
            return ""
        key = self._known()
        try:
            raw = bytes.fromhex(sealed)
            if key is not None:
                return AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], username.encode()).decode()
        except (InvalidTag, ValueError):  # told below, with the missing key
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
        """Return a new key, on disk before anything is sealed with it."""
        key, draft = secrets.token_bytes(_KEY_BYTES), self._path.with_name(f"{self._path.name}.new")
        try:
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(key)
                file.flush()
                os.fsync(file.fileno())
            if self._path.exists():  # it is there and cannot be used: kept, for whoever can mend it
                self._path.rename(self._path.with_name(f"{self._path.name}.unusable"))
            draft.rename(self._path)
            sync_folder(self._path.parent)
        except OSError as error:
            raise _no_place(self._path, error) from error
        self._key = key
        return key


def _no_place(path: Path, error: OSError) -> StoreError:
    return refused(path, error, "no second factor can be kept")
