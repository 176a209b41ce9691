"""Searches in text columns, as SQL conditions with their values.

SQLite compares plain ASCII by itself, which is quick and does not take the interpreter lock from the loop. It calls the
Python function `holds` only for rows with other characters, and for rows that may have the plate in another spelling.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.domain.text_search import folded, holds, plate_in_text, searched_plate


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition and the values of its parameters."""

    sql: str
    values: tuple[str, ...] = ()


def teach_search(connection: sqlite3.Connection) -> None:
    """Register the SQL function `holds`, which search conditions call."""
    connection.create_function("holds", 3, holds, deterministic=True)


def search_in(
    search: str, *, texts: Sequence[str] = (), plates: Sequence[str] = (), names: Sequence[str] = ()
) -> Condition:
    """Build the condition for rows that contain the searched text in one of these columns; "" matches every row.

    Args:
        search: the searched text.
        texts: columns of any text. If the search may be a plate, plates in them are found in any spelling.
        plates: columns of plates alone.
        names: columns of the product's own names, which are plain ASCII and contain no plates.
    """
    if not search:
        return Condition("1")
    if "\0" in search:
        return Condition("0")  # SQLite would end the pattern there; no column contains a NUL
    return any_of(
        *(_in_column(column, search, plate_in_text(search)) for column in texts),
        *(_in_column(column, search, searched_plate(search)) for column in plates),
        *(Condition(f"{column} LIKE ? ESCAPE '\\'", (_pattern(folded(search)),)) for column in names),
    )


def any_of(*conditions: Condition) -> Condition:
    """Join conditions by OR."""
    return Condition(
        "(" + " OR ".join(item.sql for item in conditions) + ")",
        tuple(value for item in conditions for value in item.values),
    )


def json_may_hold(column: str, search: str) -> Condition:
    """Build a quick preliminary condition for a JSON column: no value of a row that fails it contains the text."""
    return _in_column(column, json.dumps(folded(search), ensure_ascii=False)[1:-1], "")


def _in_column(column: str, search: str, plate: str) -> Condition:
    wanted = folded(search)
    beyond_ascii = f"length({column}) <> length(CAST({column} AS BLOB))"
    literal, call = f"{column} LIKE ? ESCAPE '\\'", f"holds({column}, ?, ?)"
    if not plate:
        return Condition(f"({literal} OR ({beyond_ascii} AND {call}))", (_pattern(wanted), wanted, ""))
    # The plate's characters with anything in between: matches every ASCII row that `holds` could, and some more.
    spelled = "%" + "%".join(plate) + "%"
    return Condition(
        f"(({column} LIKE ? OR {beyond_ascii}) AND ({literal} OR {call}))", (spelled, _pattern(wanted), wanted, plate)
    )


def _pattern(text: str) -> str:
    return "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
