"""The interface's envelope: `{success: true, …}`, or `{success: false, <resource>: null, error}`."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web
from pydantic_core import to_json


def success(**fields: object) -> web.Response:
    """An answer that holds these fields beside `success`. Values are models or what JSON knows."""
    return as_json({"success": True, **fields})


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
    return web.Response(
        body=to_json(fields),
        status=status,
        content_type="application/json",
        charset="utf-8",
        headers={"Cache-Control": "no-store", **(headers or {})},
    )
