"""Formats of the site file: older ones are understood and can be rewritten; newer ones are refused. Pure.

The key `format` before the first table has the number; a file without it has format 1. A new name for
a key and the removal of a section each get a new format and an entry in STEPS, so that older files stay valid.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from gateway.domain.errors import ConfigError
from gateway.site.fault import SiteFault
from gateway.site.toml_statements import TomlTable, tables_of, toml_of, value_range

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

    def changes(self, raw: Mapping[str, Any]) -> bool:
        """Return whether a file has the old key."""
        return any(self.old in table for table in _tables(raw.get(self.section)))

    def changed(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return a file with the new key. If both are present, the new one counts."""
        return {**raw, self.section: _each_table(raw[self.section], self._renamed)}

    def _renamed(self, table: Mapping[str, Any]) -> dict[str, Any]:
        if self.old not in table:
            return {**table}
        return {self.new: table[self.old], **{key: value for key, value in table.items() if key != self.old}}


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

    def changes(self, raw: Mapping[str, Any]) -> bool:
        """Return whether a file has the section."""
        return self.value(raw) is not None

    def changed(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return a file without the section."""
        return _without(raw, self.section.split("."))


@dataclass(frozen=True, slots=True)
class Gathered:
    """Keys of a section whose tables became rows of its list `into` in format `since`.

    Each row is the old table, and has the name of its old key as `kind`.
    """

    since: int
    section: str
    keys: tuple[str, ...]
    into: str
    kind: str

    def sentence(self) -> str:
        """Describe the change for the author of the file."""
        keys = ", ".join(self.keys)
        return f"[{self.section}] {keys}: these are rows of [[{self.section}.{self.into}]] since format {self.since}"

    def changes(self, raw: Mapping[str, Any]) -> bool:
        """Return whether a file has one of the old keys."""
        return any(not table.keys().isdisjoint(self.keys) for table in _tables(raw.get(self.section)))

    def changed(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return a file with the rows."""
        return {**raw, self.section: _each_table(raw[self.section], self._gathered)}

    def rows(self, table: Mapping[str, Any]) -> list[tuple[str, object]]:
        """Return the rows for a table's old keys, in their order, each with its old place in the table."""
        found: list[tuple[str, object]] = []
        for key in (key for key in table if key in self.keys):
            value = table[key]
            if isinstance(value, list):
                found += [(f"{key}[{place}]", self._row(key, one)) for place, one in enumerate(value)]
            else:
                found.append((key, self._row(key, value)))
        return found

    def before(self, table: Mapping[str, Any]) -> list[object]:
        """Return the rows that a table has already."""
        kept = table.get(self.into)
        return kept if isinstance(kept, list) else []

    def _gathered(self, table: Mapping[str, Any]) -> dict[str, Any]:
        if table.keys().isdisjoint(self.keys):
            return {**table}
        others = {key: value for key, value in table.items() if key not in self.keys}
        return {**others, self.into: [*self.before(table), *(row for _, row in self.rows(table))]}

    def _row(self, key: str, value: object) -> object:
        return {self.kind: key, **value} if isinstance(value, dict) else value


Step = Renamed | Removed | Gathered

ACCOUNTS = "api.accounts"
_INPUTS = ("arming", "far", "closing", "safety", "fire", "key_switch")
STEPS: tuple[Step, ...] = (
    Renamed(2, "keep", "reader_days", "consumer_days"),
    Renamed(3, "lanes", "local", "key_switch"),
    Removed(4, "tracing", "traces of cards are no longer sent"),
    Removed(5, ACCOUNTS, "accounts are kept in the register, which takes over those of an older file once"),
    Gathered(6, "lanes", _INPUTS, "inputs", "role"),
)
"""All steps, in the order of their formats."""
FORMAT = STEPS[-1].since
"""The newest format that this program knows."""


def format_fault(raw: Mapping[str, Any]) -> SiteFault | None:
    """Return the fault if this program does not know the file's format, else None."""
    number = raw.get(_KEY, 1)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        return SiteFault(_KEY, f"must be a whole number from 1 to {FORMAT}")
    if number > FORMAT:
        return SiteFault(
            _KEY,
            f"is {number}, and this program knows formats up to {FORMAT}: install the newer program again,"
            " or take the site file from before it",
        )
    return None


def understood(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a file of any known format to the newest one."""
    meant = {**raw}
    for step, before in _steps(raw):
        meant = step.changed(before)
    meant.pop(_KEY, None)
    return meant


def removed(raw: Mapping[str, Any], section: str) -> object | None:
    """Return what an older file has in a section that is gone since, None if it has none."""
    found = (step.value(raw) for step, _ in _steps(raw) if isinstance(step, Removed) and step.section == section)
    return next(found, None)


def former_places(raw: Mapping[str, Any]) -> dict[str, str]:
    """Map places in the newest format to those in an older file, for all that has another place there."""
    return {
        f"{step.section}[{number}].{step.into}[{row}]": f"{step.section}[{number}].{place}"
        for step, before in _steps(raw)
        if isinstance(step, Gathered)
        for number, table in enumerate(_tables(before[step.section]))
        for row, (place, _) in enumerate(step.rows(table), start=len(step.before(table)))
    }


def outdated(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a sentence for each key of the file that has been renamed or removed."""
    return tuple(step.sentence() for step, _ in _steps(raw))


def rewritten(text: str) -> str:
    """Return the text of a file in the newest format, with its comments and order.

    Raises ConfigError if the result cannot be verified to have the same content.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.removeprefix("\ufeff").split(newline)
    try:
        raw = tomllib.loads("\n".join(lines))
        tables_of(lines)
    except ValueError as error:
        raise ConfigError(f"the site file is not TOML: {error}") from error
    steps = [step for step, _ in _steps(raw)]
    for step in steps:
        for table in (one for one in reversed(tables_of(lines)) if one.name == step.section):
            if isinstance(step, Renamed):
                _rename(lines, table, step)
            elif isinstance(step, Gathered):
                _gather(lines, table, step)
    _remove(lines, tables_of(lines), {step.section for step in steps if isinstance(step, Removed)})
    _number(lines, tables_of(lines)[0])
    if _meaning("\n".join(lines)) != _filled({**understood(raw), _KEY: FORMAT}):
        raise ConfigError(f"the file cannot be rewritten; edit it by hand: {'; '.join(outdated(raw))}")
    return newline.join(lines)


def _steps(raw: Mapping[str, Any]) -> Iterator[tuple[Step, Mapping[str, Any]]]:
    """Yield the steps that change this file, each with the file before it."""
    meant = raw
    for step in STEPS:
        if step.since > raw.get(_KEY, 1) and step.changes(meant):
            yield step, meant
            meant = step.changed(meant)


def _without(table: Mapping[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """Return a table without the value at this path."""
    kept = {key: value for key, value in table.items() if key != path[0]}
    return kept if len(path) == 1 else {**kept, path[0]: _without(table[path[0]], path[1:])}


def _tables(section: object) -> tuple[Mapping[str, Any], ...]:
    if isinstance(section, dict):
        return (section,)
    return tuple(one for one in section if isinstance(one, dict)) if isinstance(section, list) else ()


def _each_table(section: object, change: Callable[[Mapping[str, Any]], dict[str, Any]]) -> object:
    if isinstance(section, list):
        return [_each_table(one, change) for one in section]
    return change(section) if isinstance(section, dict) else section


def _rename(lines: list[str], table: TomlTable, step: Renamed) -> None:
    statement = table.statement(step.old)
    if statement is None:
        return
    if table.statement(step.new) is not None:
        raise ConfigError(f"[{step.section}] has both {step.old} and {step.new}: take {step.old} away")
    line = lines[statement.begin]
    lines[statement.begin] = re.sub(rf"^(\s*)(['\"]?){step.old}\2", rf"\g<1>{step.new}", line)


def _gather(lines: list[str], table: TomlTable, step: Gathered) -> None:
    """Write rows in the place of the first old key, with the comments of all."""
    old = [one for one in table.statements if set(one.data) <= set(step.keys)]
    if not old:
        return
    if table.statement(step.into) is not None:
        raise ConfigError(f"[{step.section}] has both {step.into} and {', '.join(old[0].data)}: make one list of them")
    rows: list[str] = []
    for one in old:
        rows += [] if one is old[0] else [line.strip() for line in lines[_with_comment(lines, one.begin) : one.begin]]
        above, beside = _comments(lines[one.begin : one.end])
        told = [f"{toml_of(row)}," for _, row in step.rows(one.data)]
        rows += [*above, *(f"{row} {beside}".rstrip() if row is told[0] else row for row in told)]
    for one in reversed(old[1:]):
        del lines[_with_comment(lines, one.begin) : one.end]
    lines[old[0].begin : old[0].end] = [f"{step.into} = [", *(f"    {row}" for row in rows), "]"]


def _comments(lines: Sequence[str]) -> tuple[list[str], str]:
    """Return the comments of a statement: those of its several lines, or the one beside its only line."""
    if len(lines) == 1:
        return [], lines[0][value_range(lines[0])[1] :].strip()
    return [f"#{line.partition('#')[2]}" for line in lines if "#" in line], ""


def _remove(lines: list[str], tables: Sequence[TomlTable], sections: AbstractSet[str]) -> None:
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


def _is_within(table: TomlTable, data: Mapping[str, Any], section: str) -> bool:
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


def _number(lines: list[str], head: TomlTable) -> None:
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
