"""Passwords that attackers guess first. Pure."""

from __future__ import annotations

import re

_WORDS = frozenset(
    [
        "access",
        "admin",
        "administrator",
        "barrier",
        "changeme",
        "default",
        "demo",
        "edgegateway",
        "gate",
        "gateway",
        "guest",
        "letmein",
        "login",
        "master",
        "motdepasse",
        "operator",
        "parking",
        "pass",
        "passw0rd",
        "passwort",
        "password",
        "root",
        "secret",
        "service",
        "support",
        "system",
        "test",
        "user",
        "welcome",
        "bienvenue",
        "bonjour",
        "azerty",
        "qwerty",
        "qwertz",
        "iloveyou",
        "dragon",
        "monkey",
    ]
)
_RUNS = ("0123456789012345678901234567890", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "azertyuiop", "qwertzuiop")
_NO_LETTERS = re.compile(r"[^a-z]+")
_AROUND = re.compile(r"^[\W\d_]+|[\W\d_]+$")


def is_guessable(username: str, password: str) -> bool:
    """Return whether a password is among those that attackers try first.

    Those are: the account's name or a word common in default passwords, also with digits or marks around it; one
    character repeated; a run of digits, letters or neighbouring keys, also backwards.
    """
    plain = password.casefold()
    core = _AROUND.sub("", plain)
    words = {plain, core, _NO_LETTERS.sub("", plain)}
    if words & _WORDS or (username.casefold() in words and username):
        return True
    return len(set(plain)) <= 1 or any(plain in run or plain[::-1] in run for run in _RUNS)
