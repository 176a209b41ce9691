"""Validation errors in our own words: what would be right. Never the value that was sent, which may be a secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.texts import Argument, Text, Words, has_key, text

_IS_NAME = re.compile(r"\w+")
_KINDS = frozenset({"int", "str", "float", "bool"})  # parts of a place that only name the type that was tried
_MUST_BE = "must_be"


def _counted(fault: ErrorDetails, bound: str) -> Text:
    """Return the bound with its unit: "at least 3 characters" of a text, "at most 1 item" of an array."""
    is_text = fault["type"].startswith("string") or isinstance(fault.get("input"), str)
    unit = "characters" if is_text else "items"
    number = fault["ctx"][f"{bound}_length"]
    if number == 1:
        return text(f"must_have_one.{bound}.{unit}")
    return text(f"must_have.{bound}.{unit}", count=str(number))


def _too_short(fault: ErrorDetails) -> Text:
    return text("must_not_be_empty") if fault["ctx"]["min_length"] == 1 else _counted(fault, "min")


def _must_be(what: Argument) -> Text:
    return text("must_be", what=what)


def _value(kind: str) -> Callable[[ErrorDetails], Text]:
    return lambda _: _must_be(text(f"value.{kind}"))


def _bound(way: str, name: str) -> Callable[[ErrorDetails], Text]:
    return lambda fault: _must_be(text(f"value_bound.{way}", bound=str(fault["ctx"][name])))


def _expected(fault: ErrorDetails) -> Text:
    return _must_be(str(fault["ctx"]["expected"]))


_WORDS: Mapping[str, Callable[[ErrorDetails], Words]] = MappingProxyType(
    {
        "missing": lambda _: text("is_missing"),
        "string_type": _value("string"),
        "string_unicode": _value("string"),
        "int_type": _value("integer"),
        "int_parsing": _value("integer"),
        "int_from_float": _value("integer"),
        "int_parsing_size": lambda _: text("has_too_many_digits"),
        "float_type": _value("number"),
        "float_parsing": _value("number"),
        "finite_number": _value("finite_number"),
        "bool_type": _value("boolean"),
        "bool_parsing": _value("boolean"),
        "date_type": _value("date"),
        "date_parsing": _value("date"),
        "date_from_datetime_parsing": _value("date"),
        "date_from_datetime_inexact": _value("date"),
        "tuple_type": _value("array"),
        "list_type": _value("array"),
        "dict_type": _value("object"),
        "model_type": _value("object"),
        "model_attributes_type": _value("object"),
        "literal_error": _expected,
        "enum": _expected,
        "greater_than_equal": _bound("at_least", "ge"),
        "greater_than": _bound("more_than", "gt"),
        "less_than_equal": _bound("at_most", "le"),
        "less_than": _bound("less_than", "lt"),
        "string_too_short": _too_short,
        "too_short": _too_short,
        "string_too_long": lambda fault: _counted(fault, "max"),
        "too_long": lambda fault: _counted(fault, "max"),
        "value_error": lambda fault: str(fault["ctx"]["error"]),
    }
)
"""Words by pydantic's error type. Patterns have no entry: `following` explains each in its own words."""


def words_of_first(error: ValidationError) -> Text:
    """Describe the first error with its place."""
    faults = error.errors(include_url=False)
    place = _place(faults[0]["loc"])
    here = [fault for fault in faults if _place(fault["loc"]) == place]  # a union gives one error per type
    meant = [fault for fault in here if not fault["type"].endswith("_type")] or here
    said = list(dict.fromkeys(words_of(fault) for fault in meant))
    kinds = [dict(words.arguments)["what"] for words in said if isinstance(words, Text) and words.key == _MUST_BE]
    why = _must_be(_either(kinds)) if has_key(said[0], _MUST_BE) else said[0]
    return text("refused.field", field=place, why=why)


def words_of(fault: ErrorDetails) -> Words:
    """Describe one error, without its place."""
    words = _WORDS.get(fault["type"])
    return text("cannot_be_taken") if words is None else words(fault)


def _either(kinds: Sequence[Argument]) -> Argument:
    first, *others = kinds
    return text("either", first=first, other=_either(others)) if others else first


def _place(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in loc if part not in _KINDS and _IS_NAME.fullmatch(str(part)))
