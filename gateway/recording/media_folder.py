"""Watch over the media folder: whether it may be used, checked in a thread that may hang with the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)

LOOK_SECONDS = 4.0
ANSWER_SECONDS = 10.0
_SILENT = "the media folder's disk does not answer"


def no_fault() -> str:
    """Return no fault; the default if the media folder is not checked."""
    return ""


class MediaFolder:
    """The media folder.

    Attributes:
        fault: why it must not be used, "" while it may.
        answers: False if its disk did not answer the last check, so that a thread that touches it hangs.
    """

    def __init__(
        self,
        *,
        fault: Callable[[], str],
        reopen: Callable[[], Awaitable[str]],
        changed: Callable[[], None],
        look_seconds: float = LOOK_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Keep the collaborators.

        Args:
            fault: returns why the folder must not be used, "" if it may; called in a thread, where it may block.
            reopen: reconciles rows and files before the folder is used again; returns why that failed, "" if it did
                not.
            changed: called when the fault has changed.
            look_seconds: the time between two checks.
            answer_seconds: the longest time that a check may take.
        """
        self._ask = fault
        self._reopen = reopen
        self._changed = changed
        self._look_seconds = look_seconds
        self._answer_seconds = answer_seconds
        self._asked: asyncio.Future[str] | None = None
        self.fault = ""
        self.answers = True

    async def look(self) -> str:
        """Return why the folder must not be used now, "" if it may.

        Concurrent calls share one thread and its answer, so a disk that does not answer holds only one thread.
        """
        if self._asked is None:
            self._asked = asyncio.get_running_loop().run_in_executor(None, self._ask)
            self._asked.add_done_callback(self._answered)
        asked = self._asked
        done, _ = await asyncio.wait([asked], timeout=self._answer_seconds)
        self.answers = bool(done)
        return asked.result() if done else _SILENT

    async def begin(self) -> None:
        """Check the folder for the first time, and prepare it if it may be used."""
        self.fault = await self.look() or await self._reopen()

    async def run(self) -> None:
        """Check the folder every few seconds until cancelled."""
        while True:
            await asyncio.sleep(self._look_seconds)
            fault = await self.look()
            if self.fault and not fault:
                fault = await self._reopen()
            if fault != self.fault:
                log.warning("media_folder_changed", fault=fault)
                self.fault = fault
                self._changed()

    def _answered(self, _: asyncio.Future[str]) -> None:
        self._asked = None
