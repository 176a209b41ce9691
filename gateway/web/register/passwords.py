"""The rules for passwords of people. Pure."""

from __future__ import annotations

from gateway.domain.guessable import is_guessable

SHORTEST_PASSWORD = 8
LONGEST_PASSWORD = 1000


def password_fault(username: str, password: str) -> str:
    """Return in one sentence why the account cannot have this password; "" when it can."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        return f"a password must have {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters"
    if password.casefold() == username.casefold():
        return "the password must differ from the name"
    if is_guessable(username, password):
        return "this password is among those that are tried first; choose another"
    return ""
