"""Commands that speak with the gateway that runs here, signed in as an account of the site."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.domain.errors import GatewayError

PASSWORD = "EDGE_GATEWAY_PASSWORD"  # noqa: S105 (the name of a variable)
SiteFile = Annotated[
    Path, typer.Option("--site", metavar="SITE.toml", help="The site file of the gateway that runs here.")
]
User = Annotated[
    str, typer.Option("--user", help=f"An account of the site; its password is asked for, or in {PASSWORD}.")
]
_SECONDS = 90.0
_AT_A_TIME = 1 << 20
_BROKE_OFF = "the gateway's answer broke off; look in its log"


class Answer(BaseModel):
    """What a command needs of the gateway's answer; whatever else is in it is passed over."""

    model_config = ConfigDict(frozen=True)


AnswerT = TypeVar("AnswerT", bound=Answer)


class _SignedIn(Answer):
    class Account(Answer):
        mfa_enabled: bool = False

    session: str
    user: Account = Account()


@contextmanager
def signed_in(site: Path, user: str) -> Iterator[tuple[str, str]]:
    """The address of the gateway that runs here, and a session at it."""
    from gateway.site import load  # noqa: PLC0415  # help and refused words are told faster without it

    api = load(site).api
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(api.host, f"[{api.host}]" if ":" in api.host else api.host)  # noqa: S104 (not listened on)
    address = f"http://{host}:{api.port}"
    password = os.environ.get(PASSWORD) or typer.prompt("Password", hide_input=True)
    told = answer_of(_SignedIn, f"{address}/v1/auth/login", {"username": user, "password": password})
    if told.user.mfa_enabled:
        asked(f"{address}/v1/auth/mfa", {"token": typer.prompt("Code")}, told.session)
    try:
        yield address, told.session
    finally:
        asked(f"{address}/v1/auth/logout", {}, told.session)


def answer_of(shape: type[AnswerT], address: str, body: Mapping[str, object] | None, session: str = "") -> AnswerT:
    """The answer to a POST of `body`, or to a GET without one.

    Raises GatewayError: what `asked` raises, and that the answer is not of this shape.
    """
    try:
        return shape.model_validate_json(asked(address, body, session))
    except ValidationError as error:
        raise GatewayError(
            "what answers is no gateway of this command's release: restart the gateway, and look who has its port"
        ) from error


def asked(address: str, body: Mapping[str, object] | None, session: str = "") -> bytes:
    """The answer to a POST of `body`, or to a GET without one, as it came. Raises GatewayError."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address, data=data, method="GET" if body is None else "POST")  # noqa: S310 (built here)
    request.add_header("Content-Type", "application/json")
    if session:
        request.add_header("SessionID", session)
    with answered(request) as answer:
        return b"".join(pieces(answer))


def pieces(answer: HTTPResponse) -> Iterator[bytes]:
    """The body as it comes. Raises GatewayError when it is not whole."""
    try:
        while piece := answer.read(_AT_A_TIME):
            yield piece
    except (OSError, HTTPException) as error:
        raise GatewayError(_BROKE_OFF) from error
    if answer.length:  # so much is missing
        raise GatewayError(_BROKE_OFF)


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
    except (urllib.error.URLError, OSError, HTTPException) as error:
        raise GatewayError(f"no gateway answers at {request.host}: is it running?") from error
    else:
        return answer
