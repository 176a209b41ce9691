"""Commands that speak with the gateway that runs here, signed in as an account of the site."""

from __future__ import annotations

import json
import os
import ssl
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
    str, typer.Option("--user", help=f"An account of the site. The password is asked for, or read from {PASSWORD}.")
]
_SECONDS = 90.0
_AT_A_TIME = 1 << 20
_OTHER_CERTIFICATE = (
    "the program on this port does not have the certificate of [api.tls], or the certificate has expired:"
    " check the site file, and which program uses the port"
)
_BROKE_OFF = "the gateway's answer broke off; look in its log"


class Answer(BaseModel):
    """The fields that a command reads from the gateway's answer; others are ignored."""

    model_config = ConfigDict(frozen=True)


AnswerT = TypeVar("AnswerT", bound=Answer)


class _SignedIn(Answer):
    class Account(Answer):
        mfa_enabled: bool = False

    session: str
    user: Account = Account()


class Gateway:
    """The gateway that runs here, at its address, and a session at it."""

    def __init__(self, address: str, *, session: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.address = address
        self.session = session
        self._tls = tls

    def answer_of(self, shape: type[AnswerT], path: str, body: Mapping[str, object] | None) -> AnswerT:
        """Return the answer to a POST of `body`, or to a GET without one.

        Raises GatewayError: what `asked` raises, and that the answer is not of this shape.
        """
        try:
            return shape.model_validate_json(self.asked(path, body))
        except ValidationError as error:
            raise GatewayError(
                "the answer does not fit this command's release: restart the gateway, and check what uses its port"
            ) from error

    def asked(self, path: str, body: Mapping[str, object] | None) -> bytes:
        """Return the answer to a POST of `body`, or to a GET without one, as it came. Raises GatewayError."""
        with self.answered(path, body) as answer:
            return b"".join(pieces(answer))

    def answered(self, path: str, body: Mapping[str, object] | None = None) -> HTTPResponse:
        """Return the answer, its body still to be read. Raises GatewayError with the gateway's message."""
        data = None if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        request = urllib.request.Request(self.address + path, data=data, method=method)  # noqa: S310 (built here)
        request.add_header("Content-Type", "application/json")
        if self.session:
            request.add_header("SessionID", self.session)
        try:
            answer: HTTPResponse = urllib.request.urlopen(request, timeout=_SECONDS, context=self._tls)  # noqa: S310 (this machine)
        except urllib.error.HTTPError as error:
            with error:
                try:
                    message = str(json.loads(error.read(65536))["error"])
                except (ValueError, KeyError, TypeError):
                    message = f"it answered {error.code}"
            raise GatewayError(f"the gateway refused: {message}") from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise GatewayError(_OTHER_CERTIFICATE) from error
            raise GatewayError(f"no gateway answers at {request.host}: is it running?") from error
        else:
            return answer


@contextmanager
def signed_in(site: Path, user: str) -> Iterator[Gateway]:
    """Sign in at the gateway on this machine, and sign out when the context ends."""
    from gateway.site import load  # noqa: PLC0415  # help and wrong options answer faster without it
    from gateway.site.certificates import trusting_context  # noqa: PLC0415

    api = load(site).api
    listens_on = api.listens_on
    bracketed = f"[{listens_on}]" if ":" in listens_on else listens_on
    host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(listens_on, bracketed)  # noqa: S104 (not listened on)
    tls = None if api.tls is None else trusting_context(api.tls)
    gateway = Gateway(f"{'http' if tls is None else 'https'}://{host}:{api.port}", tls=tls)
    password = os.environ.get(PASSWORD) or typer.prompt("Password", hide_input=True)
    answer = gateway.answer_of(_SignedIn, "/v1/auth/login", {"username": user, "password": password})
    gateway.session = answer.session
    if answer.user.mfa_enabled:
        gateway.asked("/v1/auth/mfa", {"token": typer.prompt("Code")})
    try:
        yield gateway
    finally:
        gateway.asked("/v1/auth/logout", {})


def pieces(answer: HTTPResponse) -> Iterator[bytes]:
    """Yield the body as it arrives. Raises GatewayError when it is incomplete."""
    try:
        while piece := answer.read(_AT_A_TIME):
            yield piece
    except (OSError, HTTPException) as error:
        raise GatewayError(_BROKE_OFF) from error
    if answer.length:  # so many bytes are missing
        raise GatewayError(_BROKE_OFF)
