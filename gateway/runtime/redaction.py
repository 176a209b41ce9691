"""Redaction of secrets in logs: by the name of a field, by the shape of a text, and by the secret's own value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

HIDDEN = "***"

_SHORTEST_VALUE = 6
"""A shorter secret is masked only by its field's name, because its value may occur in ordinary words."""

_MAX_DEPTH = 8

_WORDS = "passwo?r?d|passphrase|passwd|session(?:_?id)?|token|authorization|secret|cookie|api_?key|credentials?"
_SECRET_NAME = re.compile(rf"(?:^|[_\-.]|(?<=[a-z])(?=[A-Z]))(?i:{_WORDS})$")
_USERINFO = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.\-]*://)[^\s/?#\"'<>]*@", re.IGNORECASE)
_BEARER = re.compile(r"\b(?P<scheme>Basic|Bearer|Digest)\s+(?=\S*[0-9=]|\S{16})[A-Za-z0-9+/=._~\-]{8,}", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![A-Za-z])(?:\w*[_\-])?(?:{_WORDS})[\"']?\s*(?:=|:(?=\s*[\"']))\s*)"
    r"(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|[^\s&;,\"'})\]]+)",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(?P<name>\b(?:SessionID|Authorization|Set-Cookie|Cookie)\s*:\s*)[^\r\n\"']+", re.IGNORECASE)


class Redaction:
    """Masks secrets in texts and values. Secrets whose value is known are added with `hide`."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def hide(self, secret: str) -> None:
        """Mask this value wherever it appears from now on, plain or URL-encoded."""
        if len(secret) < _SHORTEST_VALUE or secret in self._values:
            return
        self._values |= {secret, quote(secret, safe=""), quote(secret)}
        longest_first = sorted(self._values, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def text(self, text: str) -> str:
        """Mask known secrets, credentials in URLs, authorization headers and assigned secrets in a text."""
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        if "://" in text:
            text = _USERINFO.sub(rf"\g<scheme>{HIDDEN}@", text)
        text = _HEADER.sub(rf"\g<name>{HIDDEN}", text)
        text = _BEARER.sub(rf"\g<scheme> {HIDDEN}", text)
        return _ASSIGNED.sub(rf"\g<name>{HIDDEN}", text)

    def value(self, name: str, value: object) -> object:
        """Mask secrets in a field's value; mask all of it if the field's name says that it is a secret."""
        if _SECRET_NAME.search(name) and not isinstance(value, bool | int | float | None):
            return HIDDEN
        return self._inner(value, _MAX_DEPTH)

    def _inner(self, value: object, depth: int) -> object:
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, str):
            return self.text(value)
        if depth == 0:
            return "…"
        if isinstance(value, Mapping):
            return {
                self.text(str(key)): HIDDEN
                if _SECRET_NAME.search(str(key)) and inner is not None
                else self._inner(inner, depth - 1)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self._inner(inner, depth - 1) for inner in value]
        return self.text(str(value))
