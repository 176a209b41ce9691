"""Parsing of multipart bodies, endless or whole, in any pieces, with the quirks of cameras. Pure.

The delimiter is learned from the body, because cameras often declare another one in Content-Type, and some change it
on the way. A text part ends at its closing text, if its make has one, otherwise at its Content-Length; in either case
at the next delimiter if that comes first. So a part is complete as soon as it has arrived, not only when the next one
begins. Pictures are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from drivers.contract import ProtocolViolation

LARGEST_TEXT = 64 * 1024
_LARGEST_PICTURE = 8 * 1024 * 1024
_LONGEST_HEAD = 4 * 1024
_LONGEST_LINE = 256
_MOST_JUNK = 64 * 1024
_DELIMITER = re.compile(rb"--[!-~]{1,100}")
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_PICTURES = ("image/", "video/", "application/octet-stream")


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a multipart body.

    Attributes:
        content_type: its Content-Type in lower case, without parameters; "" when there is none.
        body: the bytes of a text; empty for a picture.
    """

    content_type: str
    body: bytes

    @property
    def is_picture(self) -> bool:
        """True for a picture, a video or other binary data."""
        return self.content_type.startswith(_PICTURES)


class PartSplitter:
    """The splitter of a multipart body into parts.

    Args:
        closing: the text that ends a text part, even where its Content-Length differs, as in
            `</EventNotificationAlert>`; empty for none.
    """

    def __init__(self, *, closing: bytes = b"") -> None:
        self._closing = closing
        self._buffer = bytearray()
        self._step: Callable[[], Part | bool] = self._seek
        self._delimiter = b""
        self._content_type = ""
        self._length: int | None = None
        self._passed_over = 0
        self._junk = 0

    def feed(self, data: bytes) -> tuple[Part, ...]:
        """Return the parts that these bytes complete.

        Raises ProtocolViolation when no part begins within 64 KiB, or a header, text or picture is too large.
        """
        self._buffer += data
        parts: list[Part] = []
        while step := self._step():
            if isinstance(step, Part):
                parts.append(step)
        return tuple(parts)

    def _seek(self) -> bool:
        """Skip a line, and go on to the header if it is a delimiter; return False when more bytes are needed."""
        end = self._buffer.find(b"\n")
        if end < 0 and len(self._buffer) <= _LONGEST_LINE:
            return False
        line = self._taken(end + 1 if end >= 0 else len(self._buffer)).rstrip(b"\r\n")
        if _DELIMITER.fullmatch(line) and line != self._delimiter + b"--":
            self._delimiter, self._junk, self._step = line, 0, self._head
            return True
        self._junk += len(line)
        if self._junk > _MOST_JUNK:
            raise ProtocolViolation(f"no part began within {_MOST_JUNK} bytes")
        return True

    def _head(self) -> bool:
        """Take a part's header, and go on to its body; return False when more bytes are needed."""
        if self._buffer.startswith((b"\r\n", b"\n")):
            head = self._taken(self._buffer.index(b"\n") + 1)
        elif found := _HEAD_END.search(self._buffer, 0, _LONGEST_HEAD):
            head = self._taken(found.end())
        elif len(self._buffer) >= _LONGEST_HEAD:
            raise ProtocolViolation(f"a part's header is longer than {_LONGEST_HEAD} bytes")
        else:
            return False
        fields: dict[str, str] = {}
        for line in head.decode("latin-1").splitlines():
            name, _, value = line.partition(":")
            fields.setdefault(name.strip().lower(), value.strip())
        self._content_type = fields.get("content-type", "").partition(";")[0].strip().lower()
        length = fields.get("content-length", "")
        self._length = int(length) if re.fullmatch(r"[0-9]{1,9}", length) else None
        self._passed_over, self._step = 0, self._body
        return True

    def _body(self) -> Part | bool:
        """Take a part's body and return the part; return False when more bytes are needed.

        The bytes of an incomplete picture are dropped.
        """
        picture = self._content_type.startswith(_PICTURES)
        end = self._body_end(is_text=not picture)
        if end is not None:
            body = self._taken(end)
            self._step = self._seek
            return Part(self._content_type, b"" if picture else body.removesuffix(b"\r"))
        if not picture:
            if len(self._buffer) > LARGEST_TEXT:
                raise ProtocolViolation(f"a part's text is longer than {LARGEST_TEXT} bytes")
            return False
        # Keep the last bytes: they may be the begin of a delimiter.
        passed = max(0, len(self._buffer) - len(self._delimiter) - 2)
        del self._buffer[:passed]
        self._passed_over += passed
        if self._passed_over > _LARGEST_PICTURE:
            raise ProtocolViolation(f"a picture is larger than {_LARGEST_PICTURE} bytes")
        return False

    def _body_end(self, *, is_text: bool) -> int | None:
        """Return the place in the buffer where the body ends; None while that is not known."""
        ends: list[int] = []
        delimiter = self._buffer.find(b"\n" + self._delimiter)
        if delimiter >= 0:
            ends.append(delimiter)
        if is_text and self._closing and self._buffer.lstrip().startswith(b"<"):
            closing = self._buffer.find(self._closing)
            if closing >= 0:
                ends.append(closing + len(self._closing))
        elif self._length is not None and len(self._buffer) + self._passed_over >= self._length:
            ends.append(self._length - self._passed_over)
        return min(ends) if ends else None

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken
