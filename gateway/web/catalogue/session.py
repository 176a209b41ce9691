"""Signing in and out."""

from __future__ import annotations

from gateway.web.catalogue.operation import OPEN, SIGNED_IN, Operation

LOGIN = Operation("POST", "/v1/auth/login", OPEN, "session")
LOGOUT = Operation("POST", "/v1/auth/logout", SIGNED_IN, "user")
LOGOUT_BY_GET = Operation("GET", "/v1/auth/logout", SIGNED_IN, "user")
MFA = Operation("POST", "/v1/auth/mfa", SIGNED_IN, "mfa_enabled")

OPERATIONS: tuple[Operation, ...] = (
    LOGIN,
    LOGOUT,
    LOGOUT_BY_GET,
    MFA,
)
