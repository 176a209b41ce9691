"""Validation errors in our own words: what would be right. Never the value that was sent, which may be a secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_IS_NAME = re.compile(r"\w+")
_KINDS = frozenset({"int", "str", "float", "bool"})  # parts of a place that only name the type that was tried
_MUST_BE = "must be "
_OTHERWISE = "cannot be taken as it is"


def _counted(fault: ErrorDetails, limit: str) -> str:
    """Return the limit with its unit: "3 characters" of a text, "1 item" of an array."""
    number = fault["ctx"][limit]
    is_text = fault["type"].startswith("string") or isinstance(fault.get("input"), str)
    what = "character" if is_text else "item"
    return f"{number} {what}{'' if number == 1 else 's'}"


def _too_short(fault: ErrorDetails) -> str:
    alone = fault["ctx"]["min_length"] == 1
    return "must not be empty" if alone else f"must have at least {_counted(fault, 'min_length')}"


def _too_long(fault: ErrorDetails) -> str:
    return f"must have at most {_counted(fault, 'max_length')}"


def _expected(fault: ErrorDetails) -> str:
    return f"must be {fault['ctx']['expected']}"


_WORDS: Mapping[str, str | Callable[[ErrorDetails], str]] = MappingProxyType(
    {
        "missing": "is missing",
        "string_type": "must be a valid string",
        "string_unicode": "must be a valid string",
        "int_type": "must be a valid integer",
        "int_parsing": "must be a valid integer",
        "int_from_float": "must be a valid integer",
        "int_parsing_size": "has too many digits",
        "float_type": "must be a valid number",
        "float_parsing": "must be a valid number",
        "finite_number": "must be a finite number",
        "bool_type": "must be true or false",
        "bool_parsing": "must be true or false",
        "date_type": "must be a date like 2026-01-31",
        "date_parsing": "must be a date like 2026-01-31",
        "date_from_datetime_parsing": "must be a date like 2026-01-31",
        "date_from_datetime_inexact": "must be a date like 2026-01-31",
        "tuple_type": "must be an array",
        "list_type": "must be an array",
        "dict_type": "must be an object",
        "model_type": "must be an object",
        "model_attributes_type": "must be an object",
        "literal_error": _expected,
        "enum": _expected,
        "greater_than_equal": lambda fault: f"must be at least {fault['ctx']['ge']}",
        "greater_than": lambda fault: f"must be more than {fault['ctx']['gt']}",
        "less_than_equal": lambda fault: f"must be at most {fault['ctx']['le']}",
        "less_than": lambda fault: f"must be less than {fault['ctx']['lt']}",
        "string_too_short": _too_short,
        "too_short": _too_short,
        "string_too_long": _too_long,
        "too_long": _too_long,
        "value_error": lambda fault: str(fault["ctx"]["error"]),
    }
)
"""Sentences by pydantic's error type. Patterns have no entry: `following` explains each in its own words."""


def sentence_of(error: ValidationError) -> str:
    """Describe the first error with its place."""
    faults = error.errors(include_url=False)
    place = _place(faults[0]["loc"])
    here = [fault for fault in faults if _place(fault["loc"]) == place]  # a union gives one error per type
    meant = [fault for fault in here if not fault["type"].endswith("_type")] or here
    said = list(dict.fromkeys(words_of(fault) for fault in meant))
    if said[0].startswith(_MUST_BE):
        kinds = (words.removeprefix(_MUST_BE) for words in said if words.startswith(_MUST_BE))
        return f"{place}: {_MUST_BE}{' or '.join(kinds)}"
    return f"{place}: {said[0]}"


def words_of(fault: ErrorDetails) -> str:
    """Describe one error, without its place."""
    words = _WORDS.get(fault["type"], _OTHERWISE)
    return words if isinstance(words, str) else words(fault)


def _place(loc: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in loc if part not in _KINDS and _IS_NAME.fullmatch(str(part)))
