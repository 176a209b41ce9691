"""Tokens in addresses: whoever holds one sees one camera, or one camera event, with the rights of who asked for it."""

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
"""A WebRTC view goes on once it has begun; a player of HLS or of a clip needs its address for as long as it plays."""
_MOST_CALLERS = 1024
_BODY = struct.Struct(">BQd8s")
_PROOF_BYTES = 16


@dataclass(frozen=True, slots=True)
class View:
    """The footage that a token opens: its kind, and the id of its camera or camera event."""

    kind: ViewKind
    id: int


@dataclass(frozen=True, slots=True)
class Issued:
    """A token, and for how many seconds it is good."""

    text: str = field(repr=False)
    seconds: float


class ViewTokens:
    """Issues and proves tokens. Each is good for one view, and for none after a restart.

    A token holds no secret of the caller's: it names the caller, who is remembered here.
    """

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._key = secrets.token_bytes(32)
        self._callers: OrderedDict[bytes, Caller] = OrderedDict()

    def issue(self, view: View, caller: Caller) -> Issued:
        """Make a token for the caller, good for LIFE_SECONDS of its kind or a little less.

        Asked again within a twelfth of that life it is the same one, so that records do not change without a reason.
        """
        now, life = self._monotonic(), LIFE_SECONDS[view.kind]
        until = (now + life) // (life / 12) * (life / 12)
        body = _BODY.pack(view.kind.value, view.id, until, self._remember(caller))
        text = _text(body + self._proof(body))
        return Issued(text, seconds=until - now)

    def issued_to(self, token: str, view: View) -> Caller | None:
        """Return who was given the token; None when it is not ours, for another view, or over."""
        try:
            raw = base64.b64decode(token.encode("ascii") + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            return None
        if _text(raw) != token:  # the decoder takes the usual alphabet too, and bits behind the last byte
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
