"""The text of a TOML file as statements and tables, each with its lines. Pure.

tomllib returns a file's content without line numbers. Libraries that keep the layout reorder tables that are not
adjacent.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_MOST_LINES = 2_000
"""The greatest number of lines of one statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A key with its value: the lines from `begin` to before `end`, and their content."""

    begin: int
    end: int
    data: Mapping[str, Any]


@dataclass(slots=True)
class TomlTable:
    """A table. Lines are counted from 0.

    Attributes:
        line: the line of its header, -1 for the statements before the first header.
        name: its name.
        is_entry: whether it is an entry of an array of tables, such as `[[lanes]]`.
        end: the line after its last statement.
        statements: its statements.
    """

    line: int
    name: str
    is_entry: bool
    end: int
    statements: list[Statement] = field(default_factory=list)

    @property
    def values(self) -> dict[str, Any]:
        """The table's own values by key."""
        return {key: value for one in self.statements for key, value in one.data.items()}

    def statement(self, key: str) -> Statement | None:
        """Return the statement that sets only this key, or None."""
        return next((one for one in self.statements if set(one.data) == {key}), None)


def tables_of(lines: Sequence[str]) -> list[TomlTable]:
    """Return the tables of a file, in their order. Raises ValueError for a statement that is not valid TOML."""
    tables = [TomlTable(-1, "", is_entry=False, end=0)]
    place = 0
    while place < len(lines):
        text = lines[place].strip()
        if not text or text.startswith("#"):
            place += 1
            continue
        if text.startswith("["):
            is_entry = text.startswith("[[")
            inner = text[2:].partition("]]")[0] if is_entry else text[1:].partition("]")[0]
            tables.append(TomlTable(place, inner.strip(), is_entry, place + 1))
            place += 1
            continue
        statement = _statement(lines, place)
        tables[-1].statements.append(statement)
        place = tables[-1].end = statement.end
    return tables


def value_range(line: str) -> tuple[int, int]:
    """Return the beginning and end of the value in a statement of one line, without a comment after it."""
    begin = line.index("=") + 1
    begin += len(line[begin:]) - len(line[begin:].lstrip())
    meant = tomllib.loads(line)
    for place in (index for index, letter in enumerate(line) if letter == "#" and index > begin):
        try:
            if tomllib.loads(line[:place]) == meant:
                return begin, len(line[:place].rstrip())
        except tomllib.TOMLDecodeError:
            continue
    return begin, len(line.rstrip())


def toml_of(value: object) -> str:
    """Format a value as TOML; a list of tables gets one line for each."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {toml_of(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        if any(isinstance(item, Mapping) for item in value):
            return "[\n" + "".join(f"  {toml_of(item)},\n" for item in value) + "]"
        return "[" + ", ".join(map(toml_of, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _statement(lines: Sequence[str], begin: int) -> Statement:
    """Return the statement that begins at a line: the fewest lines from there that are valid TOML."""
    for end in range(begin + 1, min(len(lines), begin + _MOST_LINES) + 1):
        try:
            return Statement(begin, end, tomllib.loads("\n".join(lines[begin:end])))
        except tomllib.TOMLDecodeError:
            continue
    raise ValueError(f"line {begin + 1} is not TOML")
