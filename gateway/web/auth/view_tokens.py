"""Tokens in addresses. Each opens one camera or camera event, with the rights of the caller for whom it was issued."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import struct
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from gateway.web.auth.callers import Caller
from gateway.web.operation import ViewKind

TOKEN = "token"  # noqa: S105 (the name of the query's parameter)
LIFE_SECONDS: Mapping[ViewKind, float] = MappingProxyType(
    {ViewKind.WATCH: 300.0, ViewKind.LIVE: 43_200.0, ViewKind.RECORDED: 43_200.0}
)
"""The life of a token by kind. A WebRTC view needs it only to start, an HLS or clip player for as long as it plays."""
_MOST_CALLERS = 1024
_BODY = struct.Struct(">BQd8s")
_PROOF_BYTES = 16


@dataclass(frozen=True, slots=True)
class TokenView:
    """The footage that a token opens: its kind, and the id of its camera or camera event."""

    kind: ViewKind
    id: int


@dataclass(frozen=True, slots=True)
class Issued:
    """A token and the number of seconds for which it is valid."""

    text: str = field(repr=False)
    seconds: float


class ViewTokens:
    """Issuer of tokens, and check of them. Each is valid for one view, and until the gateway restarts.

    A token holds no secret of the caller: it holds a reference to the caller, who is remembered here.
    """

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._key = secrets.token_bytes(32)
        self._callers: OrderedDict[bytes, Caller] = OrderedDict()

    def issue(self, view: TokenView, caller: Caller) -> Issued:
        """Return a token for the caller, valid for LIFE_SECONDS of its kind or up to a twelfth less.

        The token changes only once in a twelfth of that life, so that records with addresses do not change at every
        reading.
        """
        now, life = self._monotonic(), LIFE_SECONDS[view.kind]
        until = (now + life) // (life / 12) * (life / 12)
        body = _BODY.pack(view.kind.value, view.id, until, self._remember(caller))
        text = _text(body + self._proof(body))
        return Issued(text, seconds=until - now)

    def issued_to(self, token: str, view: TokenView) -> Caller | None:
        """Return the caller for whom the token was issued; None when it is forged, for another view, or expired."""
        try:
            raw = base64.b64decode(token.encode("ascii") + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            return None
        if _text(raw) != token:  # the decoder also accepts the standard alphabet and stray last bits
            return None
        body, proof = raw[: _BODY.size], raw[_BODY.size :]
        if len(body) != _BODY.size or not hmac.compare_digest(proof, self._proof(body)):
            return None
        kind, named, until, name = _BODY.unpack(body)
        if (kind, named) != (view.kind.value, view.id) or self._monotonic() >= until:
            return None
        return self._callers.get(name)

    def _remember(self, caller: Caller) -> bytes:
        name = self._proof(caller.token.encode())[:8]
        self._callers[name] = caller
        self._callers.move_to_end(name)
        if len(self._callers) > _MOST_CALLERS:
            self._callers.popitem(last=False)
        return name

    def _proof(self, body: bytes) -> bytes:
        return hmac.digest(self._key, body, hashlib.sha256)[:_PROOF_BYTES]


def _text(raw: bytes) -> str:
    """Return base64url without padding (RFC 4648)."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
