"""Signing in and out: what is asked and what is told."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.web.auth.site_file_accounts import LONGEST_PASSWORD
from gateway.web.http.bodies import Body
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


class SignedInUser(BaseModel):
    """The account. While `mfa_enabled` the session is worth nothing before its second factor is proven."""

    model_config = ConfigDict(frozen=True, extra="allow")

    mfa_enabled: bool


class LoginAnswer(Answer):
    """The session's token, which is the client's to keep. The rest is central's own for an account of central."""

    session: Annotated[str, Field(repr=False)]
    user: SignedInUser
    role: JsonValue
    servers: JsonValue


class MfaAnswer(Answer):
    """The second factor is proven."""

    mfa_enabled: Literal[True]


class LogoutAnswer(Answer):
    """The session is over."""

    user: None
    error: None
