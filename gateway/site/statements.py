"""The text of a TOML file as statements and tables, each with its lines. Pure.

tomllib says what a file means, and not where; libraries that keep both move tables that are not beside each other.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_MOST_LINES = 2_000
"""Of one statement."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A key with its value: lines from `begin` to before `end`, and what they mean."""

    begin: int
    end: int
    data: Mapping[str, Any]


@dataclass(slots=True)
class Table:
    """A table: its header's line (-1 for what stands before any header), its name, and its statements.

    Attributes:
        is_entry: whether it is an entry of a list, as `[[lanes]]`.
        end: the line after its last statement.
    """

    line: int
    name: str
    is_entry: bool
    end: int
    statements: list[Statement] = field(default_factory=list)

    @property
    def values(self) -> dict[str, Any]:
        """Its own values by key."""
        return {key: value for one in self.statements for key, value in one.data.items()}

    def statement(self, key: str) -> Statement | None:
        """Return the statement that sets this key alone, or None."""
        return next((one for one in self.statements if set(one.data) == {key}), None)


def tables_of(lines: Sequence[str]) -> list[Table]:
    """Return the tables of a valid file, in their order. Raises ValueError for one that is not valid TOML."""
    tables = [Table(-1, "", is_entry=False, end=0)]
    place = 0
    while place < len(lines):
        text = lines[place].strip()
        if not text or text.startswith("#"):
            place += 1
            continue
        if text.startswith("["):
            is_entry = text.startswith("[[")
            inner = text[2:].partition("]]")[0] if is_entry else text[1:].partition("]")[0]
            tables.append(Table(place, inner.strip(), is_entry, place + 1))
            place += 1
            continue
        statement = _statement(lines, place)
        tables[-1].statements.append(statement)
        place = tables[-1].end = statement.end
    return tables


def value_range(line: str) -> tuple[int, int]:
    """Return where the value of a statement of one line begins and ends; a comment may follow."""
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


def _statement(lines: Sequence[str], begin: int) -> Statement:
    """Return the statement that begins here: as many lines as mean something together."""
    for end in range(begin + 1, min(len(lines), begin + _MOST_LINES) + 1):
        try:
            return Statement(begin, end, tomllib.loads("\n".join(lines[begin:end])))
        except tomllib.TOMLDecodeError:
            continue
    raise ValueError(f"line {begin + 1} is not TOML")
