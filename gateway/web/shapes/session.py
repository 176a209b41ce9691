"""Signing in and out: what is sent and what is told."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from gateway.web.accounts import LONGEST_PASSWORD
from gateway.web.bodies import Body
from gateway.web.shapes.answers import Answer


class LoginBody(Body):
    """Who signs in."""

    username: Annotated[str, Field(strict=True, max_length=120)]
    password: Annotated[str, Field(strict=True, max_length=LONGEST_PASSWORD, repr=False)]


class MfaBody(Body):
    """The current code, in either field; a recovery code is one too."""

    token: Annotated[str, Field(strict=True, max_length=64, repr=False)] = ""
    code: Annotated[str, Field(strict=True, max_length=64, repr=False)] = ""


class LogoutBody(Body):
    """Nothing: the session is the request's."""


class LoginAnswer(Answer):
    """The session, and its account. Of an account of central, `user`, `role` and `servers` are as central gave them.

    `user` has `mfa_enabled`: true when the code of the second factor must be sent before anything else.
    """

    session: str
    user: dict[str, JsonValue]
    role: JsonValue
    servers: JsonValue


class MfaAnswer(Answer):
    """The second factor is proven."""

    mfa_enabled: bool


class LogoutAnswer(Answer):
    """The session is over."""

    user: None = None
    error: None = None
