"""Reading large JSON answers a few records at a time, so that lanes never wait for a whole page."""

from __future__ import annotations

import asyncio
import json
import json.scanner
import re

from pydantic import JsonValue, TypeAdapter, ValidationError

from gateway.domain.writes import JsonObject

_OBJECT = TypeAdapter(JsonObject)
_AT_ONCE_BYTES = 48 * 1024  # read in well under a millisecond
_RECORDS_AT_ONCE = 40
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_SPACE = re.compile(r"[ \t\n\r]*")


def _no_number(text: str) -> JsonValue:
    raise ValueError(f"{text} is no JSON")


_scan = json.scanner.make_scanner(json.JSONDecoder(parse_constant=_no_number))  # type: ignore[arg-type]  # what it asks for


async def read_object(raw: bytes) -> JsonObject | None:
    """The JSON object, None when this is none."""
    if len(raw) <= _AT_ONCE_BYTES or _HALF.search(raw):  # halves of a character by themselves are refused by the other
        return read_small(raw)
    try:
        return await _Reading(raw.decode()).whole()
    except (ValueError, IndexError, RecursionError):
        return None


def read_small(raw: bytes) -> JsonObject | None:
    """The same at once."""
    try:
        return _OBJECT.validate_json(raw)
    except ValidationError:
        return None


def read_whole(raw: bytes) -> JsonObject | None:
    """The same at once, a large one quickly: for a process in which nobody waits."""
    if _HALF.search(raw):
        return read_small(raw)
    try:
        found = json.loads(raw.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


class _Reading:
    """A text being read; `_at` is how far. Raises ValueError or IndexError where it is not JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    async def whole(self) -> JsonObject:
        found: JsonObject = {}
        self._expect("{")
        if self._next() == "}":
            self._at += 1
        else:
            while True:
                key = self._value()
                if not isinstance(key, str):
                    raise ValueError("a name was expected")  # noqa: TRY004 (the text is wrong, not a caller)
                self._expect(":")
                found[key] = await self._list() if self._next() == "[" else self._value()
                if self._next() != ",":
                    break
                self._at += 1
            self._expect("}")
        if self._at != len(self._text) and _SPACE.fullmatch(self._text, self._at) is None:
            raise ValueError("more came than an object")
        return found

    async def _list(self) -> JsonValue:
        found: list[JsonValue] = []
        self._expect("[")
        if self._next() == "]":
            self._at += 1
            return found
        while True:
            found.append(self._value())
            if len(found) % _RECORDS_AT_ONCE == 0:
                await asyncio.sleep(0)
            if self._next() != ",":
                break
            self._at += 1
        self._expect("]")
        return found

    def _next(self) -> str:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at
        return self._text[self._at]

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise ValueError(f"{mark} was expected")
        self._at += 1

    def _value(self) -> JsonValue:
        self._next()
        value: JsonValue
        try:
            value, self._at = _scan(self._text, self._at)
        except StopIteration as error:
            raise ValueError("a value was expected") from error
        return value
