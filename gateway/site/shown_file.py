"""A site file for display: its lines with secrets masked, and each fault with the number of its line. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gateway.site.fault import name_of, names_in, with_names
from gateway.site.faults import SiteFaults
from gateway.site.toml_statements import TomlTable, tables_of

_SECRET = re.compile(
    r"""(?<![\w.-])(["']?(?:password|token|totp|key|secret|pin)["']?\s*=\s*)("[^"]*"|'[^']*')""", re.IGNORECASE
)
_KEY_FILE = re.compile(r"\.(?:pem|key|crt)['\"]$")
_IN_ADDRESS = re.compile(r"(://)[^/@\s\"']+@")
_ENTRY = re.compile(r"^([\w.]+)\[(\d+)\](?:\.(\w+))?")
_HIDDEN = "…"


@dataclass(frozen=True, slots=True)
class ShownFault:
    """A fault for people.

    Attributes:
        line: the number of its line from 1; 0 if it concerns no single line.
        place: its place in the file, with the name of the record; "" for the whole file.
        text: what is wrong.
        has_name: whether the place has the name of its record.
    """

    line: int
    place: str
    text: str
    has_name: bool = False


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A site file for display."""

    lines: tuple[str, ...]
    faults: tuple[ShownFault, ...]


def shown_file(text: bytes, error: SiteFaults | None) -> ShownFile:
    """Return the file for display. Names of secrets are masked, in faults too: one may be the secret itself."""
    lines = text.decode("utf-8-sig", errors="replace").splitlines()
    hidden = set(_hidden(lines))
    return ShownFile(tuple(map(_shown, lines)), tuple(_faults(lines, error, hidden)))


def _shown(line: str) -> str:
    def hide(found: re.Match[str]) -> str:
        return found.group() if _KEY_FILE.search(found.group(2)) else f'{found.group(1)}"{_HIDDEN}"'

    return _IN_ADDRESS.sub(rf"\1{_HIDDEN}@", _SECRET.sub(hide, line))


def _hidden(lines: list[str]) -> Iterator[str]:
    for line in lines:
        for found in _SECRET.finditer(line):
            if not _KEY_FILE.search(found.group(2)) and len(found.group(2)) > 2:
                yield found.group(2)[1:-1]


def _without(words: str, hidden: set[str]) -> str:
    for secret in sorted(hidden, key=len, reverse=True):
        words = words.replace(f"'{secret}'", f"'{_HIDDEN}'").replace(f"/{secret}", f"/{_HIDDEN}")
        words = words.replace("EDGE_GATEWAY_SECRET_" + secret.upper().replace("-", "_").replace(".", "_"), _HIDDEN)
    return _IN_ADDRESS.sub(rf"\1{_HIDDEN}@", words)


def _faults(lines: list[str], error: SiteFaults | None, hidden: set[str]) -> Iterator[ShownFault]:
    if error is None:
        return
    try:
        tables = tables_of(lines)
    except ValueError:
        tables = []
    names = names_in(_entries(tables))
    for fault in error.faults:
        line = fault.line or _line_of(fault.place, tables)
        shown = with_names(fault, names)
        yield ShownFault(line, shown.place, _without(shown.message, hidden), has_name=bool(name_of(fault.place, names)))


def _entries(tables: list[TomlTable]) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for table in tables:
        if table.is_entry:
            found.setdefault(table.name, []).append(table.values)
    return found


def _line_of(place: str, tables: list[TomlTable]) -> int:
    """Return the line number of a fault's place, such as `lanes[1].gate` or `api.tls.key`; 0 if there is none."""
    if found := _ENTRY.match(place):
        entries = [table for table in tables if table.name == found.group(1) and table.is_entry]
        index = int(found.group(2))
        return 0 if index >= len(entries) else _line_in(entries[index], found.group(3))
    parts = place.split(".")
    for count in range(len(parts), 0, -1):
        table = next((one for one in tables if one.name == ".".join(parts[:count]) and not one.is_entry), None)
        if table is not None:
            return _line_in(table, parts[count] if count < len(parts) else "")
    return 0 if tables[:1] == [] or tables[0].statement(parts[0]) is None else _line_in(tables[0], parts[0])


def _line_in(table: TomlTable, key: str | None) -> int:
    statement = table.statement(key) if key else None
    return (table.line if statement is None else statement.begin) + 1
