"""Texts for people as values: a key and what stands in the places of its sentence.

Each language has one file of sentences by key (`en.json`, `fr.json`). English is made here, for programs, logs and
commands; the page makes its own language. Nothing decides by a sentence: it looks at the key and the arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

if TYPE_CHECKING:  # a command's help has no need of pydantic, which takes a fifth of a second to import
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

FOLDER = Path(__file__).parent
"""The folder with a file for each language."""

_ONE, _OTHER = "one", "other"
_COUNT = "count"
_DECIMALS = 3


@dataclass(frozen=True, slots=True)
class Text:
    """A text for people, which `str` makes English.

    Attributes:
        key: its key in the files of the languages.
        arguments: the name of each place, and what stands there.
    """

    key: str
    arguments: tuple[tuple[str, Argument], ...] = ()

    def __str__(self) -> str:
        """Return the English sentence."""
        return _filled(english()[self.key], dict(self.arguments))

    def names(self) -> frozenset[str]:
        """Return the names and the words of others that stand in its places, and in those of the texts there."""
        own = {one for _, one in self.arguments if isinstance(one, str)}
        return frozenset(own).union(*(one.names() for _, one in self.arguments if isinstance(one, Text)))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        """Serialise as the English sentence."""
        from pydantic_core import core_schema  # noqa: PLC0415

        return core_schema.is_instance_schema(cls, serialization=core_schema.to_string_ser_schema())


Argument = str | int | float | Text
"""The content of a place: a name or somebody's own words, a number, or another text."""
Words = Text | str
"""A text, or a sentence in the words of a device, of central or of the system. "" is none."""
Sentence = str | Mapping[str, str]
"""A sentence of a language with its places as `{name}`, or one for each of its plural forms, chosen by `{count}`."""


def text(key: str, /, **arguments: Argument) -> Text:
    """Return a text."""
    return Text(key, tuple(arguments.items()))


def listed(texts: Sequence[Words]) -> Words:
    """Return one text of several, with semicolons between them; "" of none."""
    if len(texts) < 2:
        return texts[0] if texts else ""
    half = len(texts) // 2
    return text("list.then", why=listed(texts[:half]), rest=listed(texts[half:]))


def has_key(words: Words, key: str) -> bool:
    """Tell whether these words are the text with this key."""
    return isinstance(words, Text) and words.key == key


def keyed(words: Words) -> str | dict[str, Any]:
    """Return words for the page: those of others as they are, a text with its key, arguments and English sentence."""
    return {**_shown(words), "english": str(words)} if isinstance(words, Text) else words


def to_json(words: Words) -> str | None:
    """Return a text's key and arguments as JSON, to be stored beside its English sentence; None for words of others."""
    if not isinstance(words, Text):
        return None
    return json.dumps(_shown(words), ensure_ascii=False, separators=(",", ":"))


def from_json(stored: str, english: str) -> dict[str, Any]:
    """Return a stored text for the page, with the English sentence that it had then."""
    return {**json.loads(stored), "english": english}


def texts_in(value: object) -> Any:
    """Return the texts in a value's fields and items for the page, by name and in order; None if it has none."""
    if isinstance(value, Text):
        return keyed(value)
    if isinstance(value, tuple):
        found = [texts_in(one) for one in value]
        return found if any(one is not None for one in found) else None
    if not is_dataclass(value) or isinstance(value, type):
        return None
    told = ((name, texts_in(getattr(value, name))) for name in _with_texts(type(value)))
    return {name: found for name, found in told if found is not None} or None


@cache
def _with_texts(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass's fields that may have a text, in themselves or in what they hold."""
    return tuple(name for name, hint in get_type_hints(kind).items() if _may_have_text(hint))


def _may_have_text(hint: object) -> bool:
    if isinstance(hint, type) and is_dataclass(hint):
        return hint is Text or bool(_with_texts(hint))
    return any(map(_may_have_text, get_args(hint)))


@cache
def english() -> Mapping[str, Sentence]:
    """Return the English sentences by key."""
    return read_language("en")


def read_language(name: str) -> Mapping[str, Sentence]:
    """Read the sentences of a language by key."""
    return MappingProxyType(json.loads((FOLDER / f"{name}.json").read_text("utf-8")))


def _shown(words: Text) -> dict[str, Any]:
    shown = {name: _shown(one) if isinstance(one, Text) else one for name, one in words.arguments}
    return {"key": words.key, "arguments": shown}


def _filled(sentence: Sentence, arguments: Mapping[str, Argument]) -> str:
    form = sentence if isinstance(sentence, str) else sentence[_ONE if arguments[_COUNT] == 1 else _OTHER]
    return form.format_map({name: _in_place(one) for name, one in arguments.items()})


def _in_place(one: Argument) -> str:
    if isinstance(one, int):
        return f"{one:,}"
    if isinstance(one, float):
        return f"{one:,.{_DECIMALS}f}".rstrip("0").rstrip(".")
    return str(one)
