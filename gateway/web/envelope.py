"""The interface's envelope: `{success: true, …}`, or `{success: false, <resource>: null, error}`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from aiohttp import web
from pydantic_core import to_json

_AT_A_TIME = 32 * 1024
_PLAIN = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"}


def success(**fields: object) -> web.Response:
    """An answer that holds these fields beside `success`. Values are models or what JSON knows."""
    return from_json_text(json_text(**fields))


async def success_listed(resource: str, records: Iterable[object], **fields: object) -> web.Response:
    """A list's answer. Records are made and written one by one: other work goes on beside a long list of large ones.

    Args:
        resource: the field that has the list.
        records: what is listed, best made only as it is asked for.
        fields: those that stand behind the list, one at least.
    """
    parts, written = [f'{{"success":true,"{resource}":['.encode()], 0
    for number, record in enumerate(records):
        text = to_json(record)
        parts.append(b"," + text if number else text)
        written += len(text)
        if written >= _AT_A_TIME:
            written = 0
            await asyncio.sleep(0)
    parts.append(b"]," + to_json(fields).removeprefix(b"{"))
    return from_json_text(b"".join(parts))


def json_text(**fields: object) -> bytes:
    """A success's JSON; see `success`."""
    return to_json({"success": True, **fields})


def failure(*, status: int, error: str, resource: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """A refusal: the resource, if the operation has one, is null and `error` is one sentence."""
    fields: dict[str, object] = {"success": False}
    if resource:
        fields[resource] = None
    return as_json(fields | {"error": error}, status=status, headers=headers)


def as_json(
    fields: Mapping[str, object], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """A JSON answer that no cache keeps."""
    return from_json_text(to_json(fields), status=status, headers=headers)


def from_json_text(text: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """A JSON answer, already written, that no cache keeps."""
    return web.Response(body=text, status=status, headers={**_PLAIN, **(headers or {})})
