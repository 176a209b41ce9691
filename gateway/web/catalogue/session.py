"""Signing in and out."""

from __future__ import annotations

from gateway.web.catalogue.operation import HALF_SIGNED_IN, OPEN, Operation
from gateway.web.shapes.session import LoginAnswer, LoginBody, LogoutAnswer, LogoutBody, MfaAnswer, MfaBody

LOGIN = Operation(
    "POST", "/v1/auth/login", OPEN, "session", purpose="Sign in", body=LoginBody, answer=LoginAnswer, refuses=(404, 429)
)
LOGOUT = Operation(
    "POST",
    "/v1/auth/logout",
    HALF_SIGNED_IN,
    "user",
    purpose="End the session",
    body=LogoutBody,
    answer=LogoutAnswer,
    refuses=(403,),
)
LOGOUT_BY_GET = Operation(
    "GET", "/v1/auth/logout", HALF_SIGNED_IN, "user", purpose="End the session", answer=LogoutAnswer, refuses=(403,)
)
MFA = Operation(
    "POST",
    "/v1/auth/mfa",
    HALF_SIGNED_IN,
    "mfa_enabled",
    purpose="Prove the second factor by its current code",
    body=MfaBody,
    answer=MfaAnswer,
    refuses=(429,),
)

OPERATIONS: tuple[Operation, ...] = (
    LOGIN,
    LOGOUT,
    LOGOUT_BY_GET,
    MFA,
)
