"""Parsing of small XML documents of devices, without any of XML's dangerous parts.

A DOCTYPE is refused, so there are no entities to expand. Nothing is fetched. Depth and size are bounded. Devices send
names of channels as people typed them, so a bare `&`, control characters and a wrong encoding are no faults here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat

from drivers.contract import ProtocolViolation
from drivers.texts import BLANKS, decoded, replaced

LARGEST = 64 * 1024
_DEEPEST = 32
_DECLARED = re.compile(r"encoding ?= ?[\"']([A-Za-z0-9._-]{1,40})[\"']")
_LONGEST_DECLARATION = 200
_BARE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")
_REFERENCE = re.compile(r"&#(?:([0-9]{1,7})|x([0-9A-Fa-f]{1,6}));")
_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udc7f\udd00-\udfff\ufffe\uffff\U0010ff00-\U0010ffff]")
_AROUND = BLANKS + "\0\ufeff\ufffd"
_INNER = "\ufffe"
"""The place of an element inside another's text. No text has this character; see `_UNREADABLE`."""
_SHIFTED = {0xDC80 + number: 0x10FF00 + number for number in range(128)}
_UNSHIFTED = {shifted: kept for kept, shifted in _SHIFTED.items()}
"""Bytes of an unknown encoding go through the parser as characters of the last private plane."""


@dataclass(frozen=True, slots=True)
class XmlTexts:
    """The texts of a document.

    Attributes:
        root: the name of the root element, without its namespace.
        first: the text of the first element of each name. Names lack their namespaces, texts the blanks around them. An
            element inside a text leaves a replacement mark there.
    """

    root: str
    first: Mapping[str, str]


def read_xml(document: bytes, *, declared: str = "", keeps_bytes: bool = False) -> XmlTexts:
    """Extract the texts of a document; where a name occurs twice, its first occurrence wins.

    Args:
        document: the document.
        declared: the encoding that the message declares around the document; "" for none.
        keeps_bytes: whether texts keep bytes of an unknown encoding as `decoded` does, instead of replacement marks.

    Raises ProtocolViolation for a document that is no XML, larger than `LARGEST` bytes, nested deeper than 32
    elements, or has a DOCTYPE.
    """
    if len(document) > LARGEST:
        raise ProtocolViolation(f"an XML document of {len(document)} bytes")
    inner = _DECLARED.search(document[:_LONGEST_DECLARATION].partition(b"?>")[0].decode("latin-1"))
    text = decoded(document, declared=inner[1] if inner else declared).strip(_AROUND)
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(_well_formed(text), True)  # noqa: FBT003 (expat takes it by position alone)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise ProtocolViolation(f"not readable as XML: {error}") from error
    first = {name: said if said.isascii() else said.translate(_UNSHIFTED) for name, said in reader.first.items()}
    if not keeps_bytes:
        first = {name: replaced(said) for name, said in first.items()}
    return XmlTexts(root=reader.root, first=first)


def _well_formed(text: str) -> str:
    text = _UNREADABLE.sub("\ufffd", text)
    text = _REFERENCE.sub(_reference, _BARE.sub("&amp;", text))
    return text if text.isascii() else text.translate(_SHIFTED)


def _reference(found: re.Match[str]) -> str:
    code = int(found[1]) if found[1] else int(found[2], 16)
    is_character = code in {9, 10, 13} or 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or 0x10000 <= code < 0x10FF00
    return found[0] if is_character else "\ufffd"


def _refuse_doctype(*_: object) -> None:
    raise ProtocolViolation("an XML document with a DOCTYPE")


class _Reader:
    def __init__(self) -> None:
        self.root = ""
        self.first: dict[str, str] = {}
        self._open: list[tuple[str, list[str]]] = []

    def start(self, name: str, _attributes: Mapping[str, str]) -> None:
        if len(self._open) >= _DEEPEST:
            raise ProtocolViolation(f"an XML document deeper than {_DEEPEST} elements")
        local = name.rpartition(":")[2]
        self.root = self.root or local
        if self._open:
            self._open[-1][1].append(_INNER)
        self._open.append((local, []))

    def end(self, _name: str) -> None:
        local, texts = self._open.pop()
        text = "".join(texts).strip(BLANKS)
        self.first.setdefault(local, text.replace(_INNER, "\ufffd") if text.strip(BLANKS + _INNER) else "")

    def text(self, text: str) -> None:
        self._open[-1][1].append(text)
