"""Parsing of camera bodies, endless or whole, multipart or bare, in any pieces, with the quirks of cameras. Pure.

The delimiter is learned from the body, because cameras often declare another one in Content-Type, and some change it
on the way. A text part ends with its last element, if its make has one, otherwise at its Content-Length; in either case
at the next delimiter if that comes first. So a part is complete as soon as it has arrived, not only when the next one
begins. Pictures are skipped. Types are not believed: a text that is declared as bytes is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from drivers.contract import ProtocolViolation

LARGEST_TEXT = 64 * 1024
READ_AT_ONCE = 16 * 1024
"""The most bytes that an event loop feeds before others have their turn: they may be some thousand parts."""
_LARGEST_PICTURE = 8 * 1024 * 1024
_LONGEST_HEAD = 4 * 1024
_LONGEST_LINE = 256
_MOST_JUNK = 64 * 1024
_LONGEST_DELIMITER = 102
_LONGEST_END = 128
_LONGEST_PREFIX = 42
_LONGEST_BLANKS = 16
_LOOK = 16
_PIECE = 2 * 1024
"""The bytes that are taken at once: the search for the end of a part looks through all of them, however small it is."""
_JUST_BYTES = "application/octet-stream"
_PICTURES = ("image/", "video/", "audio/", _JUST_BYTES)
_BINARY = (b"\xff\xd8", b"\x89PNG", b"GIF8", b"RIFF", b"\xff\xfb")
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_BLANK = b" \t\r\n\0"
_MARK = b"\xef\xbb\xbf"
_HEARTBEAT = b"Heartbeat"


class _ContentKind(Enum):
    """The kind of a part's content, by its first bytes. DOCUMENT is XML, LINES any other text."""

    DOCUMENT = auto()
    JSON = auto()
    LINES = auto()
    PICTURE = auto()


@dataclass(frozen=True, slots=True)
class BodyPart:
    """One part of a body.

    Attributes:
        content_type: its Content-Type in lower case, without parameters; "" when there is none.
        body: the bytes of a text; empty for a picture.
        is_picture: True for a picture, a video or other binary data.
        charset: the encoding that its Content-Type declares, "" for none.
        field: its name in a form, "" for none.
    """

    content_type: str
    body: bytes
    is_picture: bool = False
    charset: str = ""
    field: str = ""


