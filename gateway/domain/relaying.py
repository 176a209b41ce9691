"""Requests that only central can answer, passed from the interface to the relay."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain.errors import GatewayError

Headers = tuple[tuple[str, str], ...]


class RelayRefusal(StrEnum):
    """Reason why central did not answer a request."""

    AWAY = "away"
    """Central cannot be reached now; nothing was sent."""
    BUSY = "busy"
    """As many requests as are allowed are under way; nothing was sent."""
    TOO_LARGE = "too_large"
    """The request's body is larger than is relayed."""
    BROKEN_OFF = "broken_off"
    """The request's body broke off, or is no HTTP."""
    LATE = "late"
    """The request's body did not come in time."""
    SILENT = "silent"
    """Central took the request and did not answer in time: it may have carried it out."""
    LOST = "lost"
    """Central was lost before it answered: it may have carried the request out."""
    NOT_CARRIED = "not_carried"
    """Central's answer is larger than is relayed, or is no HTTP: it may have carried the request out."""


class NotRelayed(GatewayError):
    """Central did not answer a request: the reason, and one sentence."""

    def __init__(self, refusal: RelayRefusal, sentence: str) -> None:
        super().__init__(sentence)
        self.refusal = refusal


@dataclass(frozen=True, slots=True)
class RelayedRequest:
    """A request for central.

    Attributes:
        method: the HTTP method.
        path: the path from `/` on, encoded as it is sent.
        query: the query without `?`, encoded likewise; "" for none.
        headers: the headers to forward.
        token: the caller's own session at central; "" for an operation that needs none.
        owner: who asks; the number of requests under way is limited for each owner.
        body: the body as it arrives, None for none. It may raise NotRelayed.
        length: the body's length in bytes; None when it is not known before its end.
    """

    method: str
    path: str
    query: str
    headers: Headers
    token: str = field(repr=False)
    owner: str
    body: AsyncIterator[bytes] | None = None
    length: int | None = None


@dataclass(frozen=True, slots=True)
class AnswerOfCentral:
    """Central's answer.

    Attributes:
        status: its HTTP status.
        headers: its headers without those that concern the connection only.
        body: the body as it arrives; it raises NotRelayed when it breaks off.
        length: the body's length in bytes; None when it is not known before its end.
    """

    status: int
    headers: Headers
    body: AsyncIterator[bytes]
    length: int | None
