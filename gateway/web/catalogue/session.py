"""Signing in and out."""

from __future__ import annotations

from gateway.web.catalogue.operation import HALF_SIGNED_IN, OPEN, Operation

LOGIN = Operation("POST", "/v1/auth/login", OPEN, "session")
LOGOUT = Operation("POST", "/v1/auth/logout", HALF_SIGNED_IN, "user")
LOGOUT_BY_GET = Operation("GET", "/v1/auth/logout", HALF_SIGNED_IN, "user")
MFA = Operation("POST", "/v1/auth/mfa", HALF_SIGNED_IN, "mfa_enabled")

OPERATIONS: tuple[Operation, ...] = (
    LOGIN,
    LOGOUT,
    LOGOUT_BY_GET,
    MFA,
)
