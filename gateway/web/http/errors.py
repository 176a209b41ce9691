"""Errors of requests. Only this module maps them to a status and a sentence.

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

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog
from aiohttp import web

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

log = structlog.get_logger(__name__)

AUTHENTICATION_REQUIRED = "authentication required"
_BY_KIND: tuple[tuple[type[GatewayError], int], ...] = (
    (NotFoundError, 404),
    (CommandRefused, 409),
    (CentralRefused, 502),
    (CentralUnavailable, 502),
    (StoreError, 503),
    (QuotaExceeded, 503),
    (CameraUnavailable, 503),
)
_BY_STATUS: Mapping[int, str] = {
    404: "no such operation",
    405: "this method is not allowed here",
    413: "the body is larger than 1 MiB",
}


class RequestRefused(GatewayError):
    """A request that is answered with this status and this sentence."""

    def __init__(self, status: int, sentence: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers or {}


@dataclass(frozen=True, slots=True)
class Refusal:
    """The answer to a client for an error."""

    status: int
    sentence: str
    headers: Mapping[str, str] = field(default_factory=dict)


def authentication_required() -> RequestRefused:
    """Return the refusal of a request without a live session."""
    return RequestRefused(500, AUTHENTICATION_REQUIRED)


def second_factor_missing() -> RequestRefused:
    """Return the refusal of a session whose second factor is not proven yet."""
    return RequestRefused(500, f"{AUTHENTICATION_REQUIRED}: the code of the second factor is missing")


def permission_missing(group: tuple[str, ...]) -> RequestRefused:
    """Return the refusal of an account that has none of these permissions, of which it needs one."""
    return RequestRefused(500, f"permission denied: this needs {' or '.join(group)}")


def refusal_of(error: Exception, *, method: str, path: str) -> Refusal:
    """Map `error` to a refusal. An unexpected error is logged under the reference that the client gets."""
    match error:
        case RequestRefused():
            return Refusal(error.status, str(error), error.headers)
        case CentralRefused() if 400 <= error.status < 600:
            return Refusal(error.status, error.said or str(error))
        case GatewayError():
            status = next((status for kind, status in _BY_KIND if isinstance(error, kind)), None)
            if status is not None:
                again = {"Retry-After": str(error.retry_after)} if isinstance(error, CameraUnavailable) else {}
                return Refusal(status, str(error), again)
        case web.HTTPException():
            allowed = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
            return Refusal(error.status, _BY_STATUS.get(error.status, error.reason.lower()), allowed)
        case TimeoutError():
            return Refusal(504, "the answer did not come in time")
    reference = secrets.token_hex(4)
    log.error("request_failed", reference=reference, method=method, path=path, exc_info=error)
    return Refusal(500, f"unexpected error; the gateway's log has it under {reference}")
