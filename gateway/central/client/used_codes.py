"""Which code of the second factor the gateway's account used last, on disk."""

from __future__ import annotations

import structlog

from gateway.domain.errors import StoreError
from gateway.store import Store

log = structlog.get_logger(__name__)

_NAME = "second_factor_step"


class UsedCodes:
    """The half minute, counted since 1970, of the newest code that was sent to central."""

    def __init__(self, *, store: Store) -> None:
        self._store = store

    async def newest(self) -> int:
        """Return the newest half minute whose code was sent; -1 for none, or while the disk cannot be read."""
        try:
            noted = await self._store.cards.remembered(_NAME)
        except StoreError as error:
            log.warning("used_codes_unknown", error=str(error))
            return -1
        return int(noted) if noted is not None and noted.isdecimal() else -1

    async def use(self, step: int) -> None:
        """Note a half minute before its code is sent. A disk that refuses keeps nobody from signing in."""
        try:
            await self._store.cards.remember(_NAME, str(step))
        except StoreError as error:
            log.warning("used_code_not_noted", error=str(error))
