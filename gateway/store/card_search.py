"""How cards are searched for: SQL conditions with their values, and usernames in records. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from gateway.domain.credentials import plate_alias
from gateway.domain.plates import plain_plate

_USERNAMES = ("username", "user.username", "guest.username")


@dataclass(frozen=True, slots=True)
class CardMatch:
    """A condition on cards, and its values."""

    sql: str
    values: tuple[str, ...]


def search_cards(search: str) -> CardMatch:
    """Cards whose number, holder, username or plate holds this text, whatever its case; all for none."""
    if not search:
        return CardMatch("1", ())
    if "\0" in search:
        return CardMatch("0", ())  # to SQLite a pattern ends there; no field has one
    text = f"%{in_pattern(search)}%"
    written = f"%{in_pattern(json.dumps(search, ensure_ascii=False)[1:-1])}%"
    plate = f"{plate_alias('')}%{in_pattern(plain_plate(search))}%" if plain_plate(search) else ""
    username = " OR ".join(f"json_extract(record, '$.{path}') LIKE ?1 ESCAPE '\\'" for path in _USERNAMES)
    return CardMatch(
        "(number LIKE ?1 ESCAPE '\\' OR holder LIKE ?1 ESCAPE '\\'"
        # Few records are taken apart; one that SQLite takes for no JSON keeps no other from being found.
        f" OR CASE WHEN record LIKE ?3 ESCAPE '\\' AND json_valid(record) THEN {username} ELSE 0 END"
        " OR id IN (SELECT card_id FROM card_alias WHERE alias >= 'plate:' AND alias < 'plate;'"
        " AND alias LIKE ?2 ESCAPE '\\'))",
        (text, plate, written),
    )


def in_pattern(text: str) -> str:
    """A text as it is taken literally in a LIKE pattern with a backslash for escape."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def username_of(record: str) -> str:
    """The username in a record's JSON text, "" for none."""
    value: object = json.loads(record)
    for path in _USERNAMES:
        found = value
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if isinstance(found, str) and found:
            return found
    return ""
