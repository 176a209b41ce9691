"""Redaction of secrets in logs: by the name of a field, by the shape of a text, and by the secret's own value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote

HIDDEN = "***"

_SHORTEST_VALUE = 6
"""A shorter secret is masked only by its field's name, because its value may occur in ordinary words."""

_MAX_DEPTH = 8
_LONGEST_TEXT = 16 * 1024
_LONGEST_LINE = 2048
_CUT = " …"

_WORDS = "passwo?r?d|passphrase|passwd|session(?:_?id)?|token|authorization|secret|cookie|api_?key|credentials?"
_SECRET_NAME = re.compile(rf"(?:^|[_\-.]|(?<=[a-z])(?=[A-Z]))(?i:{_WORDS})$")
# Strangers write the texts, so each pattern takes linear time (`make check` tries). None has a repetition before its
# first fixed word, and each value that has begun is taken, with its closing quote or without.
_USERINFO = re.compile(r"(?<=://)[^\s/?#\"'<>]*@")
_BEARER = re.compile(r"\b(?P<scheme>Basic|Bearer|Digest)\s+(?=\S*[0-9=]|\S{16})[A-Za-z0-9+/=._~\-]{8,}", re.IGNORECASE)
_ASSIGNED = re.compile(
    rf"(?P<name>(?<![A-Za-z])(?:{_WORDS})[\"']?\s*(?:=|:(?=\s*[\"']))\s*)"
    r"(?:\"(?:[^\"\\]|\\.)*+(?:\"|\\?$)|'(?:[^'\\]|\\.)*+(?:'|\\?$)|[^\s&;,\"'})\]]+)",
    re.IGNORECASE,
)
_HEADER = re.compile(r"(?P<name>\b(?:SessionID|Authorization|Set-Cookie|Cookie)\s*:\s*)[^\r\n\"']+", re.IGNORECASE)


class Redaction:
    """Masks secrets in texts and values. Secrets whose value is known are added with `hide`."""

    def __init__(self) -> None:
        self._values: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None

    def hide(self, secret: str) -> None:
        """Mask this value wherever it appears from now on, plain or URL-encoded; of several lines, each line too."""
        found = {one for one in (secret, *secret.splitlines()) if len(one) >= _SHORTEST_VALUE} - self._values
        if not found:
            return
        self._values |= {form for one in found for form in (one, quote(one, safe=""), quote(one))}
        longest_first = sorted(self._values, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def text(self, text: str) -> str:
        """Mask the secrets of a text as `whole` does, and cut what is too long: lines to 2 KB, the text to 16 KB.

        Anybody may send what a text quotes, so its length must not decide how long the event loop is held.
        """
        if len(text) > _LONGEST_TEXT:
            kept = text[:_LONGEST_TEXT]
            text = (kept.rpartition("\n")[0] or kept) + _CUT
        return "\n".join(self._line(line, most=_LONGEST_LINE) for line in text.split("\n"))

    def whole(self, text: str) -> str:
        """Mask known secrets, credentials in URLs, authorization headers and assigned secrets, line by line.

        Other threads get their turn between two lines.
        """
        return "\n".join(map(self._line, text.split("\n")))

    def _line(self, line: str, *, most: int | None = None) -> str:
        if self._pattern is not None:
            line = self._pattern.sub(HIDDEN, line)
        if most is not None and len(line) > most:
            kept = line[:most]
            line = (kept.rpartition(" ")[0] or kept) + _CUT  # half a word may be half a secret
        if "://" in line:
            line = _USERINFO.sub(f"{HIDDEN}@", line)
        line = _HEADER.sub(rf"\g<name>{HIDDEN}", line)
        line = _BEARER.sub(rf"\g<scheme> {HIDDEN}", line)
        return _ASSIGNED.sub(rf"\g<name>{HIDDEN}", line)

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
