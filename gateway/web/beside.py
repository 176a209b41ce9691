"""What goes on for as long as the application is served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import structlog
from aiohttp import web

from gateway.domain.errors import StoreError
from gateway.web.api_keys import ApiKeys
from gateway.web.reading import Readers
from gateway.web.roster import Roster
from gateway.web.sessions import Sessions

log = structlog.get_logger(__name__)

_ENDED_SECONDS = 60.0


async def who_may_sign_in(
    _: web.Application,
    *,
    roster: Roster,
    keys: ApiKeys,
    sessions: Sessions,
    asked: Callable[[], AbstractAsyncContextManager[None]],
    readers: Readers,
) -> AsyncIterator[None]:
    """Accounts and keys are read and changed, and sessions at central end with those here, while the app is served.
    Who reads lists is followed.
    """
    await roster.load()
    await keys.load()
    async with asked(), asyncio.TaskGroup() as group:
        ending = group.create_task(_end_at_central(sessions), name="end-at-central")
        following = group.create_task(readers.run(), name="follow-readers")
        yield
        ending.cancel()
        following.cancel()
    await sessions.end_all_at_central()


async def _end_at_central(sessions: Sessions) -> None:
    while True:
        await asyncio.sleep(_ENDED_SECONDS)
        try:
            await sessions.ended_elsewhere()
        except StoreError as error:
            log.debug("sessions_not_read", error=str(error))  # the store tells of itself; they are looked at again
