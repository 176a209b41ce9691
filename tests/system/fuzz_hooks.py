"""Schemathesis's knowledge of this interface: the 5xx it prescribes, existing records, and odd media types."""

from __future__ import annotations

import os
import re

import schemathesis

SAID = ("authentication required", "permission denied")
THERE = (
    ("/v1/device", 101),
    ("/v1/camera/event", 2_000_000_000),
    ("/v1/camera", 201),
    ("/v1/event", 1),
    ("/v1/access", 4001),
)
"""An id that the demo has, by how the path begins; the first that fits."""


@schemathesis.check
def only_the_documents_server_errors(ctx, response, case) -> None:
    """500 for a missing session or permission, 502 to 504 in the envelope; nothing else."""
    if response.status_code < 500:
        return
    body = response.json()
    assert body["success"] is False, body
    if response.status_code == 500:
        assert str(body["error"]).startswith(SAID), body
    else:
        assert response.status_code in (502, 503, 504), response.status_code
        assert body["error"], body


@schemathesis.check
def no_secret_is_told(ctx, response, case) -> None:
    """No refusal tells the session's token."""
    if response.status_code >= 400:
        assert os.environ["FUZZ_SESSION"].encode() not in response.content


@schemathesis.serializer("application/sdp", "application/trickle-ice-sdpfrag")
def text(ctx, value) -> bytes:
    """Return any generated value as text."""
    return str(value).encode("utf-8", "replace")


@schemathesis.hook
def map_body(ctx, body):
    """Half of the good ids become one that is there. What is wrong stays wrong."""
    if isinstance(body, dict) and type(body.get("id")) is int and body["id"] >= 0 and body["id"] % 2:
        body["id"] = there(ctx, body["id"])
    return body


@schemathesis.hook
def map_path_parameters(ctx, path_parameters):
    """As with bodies."""
    value = str((path_parameters or {}).get("id"))
    if re.fullmatch(r"[0-9]{1,19}", value) and int(value) % 2:
        path_parameters["id"] = str(there(ctx, int(value)))
    return path_parameters


def there(ctx, value: int) -> int:
    if ctx.operation.method.upper() == "DELETE":
        return value
    return next((found for start, found in THERE if ctx.operation.path.startswith(start)), value)
