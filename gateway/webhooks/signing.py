"""Signatures of messages: the interface's own header and Standard Webhooks. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping

SIGNATURE = "X-SERVICE-Signature"
_STANDARD = "whsec_"
_SHORTEST_KEY, _LONGEST_KEY = 24, 64


def headers(*, secret: str, message_id: str, timestamp: int, body: bytes) -> Mapping[str, str]:
    """Build the headers of one attempt.

    `X-SERVICE-Signature` is the hexadecimal HMAC-SHA-256 of the body; its key is the secret as registered.
    `webhook-signature` is the one of Standard Webhooks; its key is the base64 after `whsec_`, else the secret itself.
    `timestamp` is the time of this attempt, in seconds since 1970.
    """
    signed = b".".join((message_id.encode(), str(timestamp).encode(), body))
    standard = hmac.new(_standard_key(secret) or secret.encode(), signed, hashlib.sha256).digest()
    return {
        "Content-Type": "application/json",
        "User-Agent": "edge-gateway",
        SIGNATURE: hmac.new(secret.encode(), body, hashlib.sha256).hexdigest(),
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{base64.b64encode(standard).decode()}",
    }


def standard_key_fault(secret: str) -> str:
    """Return why a secret in the form of Standard Webhooks is invalid; "" when it is valid."""
    if not secret.startswith(_STANDARD) or _SHORTEST_KEY <= len(_standard_key(secret)) <= _LONGEST_KEY:
        return ""
    return f"what follows {_STANDARD} must be base64 of {_SHORTEST_KEY} to {_LONGEST_KEY} bytes"


def _standard_key(secret: str) -> bytes:
    """Return the key in a secret of the form of Standard Webhooks; b"" if there is none."""
    if not secret.startswith(_STANDARD):
        return b""
    try:
        return base64.b64decode(secret.removeprefix(_STANDARD), validate=True)
    except ValueError:
        return b""
