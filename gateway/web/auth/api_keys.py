"""API keys of programs: `Authorization: Bearer <key>`, for the legacy family and operations marked `by_key`."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping

import structlog
from aiohttp import web

from gateway.domain.errors import StoreError
from gateway.runtime.clock import Clock
from gateway.store import ApiKey
from gateway.store.accounts.api_keys import ApiKeyRecords as StoredKeys

log = structlog.get_logger(__name__)

PREFIX = "egk_"
_LONGEST = 256


class ApiKeys:
    """The keys by their hash, kept in memory. `load` reads them from the store again after a change."""

    def __init__(self, *, api_keys: StoredKeys, clock: Clock) -> None:
        self._api_keys = api_keys
        self._clock = clock
        self._keys: Mapping[bytes, ApiKey] = {}
        self._loaded = False
        self._reading = asyncio.Lock()

    async def load(self) -> None:
        """Read the keys again. Never raises: if the store cannot be read, the next look-up tries again."""
        async with self._reading:  # an older reading must not come after a newer one
            try:
                self._keys = {key.key_hash: key for key in await self._api_keys.all()}
                self._loaded = True
            except StoreError as error:
                self._loaded = False
                log.warning("keys_not_read", error=str(error))

    async def of(self, request: web.Request) -> ApiKey | None:
        """Return the key that a request carries; None for no key, or an unknown, removed or expired one."""
        carried = bearer(request)
        return await self.known(carried) if carried else None

    async def known(self, key: str) -> ApiKey | None:
        """Look up a key; None if it is unknown, removed or expired."""
        if not key.isascii() or len(key) > _LONGEST:
            return None
        if not self._loaded:
            await self.load()
        found = self._keys.get(key_hash(key))
        over = found is not None and found.expires_at is not None and found.expires_at <= self._clock.wall().micros
        return None if over else found


def bearer(request: web.Request) -> str:
    """Return the bearer token of the `Authorization` header, "" when there is none."""
    scheme, _, key = request.headers.get("Authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def new_key() -> str:
    """Return a new random key of 256 bits."""
    return PREFIX + secrets.token_urlsafe(32)


def key_hash(key: str) -> bytes:
    """Return the SHA-256 of a key, which the store keeps in place of the key. A random key needs no slow hash."""
    return hashlib.sha256(key.encode()).digest()
