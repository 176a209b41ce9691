"""Searches in text columns, as SQL conditions with their values.

SQLite compares plain ASCII by itself, which is quick and does not take the interpreter lock from the loop. It calls the
Python function `holds` only for rows with other characters, and for rows that may have the plate in another spelling.
"""

from __future__ import annotations

import json
import sqlite3
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from drivers.plate_text import plain_plate

LONGEST_PLATE: Final = 16
"""The most characters of a plate, without blanks and dashes."""


@dataclass(frozen=True, slots=True)
class Condition:
    """An SQL condition and the values of its parameters."""

    sql: str
    values: tuple[str, ...] = ()


def folded(text: str) -> str:
    """Fold a text so that differences in case and Unicode form disappear.

    The dotted and the dotless i both become `i`: which of them is the small form of `I` depends on the language.
    """
    if text.isascii():
        return text.lower()
    whole = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return whole.replace("i\u0307", "i").replace("\u0131", "i")


def folded_plate(text: str) -> str:
    """Fold a text and keep only letters and digits, so that all spellings of a plate become equal."""
    return plain_plate(folded(text))


def searched_plate(search: str) -> str:
    """Return a search among plates as a folded plate; "" if it has characters other than separators in a plate.

    Blanks, dashes and dots may separate the plate's parts.
    """
    if any(not (character.isalnum() or _separates(character)) for character in folded(search)):
        return ""
    return folded_plate(search)


def plate_in_text(search: str) -> str:
    """Return a search in any text as a folded plate, "" if it is none. A plate has a letter and a digit at least."""
    plate = searched_plate(search)
    if len(plate) > LONGEST_PLATE or plate.isalpha() or not any(map(str.isalpha, plate)):
        return ""
    return plate


def holds(text: object, wanted: str, plate: str) -> bool:
    """Return whether a text contains `wanted`, which is folded, or the folded `plate` unless that is ""."""
    if not isinstance(text, str):
        return False
    return wanted in folded(text) or (plate != "" and plate in folded_plate(text))


def _separates(character: str) -> bool:
    return character in ".·" or unicodedata.category(character) in ("Zs", "Pd")


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
