"""Texts that come between a reader's lines, such as the heartbeat of a serial server. Pure."""

from __future__ import annotations

from typing import Final

from drivers.serial_line.seven_bits import SWITCHED_ON

_MOST_REMEMBERED: Final = 8
_LINES_NEEDED: Final = 2
_NOISE: Final = bytes((*range(0x21), 0x7F)) + SWITCHED_ON


class Heartbeats:
    """The texts without a line end that come on a reader's line and are no begin of a card.

    A heartbeat is known when the site file names it, or when it has come twice by itself on a line whose cards are
    read. A text that no line of this form can begin with is foreign too, and so is one with a kind of characters that
    no card of this reader has had. In doubt a text is the begin of a line, since half a number may be another's.

    Args:
        named: the heartbeat that the site file names; b"" for none.
        alphabet: the bytes that lines of this reader may have; empty for any.
    """

    def __init__(self, *, named: bytes = b"", alphabet: bytes = b"") -> None:
        self._named = named
        self._alphabet = frozenset(alphabet)
        self._came: dict[bytes, int] = {}
        self._lines = 0
        self._kinds: frozenset[str] = frozenset()

    def line_read(self, line: bytes) -> None:
        """Learn the kinds of characters of a line that was a card. No begin of such a line is a heartbeat."""
        self._came = {text: count for text, count in self._came.items() if not line.startswith(text)}
        self._lines += 1
        self._kinds |= _kinds(line)

    def came_alone(self, text: bytes) -> bool:
        """Note a text that came without a line end; return whether it is for certain no message of the reader.

        A text that looks like a card may be one: the reader may have been set to other line ends.
        """
        if not text.strip(_NOISE) or self._is_named(text):
            return True
        if not self._lines:
            return False  # as long as no card was read, the reader itself may send other line ends
        if len(self._came) >= _MOST_REMEMBERED and text not in self._came:
            del self._came[next(iter(self._came))]
        self._came[text] = self._came.get(text, 0) + 1
        is_text = text.isascii() and text.decode("ascii").isprintable()
        return self._came[text] > 1 and is_text and not self._kinds.issuperset(_kinds(text))

    def is_foreign(self, text: bytes) -> bool:
        """Return whether a text that a pause follows is no begin of a line."""
        if self._is_heartbeat(text):
            return True
        if self._alphabet:
            return not self._alphabet.issuperset(text)
        return self._lines >= _LINES_NEEDED and not self._kinds.issuperset(_kinds(text))

    def without(self, line: bytes) -> bytes:
        """Return a line without the heartbeats before it, if the site file names one."""
        while self._named and line.startswith(self._named) and line != self._named:
            line = line.removeprefix(self._named)
        return line

    def _is_heartbeat(self, text: bytes) -> bool:
        """Return whether the text is a known heartbeat, or several."""
        return self._is_named(text) or self._came.get(text, 0) > 1

    def _is_named(self, text: bytes) -> bool:
        return bool(self._named and text) and not text.replace(self._named, b"")


def _kinds(text: bytes) -> frozenset[str]:
    """Return the kinds of characters in a text: digits, capitals, small letters, and each other sign by itself."""
    return frozenset(
        "0" if "0" <= one <= "9" else "A" if "A" <= one <= "Z" else "a" if "a" <= one <= "z" else one
        for one in text.decode("latin-1")
        if one > " "
    )
