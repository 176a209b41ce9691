"""Ids in relayed requests: a program may use a record's id at the site, which is replaced by central's id."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace

from pydantic import TypeAdapter, ValidationError

from gateway.domain.relaying import NotRelayed, RelayedRequest, RelayRefusal
from gateway.domain.writes import JsonObject
from gateway.store import References
from gateway.web.http.errors import RequestRefused

_JSON = frozenset({"application/json", "text/json"})
_LONGEST_READ = 64 * 1024
"""Bytes. Longer bodies are documents and batches; they are relayed unchanged."""
_READ_SECONDS = 30.0
_LONG_NUMBER = re.compile(rb"\d{10}")
_OF_CARDS = "/v1/access/"
_CARD_ID = "access_id"
_BODY = TypeAdapter(JsonObject)
_CONFLICT = 409


@dataclass(frozen=True, kw_only=True)
class RelayedIds:
    """The translation of ids in relayed JSON bodies."""

    references: References

    async def translate(self, asked: RelayedRequest, content_type: str) -> RelayedRequest:
        """Return the request with the site's ids replaced by central's.

        Bodies that are not JSON objects, or longer than 64 KiB, are left as they are. Raises NotRelayed for a body that
        does not arrive in time, RequestRefused (409) for a record that central does not have.
        """
        if asked.body is None or content_type not in _JSON:
            return asked
        start, whole = await _beginning(asked.body)
        body = _object(start) if whole else None
        if body is None:
            return replace(asked, body=_joined(start, asked.body))
        sent = await self._resolved(body)
        if asked.path.startswith(_OF_CARDS) and "id" in body:
            sent = {**sent, "id": (await self._resolved({_CARD_ID: body["id"]})).get(_CARD_ID)}
            if sent["id"] is None:
                raise RequestRefused(_CONFLICT, f"central will never have access card {body['id']}")
        raw = start if sent == body else json.dumps(sent, ensure_ascii=False).encode()
        return replace(asked, body=_joined(raw), length=len(raw))

    async def _resolved(self, body: JsonObject) -> JsonObject:
        resolved = await self.references.resolve(body)
        if resolved.reason:
            raise RequestRefused(_CONFLICT, resolved.reason)
        return resolved.body


async def _beginning(body: AsyncIterator[bytes]) -> tuple[bytes, bool]:
    """Read the beginning of a body, a little over 64 KiB at most; return it, and whether it is the whole body.

    Raises NotRelayed when the body does not arrive in time.
    """
    start = bytearray()
    try:
        async with asyncio.timeout(_READ_SECONDS):
            async for chunk in body:
                start += chunk
                if len(start) > _LONGEST_READ:
                    return bytes(start), False
    except TimeoutError as error:
        raise NotRelayed(RelayRefusal.LATE, "the body did not come in time") from error
    return bytes(start), True


async def _joined(start: bytes, rest: AsyncIterator[bytes] | None = None) -> AsyncIterator[bytes]:
    """Yield a body whose beginning was read already: the beginning, then the rest."""
    if start:
        yield start
    if rest is not None:
        async for chunk in rest:
            yield chunk


def _object(raw: bytes) -> JsonObject | None:
    """Parse a JSON object that may contain an id of the site (ten digits or more); None for anything else."""
    if not _LONG_NUMBER.search(raw):
        return None
    try:
        return _BODY.validate_json(raw)
    except ValidationError:
        return None
