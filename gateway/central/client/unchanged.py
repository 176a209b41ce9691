"""Lists that central marks with an ETag: one that has not changed is not sent again (RFC 9110, 8.8.3 and 13.1.2)."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

from gateway.central.client.answers import JsonObject
from gateway.central.client.connections import OnHeaders

WHOLE_SECONDS: Final = 3600.0
"""After so long a list is asked for in full, in case central's ETags do not follow its records."""
MOST_BYTES: Final = 8 * 1024 * 1024
"""The memory for compressed answers: about 200,000 access cards."""

_LONGEST_TAG = 200
_FAST = 1
_UNCHANGED = frozenset({HTTPStatus.NOT_MODIFIED, HTTPStatus.PRECONDITION_FAILED})
"""A condition that does not hold is answered with 304 for GET and, by the letter of RFC 9110, with 412 for POST."""


class Fetch(Protocol):
    """Function that sends a request and returns status and body of its answer."""

    async def __call__(
        self,
        method: str,
        path: str,
        body: JsonObject | None,
        headers: dict[str, str],
        *,
        on_headers: OnHeaders | None = None,
    ) -> tuple[int, bytes]:
        """Send a request; `on_headers` gets the answer's headers as soon as they come."""
        ...


def is_list(path: str) -> bool:
    """Return whether an operation reads one of central's lists, and so changes nothing."""
    return path.endswith("/list")


@dataclass(frozen=True, slots=True)
class _Answer:
    tag: str
    packed: bytes
    at: float


class UnchangedLists:
    """Memory of one account's answers with an ETag. The answer used longest ago makes room for others."""

    def __init__(self, *, fetch: Fetch, monotonic: Callable[[], float]) -> None:
        self._fetch = fetch
        self._monotonic = monotonic
        self._answers: OrderedDict[tuple[str, str], _Answer] = OrderedDict()
        self._bytes = 0

    async def fetch(
        self,
        method: str,
        path: str,
        body: JsonObject | None,
        headers: dict[str, str],
        *,
        on_headers: OnHeaders | None = None,
    ) -> tuple[int, bytes]:
        """Send a request; the body of a list that central calls unchanged comes from memory, with status 200."""
        if not is_list(path):
            return await self._fetch(method, path, body, headers, on_headers=on_headers)
        asked, tag = (path, json.dumps(body)), ""
        known = self._answers.get(asked)
        if known is not None and self._monotonic() - known.at <= WHOLE_SECONDS:
            headers = {**headers, "If-None-Match": known.tag}
        else:
            known = None

        def with_tag(answered: Mapping[str, str]) -> None:
            nonlocal tag
            tag = answered.get("ETag", "")
            if on_headers is not None:
                on_headers(answered)

        status, raw = await self._fetch(method, path, body, headers, on_headers=with_tag)
        if known is not None and status in _UNCHANGED:
            if asked in self._answers:
                self._answers.move_to_end(asked)
            return HTTPStatus.OK, await asyncio.to_thread(zlib.decompress, known.packed)
        if status == HTTPStatus.OK:
            self._forget(asked)
            if 0 < len(tag) <= _LONGEST_TAG:
                self._keep(asked, _Answer(tag, await asyncio.to_thread(zlib.compress, raw, _FAST), self._monotonic()))
        return status, raw

    def _keep(self, asked: tuple[str, str], answer: _Answer) -> None:
        self._forget(asked)
        self._answers[asked] = answer
        self._bytes += len(answer.packed)
        while self._bytes > MOST_BYTES:
            self._forget(next(iter(self._answers)))

    def _forget(self, asked: tuple[str, str]) -> None:
        if (answer := self._answers.pop(asked, None)) is not None:
            self._bytes -= len(answer.packed)
