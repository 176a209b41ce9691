"""A card reader that sends a line for each card."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from drivers.card_hold import CardHold
from drivers.contract import CardPresented, MonotonicSeconds
from drivers.link import LinkSpec
from drivers.serial_line.card_lines import CheckDigits, Form, alphabet, has_its_begin, read_line
from drivers.serial_line.speaking_reader import SpeakingReader
from drivers.serial_line.splitter import NOISE, LineSplitter

_MOST_REMEMBERED: Final = 8
_FEWEST_LETTERS: Final = 4
_NO_LINE = "characters without the line end that the site file gives, or a line whose begin is missing or too long"


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
        return (
            bool(self._alphabet) and is_text and len(letters) >= _FEWEST_LETTERS and self._alphabet.isdisjoint(letters)
        )

    def without(self, line: bytes) -> bytes:
        """Return a line without the heartbeats before it, if the site file names one."""
        while self._named and line.startswith(self._named) and line != self._named:
            line = line.removeprefix(self._named)
        return line

    def _is_named(self, text: bytes) -> bool:
        """Return whether the text is the heartbeat of the site file, or several of them."""
        return bool(self._named and text) and not text.replace(self._named, b"")


@dataclass(frozen=True, kw_only=True, slots=True)
class LineForm:
    """The form of a reader's lines.

    Attributes:
        terminator: the characters that end each line.
        prefix: characters before the card in each line; a line without them is taken too.
        form: the form of the card in a line; see `read_line`.
        check_digits: how the last digits of a line are verified; see `read_line`.
        heartbeat: a text that a serial server sends between the lines, "" for none.
    """

    terminator: str = "\r\n"
    prefix: str = ""
    form: Form = "text"
    check_digits: CheckDigits = "frame"
    heartbeat: str = ""


_USUAL: Final = LineForm()


class SerialReader(SpeakingReader):
    """A `drivers.contract.Reader` over lines of text.

    Args:
        device_id: the id that its reports carry.
        spec: the reader's line, which nothing else may use.
        hold_seconds: for so long, a card that stays is presented once; see `CardHold`.
        lines: the form of its lines.
        monotonic: the clock of stamps.
    """

    def __init__(
        self,
        *,
        device_id: int,
        spec: LinkSpec,
        hold_seconds: float,
        lines: LineForm = _USUAL,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(device_id=device_id, spec=spec, monotonic=monotonic)
        self._lines = lines
        self._terminator = lines.terminator.encode("latin-1")
        self._heartbeats = Heartbeats(
            named=lines.heartbeat.encode(), alphabet=alphabet(lines.form, prefix=lines.prefix)
        )
        self._hold = CardHold(seconds=hold_seconds)
        self._sends_tag_frames = False

    def _splitter(self, *, torn: bool, cut: bool) -> LineSplitter:
        return LineSplitter(
            terminator=self._terminator,
            torn=torn,
            cut=cut,
            is_foreign=self._heartbeats.is_foreign,
            is_whole=partial(has_its_begin, form=self._lines.form, prefix=self._lines.prefix),
        )

    def _cards(self, message: bytes, at: MonotonicSeconds) -> Iterator[CardPresented]:
        reading = read_line(
            self._heartbeats.without(message),
            form=self._lines.form,
            prefix=self._lines.prefix,
            check_digits=self._lines.check_digits,
            sends_tag_frames=self._sends_tag_frames,
        )
        self._heartbeats.card_read()
        self._sends_tag_frames |= reading.is_tag_frame
        card = CardPresented(self._device_id, reading.bit_length, reading.bits, reading.text, at)
        return filter(None, (self._hold.of(card),))

    def _why_dropped(self, data: bytes) -> str:
        return "" if self._heartbeats.is_told(data) else _NO_LINE
