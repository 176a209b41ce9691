"""Edits of a site file that keep its comments and its order. Pure.

Only the keys of EDITABLE can be edited. Each result is verified: the new text must parse to the old content with the
edit and nothing else changed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.errors import ConfigError
from gateway.site.toml_statements import TomlTable, tables_of, toml_of, value_range

Value = str | int | float | bool | None
Window = Mapping[str, str | list[str]]

EDITABLE: Mapping[str, frozenset[str]] = {
    "site": frozenset({"name"}),
    "devices": frozenset({"name"}),
    "cameras": frozenset({"name"}),
    "areas": frozenset({"name", "limit"}),
    "lanes": frozenset(
        {
            "name",
            "waiting_seconds",
            "held_open_seconds",
            "clear_seconds",
            "schedule",
            "hold_open_schedule",
            "lock_down_schedule",
        }
    ),
    "schedules": frozenset({"windows"}),
    "holidays": frozenset({"name"}),
}
"""The keys that can be edited, by section."""
_COMES_AND_GOES = {"schedules": "id", "holidays": "date"}
"""The sections whose entries can be added and removed, and the key that identifies an entry."""


@dataclass(frozen=True, slots=True)
class Edit:
    """An edit of one entry.

    Attributes:
        section: the section's name, such as "site" or "lanes".
        id: the id of the entry; the date of a holiday; "" for `[site]`.
        values: the new values by key; None removes the key, so that its default counts.
        windows: the new windows of a schedule, None for no change.
        remove: whether to remove the entry.
    """

    section: str
    id: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    windows: tuple[Window, ...] | None = None
    remove: bool = False

    @property
    def key(self) -> str:
        """The key that identifies the entry."""
        return _COMES_AND_GOES.get(self.section, "id")

    @property
    def wanted(self) -> dict[str, Any]:
        """The new values, windows included."""
        return {**self.values, **({} if self.windows is None else {"windows": [dict(one) for one in self.windows]})}


def edited(text: bytes, edits: Iterable[Edit]) -> bytes:
    """Return a site file's text with these edits. Raises ConfigError for an edit that is not possible."""
    try:
        written = text.decode()
        for edit in edits:
            written = _edited(written, edit)
    except ValueError as error:
        raise ConfigError(f"the site file cannot be edited: {error}") from error
    return written.encode()


def inverse(text: bytes, edits: Iterable[Edit]) -> tuple[Edit, ...]:
    """Return the edits that lead back to this text's content from the text with these edits.

    Raises ConfigError for an edit that is not possible.
    """
    found: list[Edit] = []
    for edit in edits:
        table = _entry(tomllib.loads(text.decode().removeprefix("\ufeff")), edit)
        found.append(_back(table, edit))
        text = edited(text, [edit])
    return tuple(reversed(found))


def _entry(data: Mapping[str, Any], edit: Edit) -> Mapping[str, Any] | None:
    """Return the entry that an edit is meant for, None if there is none."""
    if edit.section == "site":
        return data.get("site")
    return next((one for one in data.get(edit.section, ()) if str(one.get(edit.key)) == edit.id), None)


def _back(table: Mapping[str, Any] | None, edit: Edit) -> Edit:
    if table is None:
        return Edit(edit.section, edit.id, remove=True)
    keys = EDITABLE[edit.section] if edit.remove else frozenset(edit.wanted)
    windows = table.get("windows") if "windows" in keys else None
    values = {key: table.get(key) for key in keys if key != "windows" and (key in table or not edit.remove)}
    return Edit(edit.section, edit.id, values, None if windows is None else tuple(windows))


