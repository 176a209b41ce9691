"""The media folder being watched: whether it may be used now, asked in a thread that may hang with the disk."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

log = structlog.get_logger(__name__)

LOOK_SECONDS = 4.0
ANSWER_SECONDS = 10.0
_SILENT = "the media folder's disk does not answer"


def no_fault() -> str:
    """Report no fault: the default where the media folder is not checked."""
    return ""


class MediaFolder:
    """Watch over the media folder. `fault` says why it must not be used, "" while it may."""

    def __init__(
        self,
        *,
        fault: Callable[[], str],
        reopen: Callable[[], Awaitable[str]],
        changed: Callable[[], None],
        look_seconds: float = LOOK_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """`fault` may block. `reopen` sets rows and files right before the folder is used again, and says why that
        failed, "" when it did not. `changed` is called when there is another fault than before, or none any more.
        """
        self._ask = fault
        self._reopen = reopen
        self._changed = changed
        self._look_seconds = look_seconds
        self._answer_seconds = answer_seconds
        self._asked: asyncio.Future[str] | None = None
        self.fault = ""

    @property
    def answers(self) -> bool:
        """False while its disk does not answer: a thread that touches it then hangs."""
        return self.fault != _SILENT

    async def look(self) -> str:
        """Ask why the folder must not be used now. All who ask at once share one thread and its answer.

        A disk that does not answer holds that one thread, however often it is asked.
        """
        if self._asked is None:
            self._asked = asyncio.get_running_loop().run_in_executor(None, self._ask)
            self._asked.add_done_callback(self._answered)
        asked = self._asked
        done, _ = await asyncio.wait([asked], timeout=self._answer_seconds)
        return asked.result() if done else _SILENT

    async def begin(self) -> None:
        """Look for the first time, and make it ready if it may be used."""
        self.fault = await self.look() or await self._reopen()

    async def run(self) -> None:
        """Look every few seconds until cancelled."""
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
