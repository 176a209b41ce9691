"""Errors of requests, and the envelope: `{success: true, …}`, or `{success: false, <resource>: null, error}`.

Only this module maps errors to a status and a sentence.

| Error | Status |
|---|---|
| no session, or a permission is missing | 500, as the interface document has it |
| malformed body, wrong type, bad date | 400 |
| a page of another origin with the session cookie | 403 |
| an account of the site, where only central answers | 403 |
| refused sign-in; unknown record or path | 404 |
| method not allowed | 405 |
| the body did not come in time | 408 |
| a command that may not be carried out now | 409 |
| the record is not as the caller saw it (`If-Match`) | 412 |
| body over 1 MiB, or over what is relayed | 413 |
| a body of another type than is taken, or compressed | 415 |
| too many refused sign-ins | 429, with Retry-After |
| unexpected | 500, with a reference that the log has too |
| a camera or its worker cannot serve now, footage is still coming, many clips are being made | 503, with Retry-After |
| the store cannot serve now; too many live pages or waiting changes; central is offline | 503 |
| central refused what went through to it | central's status and words |
| central refused the gateway, failed, or was lost before its answer was whole | 502 |
| something did not answer in time | 504 |
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from aiohttp import web
from pydantic_core import to_json

from gateway.domain.errors import (
    CameraUnavailable,
    CentralRefused,
    CentralUnavailable,
    CommandRefused,
    GatewayError,
    NotFoundError,
    QuotaExceeded,
    StoreError,
)
from gateway.texts import Text, Words, keyed, text

log = structlog.get_logger(__name__)

AUTHENTICATION_REQUIRED = "authentication required"
"""The answer of central to a request without a session, in the words of the interface document."""
_BY_KIND: tuple[tuple[type[GatewayError], int], ...] = (
    (NotFoundError, 404),
    (CommandRefused, 409),
    (CentralRefused, 502),
    (CentralUnavailable, 502),
    (StoreError, 503),
    (QuotaExceeded, 503),
    (CameraUnavailable, 503),
)
_BY_STATUS: Mapping[int, Text] = {
    404: text("refused.operation_missing"),
    405: text("refused.method_not_allowed"),
    413: text("refused.body_too_large"),
}

TEXTS, KEYED = "Texts", "keyed"
"""The header of a request, and its value, with which the page asks for the keys of refusals."""
_AT_A_TIME = 16 * 1024
_AT_ONCE = 256 * 1024
_PLAIN = {"Content-Type": "application/json; charset=utf-8", "Cache-Control": "no-store"}


class RequestRefused(GatewayError):
    """A request that is answered with this status and this sentence."""

    def __init__(self, status: int, sentence: Words, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class ErrorAnswer:
    """The answer to a client for an error."""

    status: int
    sentence: Words
    headers: Mapping[str, str] = field(default_factory=dict)


def authentication_required() -> RequestRefused:
    """Return the refusal of a request without a live session."""
    return RequestRefused(500, text("refused.not_signed_in"))


def second_factor_missing() -> RequestRefused:
    """Return the refusal of a session whose second factor is not proven yet."""
    return RequestRefused(500, text("refused.second_factor_missing"))


def permission_missing(group: tuple[str, ...]) -> RequestRefused:
    """Return the refusal of an account that has none of these permissions, of which it needs one."""
    return RequestRefused(500, text("refused.permission_missing", permissions=" or ".join(group)))


def refusal_of(error: Exception, *, method: str, path: str) -> ErrorAnswer:
    """Map `error` to a refusal. An unexpected error is logged under the reference that the client gets."""
    match error:
        case RequestRefused():
            return ErrorAnswer(error.status, error.words, error.headers)
        case CentralRefused() if 400 <= error.status < 600:
            return ErrorAnswer(error.status, error.said or str(error))
        case GatewayError():
            status = next((status for kind, status in _BY_KIND if isinstance(error, kind)), None)
            if status is not None:
                again = {"Retry-After": str(error.retry_after)} if isinstance(error, CameraUnavailable) else {}
                return ErrorAnswer(status, error.words, again)
        case web.HTTPException():
            allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            return ErrorAnswer(error.status, _BY_STATUS.get(error.status, error.reason.lower()), allowed)
        case TimeoutError():
            return ErrorAnswer(504, text("refused.answer_late"))
    reference = secrets.token_hex(4)
    log.error("request_failed", reference=reference, method=method, path=path, exc_info=error)
    return ErrorAnswer(500, text("refused.unexpected", reference=reference))


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


def failure(
    *, status: int, error: Words, resource: str, headers: Mapping[str, str] | None = None, is_keyed: bool = False
) -> web.Response:
    """Return a refusal: `success` is false, the resource field, if any, is null, and `error` is one sentence.

    `is_keyed`: the caller makes its own language, and gets the key and arguments of the sentence as `said`.
    """
    fields: dict[str, object] = {"success": False}
    if resource:
        fields[resource] = None
    fields["error"] = str(error)
    if is_keyed:
        fields["said"] = keyed(error)
    return as_json(fields, status=status, headers=headers)


def as_json(
    fields: Mapping[str, object], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> web.Response:
    """Return a JSON answer with `no-store`."""
    return from_json_text(to_json(fields), status=status, headers=headers)


def from_json_text(text: bytes, *, status: int = 200, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return JSON that is serialised already as an answer with `no-store`."""
    return web.Response(body=text, status=status, headers={**_PLAIN, **(headers or {})})
