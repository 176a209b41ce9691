"""Short-lived tokens that let whoever holds one watch one camera: for players that have no session."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import struct
from collections.abc import Callable

LIFE_SECONDS = 300.0
_BODY = struct.Struct(">Qd")


class ViewTokens:
    """Issues and proves tokens. They are worth nothing after a restart, nor for another camera.

    A token admits to the beginning of a session; one that has begun goes on.
    """

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._key = secrets.token_bytes(32)

    def issue(self, camera_id: int) -> str:
        """A token for a camera, good for LIFE_SECONDS."""
        body = _BODY.pack(camera_id, self._monotonic() + LIFE_SECONDS)
        return base64.urlsafe_b64encode(body + self._proof(body)).rstrip(b"=").decode()

    def admits(self, token: str, camera_id: int) -> bool:
        """Whether the token is ours, of this camera, and not over."""
        try:
            raw = base64.b64decode(token.encode("ascii") + b"=" * (-len(token) % 4), altchars=b"-_", validate=True)
        except (UnicodeEncodeError, binascii.Error):
            return False
        body, proof = raw[: _BODY.size], raw[_BODY.size :]
        if len(body) != _BODY.size or not hmac.compare_digest(proof, self._proof(body)):
            return False
        named, until = _BODY.unpack(body)
        return bool(named == camera_id and self._monotonic() < until)

    def _proof(self, body: bytes) -> bytes:
        return hmac.new(self._key, body, hashlib.sha256).digest()
