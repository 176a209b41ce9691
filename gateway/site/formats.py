"""Formats of the site file: older ones are understood and can be rewritten; newer ones are refused. Pure.

The key `format` before the first table has the number; a file without it has format 1. A new name for
a key and the removal of a section each get a new format and an entry in STEPS, so that older files stay valid.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from gateway.domain.errors import ConfigError
from gateway.site.fault import Fault
from gateway.site.toml_statements import Table, tables_of

_KEY = "format"


@dataclass(frozen=True, slots=True)
class Renamed:
    """A key that was renamed in format `since`. `section`: the name of its table or of its array of tables."""

    since: int
    section: str
    old: str
    new: str

    def sentence(self) -> str:
        """Describe the change for the author of the file."""
        return f"[{self.section}] {self.old}: this setting is called {self.new} since format {self.since}"


@dataclass(frozen=True, slots=True)
class Removed:
    """A section that is gone since format `since`. `why`: what became of its purpose.

    `section` is the name of its tables, such as "api.accounts".
    """

    since: int
    section: str
    why: str

    def sentence(self) -> str:
        """Describe the change for the author of the file."""
        return f"[{self.section}]: this section is gone since format {self.since}: {self.why}"

    def value(self, raw: Mapping[str, Any]) -> object | None:
        """Return what a file has in this section, None if it has none."""
        found: object = raw
        for key in self.section.split("."):
            found = found.get(key) if isinstance(found, Mapping) else None
        return found


Step = Renamed | Removed

ACCOUNTS = "api.accounts"
STEPS: tuple[Step, ...] = (
    Renamed(2, "keep", "reader_days", "consumer_days"),
    Renamed(3, "lanes", "local", "key_switch"),
    Removed(4, "tracing", "traces of cards are no longer sent"),
    Removed(5, ACCOUNTS, "accounts are kept in the register, which takes over those of an older file once"),
)
"""All steps, in the order of their formats."""
FORMAT = STEPS[-1].since
"""The newest format that this program knows."""


def format_fault(raw: Mapping[str, Any]) -> Fault | None:
    """Return the fault if this program does not know the file's format, else None."""
    number = raw.get(_KEY, 1)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        return Fault(_KEY, f"must be a whole number from 1 to {FORMAT}")
    if number > FORMAT:
        return Fault(
            _KEY,
            f"is {number}, and this program knows formats up to {FORMAT}: install the newer program again,"
            " or take the site file from before it",
        )
    return None


def understood(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a file of any known format to the newest one."""
    meant = {key: value for key, value in raw.items() if key != _KEY}
    for step in _steps(raw):
        if isinstance(step, Removed):
            meant = _without(meant, step.section.split("."))
        else:
            meant[step.section] = _renamed(meant[step.section], step)
    return meant


def removed(raw: Mapping[str, Any], section: str) -> object | None:
    """Return what an older file has in a section that is gone since, None if it has none."""
    found = (step.value(raw) for step in _steps(raw) if isinstance(step, Removed) and step.section == section)
    return next(found, None)


def outdated(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for each key of the file that has been renamed or removed."""
    return tuple(step.sentence() for step in _steps(raw))


def rewritten(text: str) -> str:
    """Return the text of a file in the newest format, with its comments and order.

    Raises ConfigError if the result cannot be verified to have the same content.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.removeprefix("\ufeff").split(newline)
    try:
        raw = tomllib.loads("\n".join(lines))
        tables = tables_of(lines)
    except ValueError as error:
        raise ConfigError(f"the site file is not TOML: {error}") from error
    for step in _steps(raw):
        for table in tables:
            if table.name == step.section and isinstance(step, Renamed):
                _rename(lines, table, step)
    _remove(lines, tables, {step.section for step in _steps(raw) if isinstance(step, Removed)})
    _number(lines, tables_of(lines)[0])
    if _meaning("\n".join(lines)) != _filled({**understood(raw), _KEY: FORMAT}):
        raise ConfigError(f"the file cannot be rewritten; edit it by hand: {'; '.join(outdated(raw))}")
    return newline.join(lines)


def _steps(raw: Mapping[str, Any]) -> Iterator[Step]:
    """Yield the steps that change this file."""
    for step in STEPS:
        if step.since > raw.get(_KEY, 1) and (
            step.value(raw) is not None
            if isinstance(step, Removed)
            else any(step.old in table for table in _tables(raw.get(step.section)))
        ):
            yield step


def _without(table: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a table without the value at this path."""
    kept = {key: value for key, value in table.items() if key != path[0]}
    return kept if len(path) == 1 else {**kept, path[0]: _without(table[path[0]], path[1:])}


def _tables(section: object) -> tuple[Mapping[str, Any], ...]:
    if isinstance(section, dict):
        return (section,)
    return tuple(one for one in section if isinstance(one, dict)) if isinstance(section, list) else ()


def _renamed(section: object, step: Renamed) -> object:
    if isinstance(section, list):
        return [_renamed(one, step) for one in section]
    if not isinstance(section, dict) or step.old not in section:
        return section
    # If both names are present, the new one counts.
    return {step.new: section[step.old], **{key: value for key, value in section.items() if key != step.old}}


def _rename(lines: list[str], table: Table, step: Renamed) -> None:
    statement = table.statement(step.old)
    if statement is None:
        return
    if table.statement(step.new) is not None:
        raise ConfigError(f"[{step.section}] has both {step.old} and {step.new}: take {step.old} away")
    line = lines[statement.begin]
    lines[statement.begin] = re.sub(rf"^(\s*)(['\"]?){step.old}\2", rf"\g<1>{step.new}", line)


def _remove(lines: list[str], tables: Sequence[Table], sections: AbstractSet[str]) -> None:
    """Delete the tables of these sections with the comments right above them, and statements that set them."""
    spans = []
    for table in tables:
        if table.name in sections:
            spans.append((_with_comment(lines, table.line), table.end))
        else:
            inner = (one for one in table.statements if any(_is_within(table, one.data, name) for name in sections))
            spans += [(one.begin, one.end) for one in inner]
    for begin, end in sorted(spans, reverse=True):
        has_gap = begin > 0 and not lines[begin - 1].strip() and end < len(lines) and not lines[end].strip()
        del lines[begin : end + has_gap]


def _is_within(table: Table, data: Mapping[str, Any], section: str) -> bool:
    """Return whether a statement of a table sets only what is in a section."""
    for key in reversed(table.name.split(".") if table.name else []):
        data = {key: data}
    for key in section.split("."):
        if not isinstance(data, Mapping) or set(data) != {key}:
            return False
        data = data[key]
    return True


def _with_comment(lines: list[str], place: int) -> int:
    """Return the first line of the comment right above a line, or that line."""
    while place > 0 and lines[place - 1].lstrip().startswith("#"):
        place -= 1
    return place


def _number(lines: list[str], head: Table) -> None:
    """Write the format number in place of an older one, or before the first table."""
    told = f"{_KEY} = {FORMAT}"
    if (statement := head.statement(_KEY)) is not None:
        lines[statement.begin : statement.end] = [told]
        return
    place = next((place for place, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    place = _with_comment(lines, place)
    lines[place:place] = [told, ""]


def _filled(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return a file's content without empty tables, which mean the same as none."""
    return {key: value for key, value in file.items() if value != {}}


def _meaning(text: str) -> dict[str, Any] | None:
    try:
        return _filled(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return None
