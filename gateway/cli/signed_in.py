"""Commands that speak with the gateway that runs here, signed in as an account of the site."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPResponse
from pathlib import Path

import typer

from gateway.domain.errors import GatewayError

PASSWORD = "EDGE_GATEWAY_PASSWORD"  # noqa: S105 (the name of a variable)
_SECONDS = 90.0


@contextmanager
def signed_in(site: Path, user: str) -> Iterator[tuple[str, str]]:
    """The address of the gateway that runs here, and a session at it."""
    from gateway.site import load  # noqa: PLC0415  # help and refused words are told faster without it

    api = load(site).api
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(api.host, f"[{api.host}]" if ":" in api.host else api.host)  # noqa: S104 (not listened on)
    address = f"http://{host}:{api.port}"
    password = os.environ.get(PASSWORD) or typer.prompt("Password", hide_input=True)
    told = json.loads(asked(f"{address}/v1/auth/login", {"username": user, "password": password}))
    session = str(told["session"])
    if told.get("user", {}).get("mfa_enabled"):
        asked(f"{address}/v1/auth/mfa", {"token": typer.prompt("Code")}, session)
    try:
        yield address, session
    finally:
        asked(f"{address}/v1/auth/logout", {}, session)


def asked(address: str, body: Mapping[str, object] | None, session: str = "") -> bytes:
    """The answer to a POST of `body`, or to a GET without one."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data=data, method="GET" if body is None else "POST")  # noqa: S310 (built here)
    request.add_header("Content-Type", "application/json")
    if session:
        request.add_header("SessionID", session)
    with answered(request) as answer:
        return bytes(answer.read())


def answered(request: urllib.request.Request) -> HTTPResponse:
    """The answer to a request. Raises GatewayError with the gateway's own words, or that none answers."""
    try:
        answer: HTTPResponse = urllib.request.urlopen(request, timeout=_SECONDS)  # noqa: S310 (http of this machine)
    except urllib.error.HTTPError as error:
        with error:
            try:
                told = str(json.loads(error.read(65536))["error"])
            except (ValueError, KeyError, TypeError):
                told = f"it answered {error.code}"
        raise GatewayError(f"the gateway refused: {told}") from error
    except (urllib.error.URLError, OSError) as error:
        raise GatewayError(f"no gateway answers at {request.host}: is it running?") from error
    else:
        return answer
