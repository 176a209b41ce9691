"""Masking of secrets, card numbers and PINs in texts for people outside the site. Pure."""

from __future__ import annotations

import json
import re

from gateway.runtime.redaction import HIDDEN, Redaction

_QUERY = re.compile(r"(://[^\s\"'<>?#]*+)(\?[^\s\"'<>]+)?")
_HEXADECIMAL = re.compile(r"(?<![0-9A-Fa-f])[0-9A-Fa-f]{32,}(?![0-9A-Fa-f])")
_BASE32 = re.compile(r"(?<![A-Z2-7])[A-Z2-7]{16,}(?![A-Z2-7])")
_OPAQUE = re.compile(r"(?<![/\w.+-])[A-Za-z0-9_\-]{40,}")
_DIGITS = re.compile(r"(?<![0-9])(?![0-9]{4}-[01][0-9]-[0-3][0-9])[0-9]{4,}(?![0-9])")
_KEPT_DIGITS, _LONG_NUMBER = 2, 7
_HOST = re.compile(r"[0-9A-Za-z.\-]{1,255}")
_MEASURE = re.compile(r" ?(?:ms|s|seconds|bytes|kB|KB|MB|GB|bit/s|baud|entries|lines|requests)\b")
_LIMIT_WORDS = ("at most ", "more than ", "less than ", "within ", "limit ", "limit of ")
_PORT_WORDS = ("port ", "ports ", "port=", "localhost:", "]:")
_HIGHEST_PORT = 65_535
_LONGEST_HOST = 64
_NAMED = re.compile(
    r"(?P<name>(?<![\w-])[\"']?[\w-]*(?i:key|keys|pin|pins|seed|pwd|pass|totp|otp)[\"']?\s*=\s*)"
    r"(?P<value>\"(?:[^\"\\]|\\.)*\"|'[^']*'|\[[^\]]*+\]?|[^\s,}\]]+)"
)
_NUMBER_NAMES = frozenset({"number", "card", "bits", "pin", "keys", "credential"})
_SHORTEST_NUMBER = 1000


class Masking:
    """The masking of texts for a bundle. `redaction` knows the values of the site's secrets."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def text(self, text: str) -> str:
        """Mask known secrets, accounts and queries in addresses, and everything that looks like a key or a token."""
        return "\n".join(map(_masked, self._redaction.whole(text).split("\n")))

    def happening(self, text: str) -> str:
        """Mask as `text` does, and also numbers of four digits or more; of long ones the last two digits are kept.

        Ports, limits and measures stay: whoever is called needs them, and numbers of cards are longer, or stand alone.
        """
        return _DIGITS.sub(_cut, self.text(text))

    def site_file(self, text: str) -> str:
        """Mask a site file as `text` does, and also remove comments, and mask the values of keys and PINs."""
        lines = (_without_comment(line).rstrip() for line in text.splitlines())
        bare = "\n".join(line for line in lines if line)
        return self.text(_NAMED.sub(rf"\g<name>{HIDDEN!r}", bare)) + "\n"

    def log_line(self, line: str) -> str:
        """Mask a line of the log as `happening` does, except its time, logger and level."""
        try:
            read = json.loads(line)
        except ValueError:
            return self.happening(line)
        if not isinstance(read, dict):
            return self.happening(line)
        kept = {"timestamp", "logger", "level"}
        shown = {name: value if name in kept else self.value(name, value) for name, value in read.items()}
        return self.text(json.dumps(shown, ensure_ascii=False))

    def journal_line(self, line: str) -> str:
        """Mask a line of the systemd journal, which is a line of the log after a head, as `log_line` does."""
        head, brace, rest = line.partition("{")
        return self.happening(head) + (self.log_line(brace + rest) if brace else "")

    def value(self, name: str, value: object) -> object:
        """Mask a value as `happening` does; mask it completely if its name stands for a card or a PIN."""
        is_long = isinstance(value, int) and value >= _SHORTEST_NUMBER
        if name in _NUMBER_NAMES and (is_long or (isinstance(value, str) and value)):
            return HIDDEN
        match self._redaction.value(name, value):
            case str() as text:
                return self.happening(text)
            case list() as values:
                return [self.value("", one) for one in values]
            case dict() as mapping:
                return {key: self.value(str(key), one) for key, one in mapping.items()}
            case other:
                return other


def _masked(line: str) -> str:
    """Mask one line: other threads get their turn between two lines of a long text."""
    line = _QUERY.sub(lambda found: found[1] + (f"?{HIDDEN}" if found[2] else ""), line)
    for pattern in (_HEXADECIMAL, _BASE32, _OPAQUE):
        line = pattern.sub(HIDDEN, line)
    return line


def _cut(match: re.Match[str]) -> str:
    digits, text = match[0], match.string
    before = text[max(0, match.start() - _LONGEST_HOST) : match.start()]
    if len(digits) >= _LONG_NUMBER:
        return HIDDEN + digits[-_KEPT_DIGITS:]
    is_limit = _MEASURE.match(text, match.end()) or before.endswith(_LIMIT_WORDS)
    return digits if is_limit or _is_port(before, digits) else HIDDEN


def _is_port(before: str, digits: str) -> bool:
    if len(digits) > len(str(_HIGHEST_PORT)) or int(digits) > _HIGHEST_PORT:
        return False
    if before.endswith(_PORT_WORDS):
        return True
    host = before.removesuffix(":").rpartition(" ")[2].rpartition("/")[2].rpartition("@")[2]
    return before.endswith(":") and "." in host and _HOST.fullmatch(host) is not None


def _without_comment(line: str) -> str:
    """Return a line of TOML without its comment, which begins at a # outside of quotes.

    A backslash escapes only between double quotes.
    """
    quote, is_escaped = "", False
    for place, character in enumerate(line):
        if is_escaped:
            is_escaped = False
        elif quote:
            is_escaped = character == "\\" and quote == '"'
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "#":
            return line[:place]
    return line
