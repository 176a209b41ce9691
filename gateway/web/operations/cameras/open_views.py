"""Open WebRTC views and the callers who opened them. A view ends when the caller's session, key or permission does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import structlog

from gateway.domain.errors import CameraUnavailable, NotFoundError, StoreError
from gateway.domain.viewing import NotShown
from gateway.recording.viewing import Viewing
from gateway.web.auth.callers import Caller
from gateway.web.auth.viewers import Viewers
from gateway.web.operation import VIEW_CAMERAS

log = structlog.get_logger(__name__)

CHECK_SECONDS = 5.0
"""Seconds between two checks of the permissions of open views."""


@dataclass(frozen=True, slots=True)
class _OpenView:
    camera_id: int
    asker: Caller


class OpenViews:
    """The open views. Every 5 s each caller's permission is checked again, which also counts as use of the session."""

    def __init__(self, *, viewing: Viewing, viewers: Viewers) -> None:
        self._viewing = viewing
        self._viewers = viewers
        self._open: dict[str, _OpenView] = {}

    def add(self, camera_id: int, view: str, asker: Caller) -> None:
        """Add a view that was just opened for this caller."""
        self._open[view] = _OpenView(camera_id, asker)

    def remove(self, view: str) -> None:
        """Forget a view that was ended."""
        self._open.pop(view, None)

    async def run(self) -> None:
        """Check all views every 5 s, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            for view, opened in tuple(self._open.items()):
                await self._check(view, opened)

    async def _check(self, view: str, opened: _OpenView) -> None:
        try:
            await self._viewing.look(opened.camera_id, view)
            if (await self._viewers.now(opened.asker, VIEW_CAMERAS)).signed_in:
                return
            await self._viewing.end(opened.camera_id, view)
            log.info("view_ended", camera_id=opened.camera_id, why="who opened it may not watch any more")
        except (StoreError, CameraUnavailable) as error:
            log.debug("view_not_checked", error=str(error))  # the next round tries again
            return
        except (NotShown, NotFoundError):
            pass  # it has ended by itself
        self.remove(view)
