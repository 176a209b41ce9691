"""The header `If-Match`, by which a change of a record that has changed since its caller saw it is refused.

A record's `etag` stands for the fields that people and programs write. What central adds by itself does not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from aiohttp import web
from pydantic import JsonValue

from gateway.web.http.errors import RequestRefused

HEADER = "If-Match"
_DIGITS = 16


def etag(record: Mapping[str, JsonValue], names: Iterable[str]) -> str:
    """Return the tag of these fields of a record: equal tags mean equal fields."""
    told = json.dumps({name: record.get(name) for name in names}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:_DIGITS]


def refuse_changed(request: web.Request, present: str) -> None:
    """Refuse a change (412) whose `If-Match` is not the present tag of the record; without one, do nothing."""
    seen = request.headers.get(HEADER)
    if seen is not None and seen.strip().strip('"') not in {present, "*"}:
        raise RequestRefused(
            412,
            "Somebody else has changed this meanwhile, so nothing was done. Look at it as it is, and change it again.",
        )
