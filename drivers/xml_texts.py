"""Parsing of small XML documents of devices, without any of XML's dangerous parts.

A DOCTYPE is refused, so there are no entities to expand. Nothing is fetched. Depth and size are bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.parsers import expat

from drivers.contract import ProtocolViolation

LARGEST = 64 * 1024
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class XmlTexts:
    """The texts of a document.

    Attributes:
        root: the name of the root element, without its namespace.
        first: the text of the first element of each name. Names lack their namespaces, texts the blanks around them.
    """

    root: str
    first: Mapping[str, str]


def read_xml(document: bytes) -> XmlTexts:
    """Extract the texts of a document; where a name occurs twice, its first occurrence wins.

    Raises ProtocolViolation for a document that is no XML, larger than `LARGEST` bytes, nested deeper than 32
    elements, or has a DOCTYPE.
    """
    if len(document) > LARGEST:
        raise ProtocolViolation(f"an XML document of {len(document)} bytes")
    reader = _Reader()
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse_doctype
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(document.strip(), True)  # noqa: FBT003 (expat takes it by position alone)
    except (expat.ExpatError, LookupError, ValueError) as error:
        raise ProtocolViolation(f"not readable as XML: {error}") from error
    return XmlTexts(root=reader.root, first=reader.first)


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
        self._open.append((local, []))

    def end(self, _name: str) -> None:
        local, texts = self._open.pop()
        self.first.setdefault(local, "".join(texts).strip())

    def text(self, text: str) -> None:
        self._open[-1][1].append(text)
