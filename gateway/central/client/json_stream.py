"""Incremental JSON parser: it parses a few records at a time, so that no answer blocks the event loop."""

from __future__ import annotations

import asyncio
import json
import json.scanner
import re

from pydantic import JsonValue

from gateway.domain.writes import JsonObject

DEEPEST = 100
"""Deepest nesting of lists and objects that is accepted."""

_AT_ONCE = 16 * 1024  # characters: parsed in well under a millisecond, whatever they hold
_RECORDS_AT_ONCE = 40
_MOST_ITEMS = 20_000  # of one list, or names of one object
_MOST_MARKS = 10_000  # in a record that is larger than is read at once
_LONGEST_NUMBER = 1000
_SHOWN_NUMBER = 40
_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_SPACE = re.compile(r"[ \t\n\r]*")
_LONGEST_TEXT = 1024 * 1024
_MOST_BACKSLASHES = 200_000
_QUOTES_AT_ONCE = 500


class Unreadable(ValueError):
    """Error for a body that is not a JSON object; the text says why."""


class Unkept(Unreadable):
    """Error for JSON that is too large or too deep to keep."""


def _as_text(text: str) -> JsonValue:
    """Return a value that is no valid JSON number (NaN, Infinity) as text, so that the rest of the list is not lost."""
    return text[:_SHOWN_NUMBER]


def _number(text: str) -> JsonValue:
    value = float(text) if len(text) <= _LONGEST_NUMBER else float("inf")
    return _as_text(text) if value in (float("inf"), float("-inf")) else value


_scan = json.scanner.make_scanner(
    json.JSONDecoder(parse_constant=_as_text, parse_float=_number)  # type: ignore[arg-type]  # what it asks for
)


async def read_object(raw: bytes) -> JsonObject:
    """Parse a JSON object. Raises Unreadable."""
    try:
        text = raw.decode()
        if len(text) <= _AT_ONCE:
            return _at_once(text)
        return await _Parser(text).whole()
    except Unreadable:
        raise
    except (ValueError, IndexError, RecursionError) as error:
        raise Unreadable("something that is not a JSON object") from error


def _at_once(text: str) -> JsonObject:
    start = _after_space(text, 0)
    value, end = _scanned(text, start)
    if not isinstance(value, dict) or _after_space(text, end) != len(text):
        raise Unreadable("something that is not a JSON object")
    return value


def _scanned(text: str, start: int) -> tuple[JsonValue, int]:
    """Parse the value that begins at `start`; return it and its end. Raises ValueError, or its subclass Unkept."""
    value: JsonValue
    try:
        value, end = _scan(text, start)
    except StopIteration as error:
        raise ValueError("a value was expected") from error
    if text.count("[", start, end) + text.count("{", start, end) > DEEPEST and _depth(value) > DEEPEST:
        raise Unkept(f"more than {DEEPEST} lists and objects within each other")
    if _HALF.search(text, start, end):
        value = _whole_letters(value)
    return value, end