def _edited(text: str, edit: Edit) -> str:
    if not set(edit.wanted) <= EDITABLE.get(edit.section, frozenset()):
        raise ConfigError(f"[{edit.section}] {', '.join(edit.wanted) or edit.id}: this is edited in the file itself")
    meant = _meant(tomllib.loads(text.removeprefix("\ufeff")), edit)
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = text.removeprefix("\ufeff").split(newline)
    tables = tables_of(lines)
    place = next((number for number, table in enumerate(tables) if _is_meant(table, edit)), None)
    if place is None:
        _add(lines, tables, edit)
    elif edit.remove:
        own = _with_subtables(tables, place)
        del lines[own[0].line : own[-1].end]
    else:
        _change(lines, tables, place, edit)
    written = ("\ufeff" if text.startswith("\ufeff") else "") + newline.join(lines)
    try:
        is_proven = tomllib.loads(written.removeprefix("\ufeff")) == meant
    except tomllib.TOMLDecodeError:
        is_proven = False
    if not is_proven:
        raise ConfigError(f"[{edit.section}] {edit.id} is written in a way that only an editor can change")
    return written


def _meant(data: dict[str, Any], edit: Edit) -> dict[str, Any]:
    """Return the file's content after the edit, for the verification."""
    if edit.section == "site":
        entry = data.get("site", {})
    else:
        entries = data.setdefault(edit.section, [])
        entry = next((one for one in entries if str(one.get(edit.key)) == edit.id), None)
        if edit.remove:
            if entry is None or edit.section not in _COMES_AND_GOES:
                raise ConfigError(f"[[{edit.section}]]: there is no {edit.id} to remove")
            entries.remove(entry)
            if not entries:
                del data[edit.section]
            return data
        if entry is None:
            if edit.section not in _COMES_AND_GOES:
                raise ConfigError(f"[[{edit.section}]]: there is no {edit.id}")
            entries.append(entry := {edit.key: edit.id})
    for key, value in edit.wanted.items():
        if value is None:
            entry.pop(key, None)
        else:
            entry[key] = value
    return data


def _is_meant(table: TomlTable, edit: Edit) -> bool:
    if edit.section == "site":
        return table.name == "site" and not table.is_entry
    return table.name == edit.section and table.is_entry and str(table.values.get(edit.key)) == edit.id


def _with_subtables(tables: list[TomlTable], place: int) -> list[TomlTable]:
    """Return an entry's table and its subtables, such as `[lanes.doubt]`."""
    own = [tables[place]]
    for table in tables[place + 1 :]:
        if not table.name.startswith(f"{tables[place].name}."):
            break
        own.append(table)
    return own


def _change(lines: list[str], tables: list[TomlTable], place: int, edit: Edit) -> None:
    """Change the lines of an entry, from the last to the first, so that earlier line numbers stay valid."""
    table = tables[place]
    wanted = dict(edit.wanted)
    subtables = [one for one in _with_subtables(tables, place)[1:] if one.name.rpartition(".")[2] in wanted]
    for one in reversed(subtables):
        del lines[one.line : one.end]
    new = [
        f"{key} = {toml_of(value)}" for key, value in wanted.items() if value is not None and key not in table.values
    ]
    lines[table.end : table.end] = new
    known = [(found, key) for key in wanted if (found := table.statement(key)) is not None]
    for statement, key in sorted(known, key=lambda one: -one[0].begin):
        if wanted[key] is None:
            del lines[statement.begin : statement.end]
        elif statement.data[key] != wanted[key]:
            lines[statement.begin : statement.end] = _replaced(lines[statement.begin : statement.end], wanted[key])


def _replaced(lines: list[str], value: object) -> list[str]:
    """Return the lines of a statement with another value; a comment after a value of one line stays."""
    if len(lines) > 1:
        return [f"{lines[0].partition('=')[0].rstrip()} = {toml_of(value)}"]
    begin, end = value_range(lines[0])
    return [f"{lines[0][:begin]}{toml_of(value)}{lines[0][end:]}"]


def _add(lines: list[str], tables: list[TomlTable], edit: Edit) -> None:
    """Add an entry after the last one of its section, or at the end of the file."""
    others = [place for place, table in enumerate(tables) if table.name == edit.section and table.is_entry]
    end = _with_subtables(tables, others[-1])[-1].end if others else len(lines)
    values = {edit.key: edit.id, **edit.wanted}
    body = [f"{key} = {toml_of(value)}" for key, value in values.items() if value is not None]
    while not others and lines and not lines[-1].strip():
        lines.pop()
        end = len(lines)
    lines[end:end] = ["", f"[[{edit.section}]]", *body, *([] if others else [""])]
