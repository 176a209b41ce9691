"""Texts that come between a reader's lines, such as the heartbeat of a serial server. Pure."""

from __future__ import annotations

from typing import Final

from drivers.serial_line.seven_bits import NOISE

_MOST_REMEMBERED: Final = 8
_FEWEST: Final = 4


class Heartbeats:
    """The texts without a line end that come on a reader's line and are no begin of a card.

    A text is no begin of a card for certain when it is the heartbeat that the site file names, or when no line of this
    form can have any of its characters. Nothing else proves it: neither characters that no card has had so far, nor
    how often a text came, since a line may be torn at the same place each time. In doubt a text is the begin of a line,
    and what follows is no card of its own, because half a number may be another card's.

    Args:
        named: the heartbeat that the site file names; b"" for none.
        alphabet: the bytes that lines of this reader may have; empty for any.
    """

    def __init__(self, *, named: bytes = b"", alphabet: bytes = b"") -> None:
        self._named = named
        self._alphabet = frozenset(alphabet)
        self._told: dict[bytes, None] = {}
        self._has_cards = False

    def card_read(self) -> None:
        """Note that a line was a card, so that the reader's line ends are those of the site file."""
        self._has_cards = True

    def is_told(self, text: bytes) -> bool:
        """Note a text that came without a line end; return whether it needs telling no more.

        It does each time while it may be a message of the reader, whose form or line ends may differ from the site
        file's.
        """
        if not text.strip(NOISE) or self._is_named(text):
            return True
        if not (self._has_cards and self.is_foreign(text)):
            return False
        if text in self._told:
            return True
        if len(self._told) >= _MOST_REMEMBERED:
            del self._told[next(iter(self._told))]
        self._told[text] = None
        return False

    def is_foreign(self, text: bytes) -> bool:
        """Return whether a text that a pause follows is for certain no begin of a line.

        Bytes that are no characters, and fewer than four characters, may be a line that noise has damaged.
        """
        if self._is_named(text):
            return True
        letters = text.strip(b" ")
        is_text = letters.isascii() and letters.decode("ascii").isprintable()
        return bool(self._alphabet) and is_text and len(letters) >= _FEWEST and self._alphabet.isdisjoint(letters)

    def without(self, line: bytes) -> bytes:
        """Return a line without the heartbeats before it, if the site file names one."""
        while self._named and line.startswith(self._named) and line != self._named:
            line = line.removeprefix(self._named)
        return line

    def _is_named(self, text: bytes) -> bool:
        """Return whether the text is the heartbeat of the site file, or several of them."""
        return bool(self._named and text) and not text.replace(self._named, b"")
