"""Searches in text columns, as SQL conditions with their values.

SQLite compares plain ASCII without help, which is quick and leaves the interpreter to the loop. Only rows with other
characters, and rows that may hold the searched plate in another spelling, are given to `holds`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.text_search import folded, holds, plate_in_text, searched_plate


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition and its values."""

    sql: str
    values: tuple[str, ...] = ()


def teach_search(connection: sqlite3.Connection) -> None:
    """Give a connection the function that search conditions call."""
    connection.create_function("holds", 3, holds, deterministic=True)


def search_in(
    search: str, *, texts: Sequence[str] = (), plates: Sequence[str] = (), names: Sequence[str] = ()
) -> Condition:
    """Build the condition for rows with the searched text in one of these columns; every row for no text.

    texts: columns of any text. A plate in them is found in any spelling when the search may name one.
    plates: columns of plates alone.
    names: columns of the product's own names, which are plain ASCII and hold no plate.
    """
    if not search:
        return Condition("1")
    if "\0" in search:
        return Condition("0")  # SQLite ends a pattern there; no column holds one
    return any_of(
        *(_in_column(column, search, plate_in_text(search)) for column in texts),
        *(_in_column(column, search, searched_plate(search)) for column in plates),
        *(Condition(f"{column} LIKE ? ESCAPE '\\'", (_pattern(folded(search)),)) for column in names),
    )


def any_of(*conditions: Condition) -> Condition:
    """Join conditions of which one is enough."""
    return Condition(
        "(" + " OR ".join(item.sql for item in conditions) + ")",
        tuple(value for item in conditions for value in item.values),
    )


def json_may_hold(column: str, search: str) -> Condition:
    """Build a quick condition for JSON columns: rows that it leaves out have the searched text in no value."""
    return _in_column(column, json.dumps(folded(search), ensure_ascii=False)[1:-1], "")


def _in_column(column: str, search: str, plate: str) -> Condition:
    wanted = folded(search)
    beyond_ascii = f"length({column}) <> length(CAST({column} AS BLOB))"
    literal, call = f"{column} LIKE ? ESCAPE '\\'", f"holds({column}, ?, ?)"
    if not plate:
        return Condition(f"({literal} OR ({beyond_ascii} AND {call}))", (_pattern(wanted), wanted, ""))
    # The plate's characters with anything between them: every row of plain ASCII that can be found, and some more.
    spelled = "%" + "%".join(plate) + "%"
    return Condition(
        f"(({column} LIKE ? OR {beyond_ascii}) AND ({literal} OR {call}))", (spelled, _pattern(wanted), wanted, plate)
    )


def _pattern(text: str) -> str:
    return "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
