"""The interface's envelope: `{success: true, …}`, or `{success: false, <resource>: null, error}`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from aiohttp import web
from pydantic_core import to_json

_AT_A_TIME = 16 * 1024
_AT_ONCE = 256 * 1024
_PLAIN = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"}


def success(**fields: object) -> web.Response:
    """Return a success with these fields. Values are models or plain JSON."""
    return from_json_text(to_json({"success": True, **fields}))


async def success_listed(
    request: web.Request, resource: str, records: Iterable[object], **fields: object
) -> web.StreamResponse:
    """Return a list as an answer. A long list is written in steps, so that it does not block the loop.

    Args:
        request: the request that is answered.
        resource: the field that holds the list.
        records: the records; an iterator that makes each one on demand spreads that work too.
        fields: the fields after the list, at least one.
    """
    parts, text = list[bytes](), bytearray(f'{{"success":true,"{resource}":['.encode())
    for number, record in enumerate(records):
        if number:
            text += b","
        text += to_json(record)
        if len(text) >= _AT_A_TIME:
            parts.append(bytes(text))
            text.clear()
            await asyncio.sleep(0)
    text += b"]," + to_json(fields).removeprefix(b"{")
    return await in_parts(request, (*parts, bytes(text)))


def joined_parts(resource: str, records: Sequence[bytes], **fields: object) -> tuple[bytes, ...]:
    """Return the parts of a list's JSON. `records` together are the JSON of its records, with commas between them."""
    return (f'{{"success":true,"{resource}":['.encode(), *records, b"]," + to_json(fields).removeprefix(b"{"))


async def in_parts(request: web.Request, parts: Sequence[bytes]) -> web.StreamResponse:
    """Send JSON that is serialised already, with `no-store`. Over 256 KiB, it is streamed part by part."""
    size = sum(len(part) for part in parts)
    if size <= _AT_ONCE:
        return from_json_text(b"".join(parts))
    answer = web.StreamResponse(headers=_PLAIN)
    answer.content_length = size
    await answer.prepare(request)
    for part in parts:
        await answer.write(part)
    await answer.write_eof()
    return answer


def failure(*, status: int, error: str, resource: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a refusal: `success` is false, the resource field, if any, is null, and `error` is one sentence."""
    fields: dict[str, object] = {"success": False}
    if resource:
        fields[resource] = None
    return as_json(fields | {"error": error}, status=status, headers=headers)


def as_json(
    fields: Mapping[str, object], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return a JSON answer with `no-store`."""
    return from_json_text(to_json(fields), status=status, headers=headers)


def from_json_text(text: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return JSON that is serialised already as an answer with `no-store`."""
    return web.Response(body=text, status=status, headers={**_PLAIN, **(headers or {})})
