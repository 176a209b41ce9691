"""Parser of central's answers: bounded, and lenient towards single values that cannot be kept."""

from __future__ import annotations

import json
import re
from contextlib import suppress

from pydantic import JsonValue
from pydantic_core import from_json

from gateway.domain.writes import JsonObject

DEEPEST = 100
"""Deepest nesting of lists and objects that is accepted."""

_MOST_MARKS = 40_000
"""Most commas and brackets of a body, so that a body of the largest size is parsed in some milliseconds."""
_MOST_BACKSLASHES = 200_000
_MOST_MENDED_BYTES = 512 * 1024
_MOST_MENDED_MARKS = 20_000
_LONGEST_NUMBER = 1000
_SHOWN_NUMBER = 40
_INFINITE = float("inf")
_NO_OBJECT = "something that is not a JSON object"
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_MENDABLE = re.compile(rb"\\u[dD][89a-fA-F]|NaN|Infinity")


class Unreadable(ValueError):
    """Error for a body that is not a JSON object; the text says why."""


class Unkept(Unreadable):
    """Error for JSON that is too large or too deep to keep."""


def read_object(raw: bytes) -> JsonObject:
    """Parse a JSON object. Raises Unreadable."""
    if not raw.lstrip(b" \t\r\n").startswith(b"{"):
        raise Unreadable(_NO_OBJECT)
    marks = sum(map(raw.count, (b",", b"[", b"{")))
    if marks > _MOST_MARKS or raw.count(b"\\") > _MOST_BACKSLASHES:
        raise Unkept("more values than are ever read")
    found: JsonValue = None
    with suppress(ValueError):
        found = from_json(raw, allow_inf_nan=False)
    if isinstance(found, dict) and _is_finite(found):
        return found
    if marks > _MOST_MENDED_MARKS or len(raw) > _MOST_MENDED_BYTES:
        if found is None and not _MENDABLE.search(raw):
            raise Unreadable(_NO_OBJECT)
        raise Unkept("a value that cannot be kept, among more values than are read then")
    return _mended(raw)


def _is_finite(found: JsonObject) -> bool:
    """Return whether all numbers are finite. Raises Unkept where lists and objects are too deep."""
    depth, is_finite = 0, True
    level: list[JsonObject | list[JsonValue]] = [found]
    while level:
        if (depth := depth + 1) > DEEPEST:
            raise Unkept(f"more than {DEEPEST} lists and objects within each other")
        inner: list[JsonValue] = []
        for item in level:
            inner += item.values() if isinstance(item, dict) else item
        kinds = set(map(type, inner))
        if float in kinds:
            is_finite = is_finite and _INFINITE not in inner and -_INFINITE not in inner
        level = [item for item in inner if isinstance(item, dict | list)] if kinds & {dict, list} else []
    return is_finite


def _mended(raw: bytes) -> JsonObject:
    """Parse a body with values that cannot be kept: NaN and infinite numbers become texts, halves of letters U+FFFD.

    So one such value does not cost the rest of a list. Raises Unreadable.
    """
    try:
        text = raw.decode()
        found: JsonValue = json.loads(text, parse_constant=_as_text, parse_float=_number)
        if _HALF.search(text):  # pairs are whole letters by now: UTF-8 cannot hold what is left
            halves = json.dumps(found, ensure_ascii=False).encode("utf-16", "surrogatepass")
            found = from_json(halves.decode("utf-16", "replace"))
    except (ValueError, RecursionError) as error:
        raise Unreadable(_NO_OBJECT) from error
    if not isinstance(found, dict):
        raise Unreadable(_NO_OBJECT)
    _is_finite(found)
    return found


def _as_text(text: str) -> str:
    return text[:_SHOWN_NUMBER]


def _number(text: str) -> JsonValue:
    value = float(text) if len(text) <= _LONGEST_NUMBER else _INFINITE
    return _as_text(text) if value in (_INFINITE, -_INFINITE) else value
