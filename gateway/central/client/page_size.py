"""Page size of a list: the largest that central accepts and serves in time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from gateway.central.client.answers import CentralBusy, CentralDenied, CentralFailed, CentralSlow
from gateway.central.client.client import CentralClient
from gateway.domain.errors import CentralRefused, CentralUnavailable

NARROWEST: Final = 25
"""The interface's default, which every list accepts."""

WIDE: Final = (500, 250, 100, NARROWEST)
MODEST: Final = (100, 50, NARROWEST)
"""For short lists, where larger pages gain little."""

_FIRST_REST = 4
_LONGEST_REST = 64

_Page = TypeVar("_Page")


class PageSize:
    """The largest page that central serves, found by trial: failures make it smaller, successes later larger."""

    def __init__(self, sizes: tuple[int, ...] = WIDE) -> None:
        self._sizes = sizes
        self.limit = sizes[0]
        self._uncapped = 0
        self._rest = _FIRST_REST
        self._walks = 0
        self._on_trial = False

    def refused(self) -> bool:
        """Choose a smaller size after a failure; return whether there is one."""
        smaller = next((size for size in self._sizes if size < self.limit), None)
        if smaller is None:
            return False
        self._fall_back(smaller)
        self._uncapped = 0
        return True

    def came(self, records: int, count: int | None) -> None:
        """Note how many records the first page had. If fewer than asked for, that is central's limit for now."""
        if count is not None and NARROWEST <= records < min(self.limit, count):
            self._uncapped = self.limit
            self._fall_back(records)

    def walked(self) -> None:
        """Note that a whole list came. After several in a row, try a larger size; after each failed trial, later.

        The larger size is the next one of the sizes, or the one that central cut short, because asking for more than
        central gives costs nothing.
        """
        self._on_trial = False
        if self.limit >= self._uncapped:
            self._uncapped = 0
        larger = self._uncapped or next((size for size in reversed(self._sizes) if size > self.limit), None)
        if larger is None:
            return
        self._walks += 1
        if self._walks >= self._rest:
            self._walks = 0
            self._on_trial = True
            self.limit = larger

    def _fall_back(self, limit: int) -> None:
        if self._on_trial:
            self._rest = min(2 * self._rest, _LONGEST_REST)
            self._on_trial = False
        self.limit = limit
        self._walks = 0


async def in_a_size_that_comes(client: CentralClient, size: PageSize, ask: Callable[[int], Awaitable[_Page]]) -> _Page:
    """Call `ask` with smaller and smaller page sizes until a page comes.

    If no size helps, the size is not the reason, and the last error is raised.
    """
    widest = size.limit
    while True:
        try:
            return await ask(size.limit)
        except CentralDenied:
            raise
        except (CentralRefused, CentralUnavailable) as error:
            if not await is_by_size(client, error):
                raise
            if not size.refused():
                size.limit = widest
                raise


async def is_by_size(client: CentralClient, error: CentralRefused | CentralUnavailable) -> bool:
    """Return whether a smaller page may succeed after this error. After a slow answer, check that central runs."""
    if isinstance(error, CentralBusy):
        return False
    if isinstance(error, CentralRefused | CentralFailed):
        return True
    if not isinstance(error, CentralSlow) or not error.sent:
        return False
    try:
        await client.look()
    except (CentralUnavailable, CentralRefused):  # the client has noted it
        return False
    return True