def _whole_letters(value: JsonValue) -> JsonValue:
    """Join surrogate pairs in texts. Replace a lone surrogate, as a cut name leaves it: UTF-8 cannot hold it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole_letters(item) for item in value]
    if isinstance(value, dict):
        return {str(_whole_letters(name)): _whole_letters(item) for name, item in value.items()}
    return value


def _depth(value: JsonValue) -> int:
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [part for item in level for part in (item.values() if isinstance(item, dict) else item)]
    return depth


def _after_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def read_whole(raw: bytes) -> JsonObject | None:
    """Parse a JSON object of any size at once, None if it is none. It is for a process without an event loop."""
    try:
        text = raw.decode()
        found = json.loads(text, parse_constant=_as_text, parse_float=_number)
        if not isinstance(found, dict) or _depth(found) > DEEPEST:
            return None
        whole = _whole_letters(found) if _HALF.search(text) else found
    except (ValueError, RecursionError):
        return None
    return whole if isinstance(whole, dict) else None


class _Parser:
    """Parser of a long text; `_at` is its position. Raises ValueError or IndexError where the text is not JSON.

    A value that fits into the window is parsed at once, a larger one part by part.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._window = ""
        self._begins = 0
        self._paused_at = 0
        self._parted = 0  # how many nested values are being parsed part by part
        self._marks = 0  # commas and brackets counted in the outermost of them

    async def whole(self) -> JsonObject:
        if self._next() != "{":
            raise ValueError("an object was expected")
        found = await self._object(depth=1)
        if _after_space(self._text, self._at) != len(self._text):
            raise ValueError("more came than an object")
        return found

    async def _object(self, *, depth: int) -> JsonObject:
        found: JsonObject = {}
        self._expect("{")
        if self._next() == "}":
            self._at += 1
            return found
        for count in range(1, _MOST_ITEMS + 1):
            key = await self._value(depth=depth)
            if not isinstance(key, str):
                raise ValueError("a name was expected")  # noqa: TRY004 (the text is wrong, not a caller)
            self._expect(":")
            # Lists of the answer itself are read record by record, whatever their size.
            lists = depth == 1 and self._next() == "["
            found[key] = await self._list(depth=2) if lists else await self._value(depth=depth)
            if self._next() != ",":
                self._expect("}")
                return found
            self._at += 1
            await self._pause(count)
        raise Unkept(f"an object with more than {_MOST_ITEMS} names")

    async def _list(self, *, depth: int) -> JsonValue:
        found: list[JsonValue] = []
        self._expect("[")
        if self._next() == "]":
            self._at += 1
            return found
        for count in range(1, _MOST_ITEMS + 1):
            found.append(await self._value(depth=depth))
            if self._next() != ",":
                self._expect("]")
                return found
            self._at += 1
            await self._pause(count)
        raise Unkept(f"a list of more than {_MOST_ITEMS} records")

    async def _value(self, *, depth: int) -> JsonValue:
        mark = self._next()
        if (read := self._in_window()) is not None:
            value, end = read
            if self._parted:
                self._marks += sum(self._text.count(part, self._at, end) for part in ",[{")
                if self._marks > _MOST_MARKS:
                    raise Unkept("a record that is larger than is ever read")
            self._at = end
            return value
        if mark == '"':
            end = await self._end_of_text()
            value, self._at = _scanned(self._text[self._at : end], 0)[0], end
            return value
        if mark not in "[{":
            raise ValueError("a value was expected")
        if depth >= DEEPEST:
            raise Unkept(f"more than {DEEPEST} lists and objects within each other")
        if not self._parted:
            self._marks = 0
        self._parted += 1
        await asyncio.sleep(0)  # finding that a value does not fit took as long as parsing one that fits
        value = await (self._object(depth=depth + 1) if mark == "{" else self._list(depth=depth + 1))
        self._parted -= 1
        return value

    async def _end_of_text(self) -> int:
        """Return the end of the string that begins at the present position."""
        place, backslashes, quotes = self._at + 1, 0, 0
        while (quote := self._text.find('"', place)) >= 0:
            quotes += 1
            if quotes % _QUOTES_AT_ONCE == 0:
                await asyncio.sleep(0)
            backslashes += self._text.count("\\", place, quote)
            if backslashes > _MOST_BACKSLASHES or quote - self._at > _LONGEST_TEXT:
                raise Unkept("a text that is larger than is ever read")
            before = quote
            while self._text[before - 1] == "\\":
                before -= 1
            if (quote - before) % 2 == 0:
                return quote + 1
            place = quote + 1
            backslashes += 1
        raise ValueError("the end of a text was expected")

    def _in_window(self) -> tuple[JsonValue, int] | None:
        """Parse the value at the present position; None when it does not end within one window."""
        place = self._at - self._begins
        if not 0 <= place < len(self._window) - _AT_ONCE // 8:
            place = self._slide()
        while True:
            last = self._begins + len(self._window) == len(self._text)
            try:
                value, end = _scanned(self._window, place)
            except Unkept:
                raise
            except (ValueError, IndexError, RecursionError):
                if last and place == 0:
                    raise
            else:
                # A number at the window's edge may go on behind it.
                if end < len(self._window) or last:
                    return value, self._begins + end
            if place == 0:
                return None
            place = self._slide()

    def _slide(self) -> int:
        self._begins = self._at
        self._window = self._text[self._at : self._at + _AT_ONCE]
        return 0

    async def _pause(self, count: int) -> None:
        if count % _RECORDS_AT_ONCE == 0 or self._at - self._paused_at >= _AT_ONCE:
            self._paused_at = self._at
            await asyncio.sleep(0)

    def _next(self) -> str:
        self._at = _after_space(self._text, self._at)
        return self._text[self._at]

    def _expect(self, mark: str) -> None:
        if self._next() != mark:
            raise ValueError(f"{mark} was expected")
        self._at += 1