class PartSplitter:
    """The splitter of a body into parts.

    Args:
        element: the root element that a make's documents end with, even where their Content-Length differs; empty for
            none.
        content_type: the Content-Type of the body, which without "multipart/" is one text unless it looks like parts.
        largest_text: the most bytes of a text.
    """

    def __init__(
        self,
        *,
        element: bytes = b"",
        content_type: str = "multipart/mixed",
        largest_text: int = LARGEST_TEXT,
    ) -> None:
        self._element = element
        self._body_type = content_type
        self._largest_text = largest_text
        self._buffer = bytearray()
        self._step: Callable[[], BodyPart | bool] = self._begin
        self._delimiter = b""
        self._fields: dict[str, str] = {}
        self._length: int | None = None
        self._kind: _ContentKind | None = None
        self._searched = 0
        self._passed_over = 0
        self._junk = 0
        self._fault = ProtocolViolation("")

    def feed(self, data: bytes) -> tuple[BodyPart, ...]:
        """Return the parts that these bytes complete.

        Raises ProtocolViolation when no part begins within 64 KiB, or a header, text or picture is too large.
        """
        parts: list[BodyPart] = []
        try:
            for start in range(0, len(data), _PIECE):
                self._buffer += data[start : start + _PIECE]
                while step := self._step():
                    if isinstance(step, BodyPart):
                        parts.append(step)
        except ProtocolViolation as violation:
            if not parts:
                raise
            self._fault, self._step = violation, self._fail  # the parts before it count
        return tuple(parts)

    def _fail(self) -> bool:
        raise self._fault

    def end(self, *, cut: bool = False) -> tuple[BodyPart, ...]:
        """Return the part that the end of the body completes, if any. `cut`: the body ended before its end.

        Of a body that was cut, half a document is returned too, since nobody can take it for a whole one.
        """
        step, self._step = self._step, self._drained
        if step == self._fail:
            raise self._fault
        if step != self._body or not self._buffer.strip(_BLANK) or self._kind in {None, _ContentKind.PICTURE}:
            return ()
        if cut and self._kind is _ContentKind.LINES:
            return ()
        return (self._part(len(self._buffer)),)

    def _begin(self) -> bool:
        """Decide whether the body has parts or is one bare text; return False when more bytes are needed."""
        del self._buffer[: len(self._buffer) - len(self._buffer.lstrip(_BLANK))]
        kind = self._looks_like()
        if kind is None:
            return False
        is_text = kind in {_ContentKind.DOCUMENT, _ContentKind.JSON}
        if not is_text and (self._body_type.startswith("multipart/") or self._buffer.startswith(b"--")):
            self._step = self._seek
            return True
        # A body that is declared as bytes may be text all the same, and must not be skipped as a picture.
        self._into({} if self._body_type.startswith(_JUST_BYTES) else {"content-type": self._body_type})
        return True

    def _behind_bare(self) -> bool:
        """Go on to the next document of a bare body, if one follows; drop anything else behind a whole one."""
        self._buffer = self._buffer.lstrip(_BLANK)
        kind = self._looks_like()
        if kind is None:
            return False
        if kind is _ContentKind.DOCUMENT:
            self._into(self._fields)
        else:
            self._step = self._drained
        return True

    def _drained(self) -> bool:
        self._buffer.clear()
        return False

    def _seek(self) -> bool:
        """Skip a line, and go on to the header if it is a delimiter; return False when more bytes are needed."""
        end = self._buffer.find(b"\n")
        if end < 0 and len(self._buffer) <= _LONGEST_LINE:
            return False
        line = self._taken(end + 1 if end >= 0 else len(self._buffer)).rstrip(b"\r\n \t")
        if _is_delimiter(line) and line != self._delimiter + b"--":
            self._delimiter, self._junk, self._fields, self._step = line, 0, {}, self._head
            self._passed_over = 0
            return True
        self._junk += len(line)
        if self._junk > _MOST_JUNK:
            raise ProtocolViolation(f"no part began within {_MOST_JUNK} bytes")
        return True

    def _head(self) -> bool:
        """Take a line of a part's header; go on to its body after the last. False when more bytes are needed."""
        if self._buffer.startswith((b"<", b"{")):  # some cameras forget the empty line
            self._into(self._fields)
            return True
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) + self._passed_over >= _LONGEST_HEAD:
                raise ProtocolViolation(f"a part's header is longer than {_LONGEST_HEAD} bytes")
            return False
        self._passed_over += end + 1
        if self._passed_over >= _LONGEST_HEAD:
            raise ProtocolViolation(f"a part's header is longer than {_LONGEST_HEAD} bytes")
        line = self._taken(end + 1).decode("latin-1").strip()
        if not line:
            self._into(self._fields)
            return True
        name, _, value = line.partition(":")
        self._fields.setdefault(name.strip().lower(), value.strip())
        return True

    def _into(self, fields: dict[str, str]) -> None:
        """Begin a part with these header fields."""
        length = fields.get("content-length", "")
        self._fields, self._length = fields, int(length) if re.fullmatch(r"[0-9]{1,9}", length) else None
        self._kind, self._searched, self._passed_over, self._step = None, 0, 0, self._body

    def _body(self) -> BodyPart | bool:
        """Take a part's body and return the part; return False when more bytes are needed.

        The bytes of an incomplete picture are dropped.
        """
        self._kind = self._kind or self._looks_like()
        end = self._picture_end() if self._kind is _ContentKind.PICTURE else self._text_end()
        if end is not None:
            part = self._part(end)
            self._step = self._seek if self._delimiter else self._behind_bare
            return part
        if self._kind is not _ContentKind.PICTURE:
            if len(self._buffer) > self._largest_text:
                raise ProtocolViolation(f"a text is longer than {self._largest_text} bytes")
            return False
        # Keep the last bytes: they may be the begin of a delimiter.
        passed = max(0, len(self._buffer) - len(self._delimiter) - 3)
        del self._buffer[:passed]
        self._passed_over += passed
        self._searched = 0
        if self._passed_over > _LARGEST_PICTURE:
            raise ProtocolViolation(f"a picture is larger than {_LARGEST_PICTURE} bytes")
        return False

    def _looks_like(self) -> _ContentKind | None:
        """Return the kind of what the buffer begins with; None while its first bytes have not come."""
        start = bytes(self._buffer[:_LOOK])
        head = start.lstrip(_BLANK).removeprefix(_MARK).lstrip(_BLANK)
        if head.startswith(_BINARY):
            return _ContentKind.PICTURE
        if head.startswith(_WIDE_MARKS) or head[:1] == b"<":
            return _ContentKind.DOCUMENT
        if head[:1] in {b"{", b"["}:
            return _ContentKind.JSON
        if len(start) < _LOOK and (len(head) < 2 or _MARK.startswith(head)) and not self._is_at_delimiter():
            return None
        declared = self._fields.get("content-type", "").lower()
        return _ContentKind.PICTURE if declared.startswith(_PICTURES) else _ContentKind.LINES

    def _is_at_delimiter(self) -> bool:
        return bool(self._delimiter) and self._buffer.lstrip(b"\r\n").startswith(self._delimiter)

    def _text_end(self) -> int | None:
        """Return the place in the buffer where a text ends; None while that is not known."""
        ends: list[int] = []
        if (delimiter := self._delimiter_at()) is not None:
            ends.append(delimiter)
        if self._kind is _ContentKind.DOCUMENT and self._element:
            if closed := self._closed_at():
                ends.append(closed)
        elif (
            self._length is None
            and self._kind is _ContentKind.LINES
            and self._delimiter
            and (empty := self._empty_line())
        ):
            ends.append(empty)
        elif self._length is not None and len(self._buffer) >= self._length and self._is_whole(self._length):
            ends.append(self._length)
        self._searched = len(self._buffer)
        return min(ends) if ends else None

    def _closed_at(self) -> int:
        """Return the place behind the end tag of the make's element, with any namespace prefix; 0 for none yet."""
        place = self._buffer.find(self._element, max(0, self._searched - _LONGEST_END))
        while place >= 0:
            _, slash, prefix = bytes(self._buffer[max(0, place - _LONGEST_PREFIX) : place]).rpartition(b"</")
            behind = place + len(self._element)
            rest = bytes(self._buffer[behind : behind + _LONGEST_BLANKS]).lstrip(_BLANK)
            if slash and (not prefix or prefix.endswith(b":")) and rest.startswith(b">"):
                return self._buffer.index(b">", behind) + 1
            place = self._buffer.find(self._element, place + 1)
        return 0

    def _empty_line(self) -> int:
        """Return the place of the first empty line behind some text, which ends lines without a length; 0 for none."""
        start = max(0, self._searched - 3)
        places = [self._buffer.find(line, start) for line in (b"\n\r\n", b"\n\n")]
        first = min((place for place in places if place >= 0), default=-1)
        return first + 1 if first >= 0 and self._buffer[:first].strip(_BLANK) else 0

    def _is_whole(self, length: int) -> bool:
        """Return whether a text of this length looks whole. Half a line could be taken for another plate."""
        text = self._buffer[:length].rstrip(_BLANK)
        if self._kind is _ContentKind.JSON:
            return text.endswith((b"}", b"]"))
        if self._kind is _ContentKind.DOCUMENT:
            return text.endswith(b">")
        ends_its_line = len(text) < length or self._buffer[length : length + 1].startswith((b"\r", b"\n"))
        return ends_its_line or text.lstrip(_BLANK) == _HEARTBEAT

    def _delimiter_at(self) -> int | None:
        """Return where the next delimiter begins behind a line end, or right behind a document; None if none has come.

        The line feed before it counts as a part of it.
        """
        if not self._delimiter:
            return None
        if not self._passed_over and self._buffer.startswith(self._delimiter):
            return 0
        start = max(0, self._searched - len(self._delimiter) - 3)
        places = [self._buffer.find(b"\n" + self._delimiter, start)]
        for end in self._ends_before_delimiter():
            found = self._buffer.find(end + self._delimiter, start)
            places.append(found + len(end) if found >= 0 else -1)
        return min((place for place in places if place >= 0), default=None)

    def _ends_before_delimiter(self) -> tuple[bytes, ...]:
        """Return the bytes behind which a delimiter needs no line end."""
        if self._kind in {_ContentKind.JSON, _ContentKind.DOCUMENT}:
            return (b"}", b"]", b">")
        return (b"\xff\xd9",) if self._kind is _ContentKind.PICTURE and self._length is None else ()

    def _picture_end(self) -> int | None:
        ends = [place for place in (self._delimiter_at(),) if place is not None]
        if self._length is not None and len(self._buffer) + self._passed_over >= self._length:
            ends.append(self._length - self._passed_over)
        return min(ends) if ends else None

    def _part(self, end: int) -> BodyPart:
        """Take a part that ends at this place."""
        body = self._taken(end)
        content_type, _, more = self._fields.get("content-type", "").lower().partition(";")
        if self._kind is _ContentKind.PICTURE:
            return BodyPart(content_type.strip(), b"", is_picture=True)
        field = _parameter(self._fields.get("content-disposition", ""), "name")
        return BodyPart(
            content_type.strip(), body.removesuffix(b"\r"), charset=_parameter(more, "charset"), field=field
        )

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken


def _is_delimiter(line: bytes) -> bool:
    if not (3 <= len(line) <= _LONGEST_DELIMITER and line.startswith(b"--") and line.isascii()):
        return False
    return line.decode().isprintable()


def _parameter(text: str, name: str) -> str:
    """Return a parameter of a header field, without its quotes; "" for none."""
    for one in text.split(";"):
        key, _, value = one.partition("=")
        if key.strip().lower() == name:
            return value.strip().strip("\"'")[:64]
    return ""
